package main

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

// requestFlags are the flags of run-now.
type requestFlags struct {
	pairs                       []string
	from, to, at, fromStep, key string
	wait                        bool
}

func (f *requestFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.pairs, "arg", nil, "`NAME=VALUE` for ${args.NAME}; may be given several times")
	cmd.Flags().StringVar(&f.from, "from", "", "start of its data interval, such as 2026-11-19T00:00:00Z")
	cmd.Flags().StringVar(&f.to, "to", "", "end of its data interval")
	cmd.Flags().StringVar(&f.at, "at", "", "nominal time; the run does not start before it: 2h from now, tomorrow 08:00, 2026-12-01T08:00:00Z")
	cmd.Flags().StringVar(&f.fromStep, "from-step", "", "name or number of the step to start with")
	cmd.Flags().StringVar(&f.key, "key", "", "key of the request: a later request with this key gets the same run")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "follow the run to its end; exit code 3 if it does not succeed")
}

// request returns the request that the flags describe.
func (f *requestFlags) request(ctx context.Context, s *store.Store, who store.Author) (q store.Request, err error) {
	q = store.Request{Args: map[string]string{}, FromStep: f.fromStep, Key: f.key, Author: who}
	for _, p := range f.pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return q, badInput("--arg: found %q, want NAME=VALUE", p)
		}
		if !utf8.ValidString(p) {
			return q, badInput("--arg: %q is not UTF-8 text", p)
		}
		if _, given := q.Args[name]; given {
			return q, badInput("--arg: %q was given twice; give it once", name)
		}
		q.Args[name] = value
	}
	if q.Interval.Start, err = instantIn(ctx, s, "from", f.from, ago); err != nil {
		return q, err
	}
	if q.Interval.End, err = instantIn(ctx, s, "to", f.to, ago); err != nil {
		return q, err
	}
	if q.At, err = instantIn(ctx, s, "at", f.at, ahead); err != nil {
		return q, err
	}
	if (f.from == "") != (f.to == "") {
		return q, badInput("--from and --to belong together; give both or none")
	}
	return q, nil
}

func (c *cli) jobRunNow() *cobra.Command {
	var f requestFlags
	cmd := &cobra.Command{
		Use: "run-now NAME", Short: "Request a run outside the schedule; the next tick executes it", Args: positional("NAME"),
		Long: `Requests a run outside the schedule and prints its id. The next tick executes it, after the job's open runs, and
as soon as its group has room.

--arg NAME=VALUE replaces ${args.NAME} in the arguments of the job's statements. --from and --to replace
${interval_start} and ${interval_end}, which are empty otherwise; dbjobs job backfill then counts the nominal times in
that interval as covered.

--at gives the run a nominal time (${scheduled_for}). If that time is still to come, the run waits for it.

--from-step starts with that step of the job, given by its name or its number. The steps before it are not executed, so
what they tell later steps (${steps.NAME.FACT}) is not there.

--key is for scripts that may be started twice: as long as the run of a key is on record, each further request of this
job with that key requests nothing, and prints the id of the same run.

--wait follows the run until it has ended. The exit code is 0 if the run succeeded, and 3 if it did not. The command
executes nothing itself: it waits until a "dbjobs tick" has executed the run. Ctrl-C ends the wait, not the run.`,
		Example: `  dbjobs job run-now rollup --arg day=2026-11-20
  dbjobs job run-now rollup --from 2026-11-19T00:00:00Z --to 2026-11-20T00:00:00Z --reason 'the source was late'
  dbjobs job run-now rollup --key release-4.2 --wait`,
	}
	f.add(cmd)
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		q, err := f.request(ctx, s, c.author(s))
		if err != nil {
			return err
		}
		r, err := s.RunNow(ctx, args[0], q)
		if err != nil {
			return err
		}
		if f.wait { // for the pass that has to be started now
			c.ring(ctx, s)
		}
		if f.wait && c.asJSON {
			return c.follow(ctx, s, &r.Run)
		}
		if err := c.print(r, func() error {
			c.unknown("the run is requested; when it executes", c.sayWhen(ctx, s, args[0], r))
			_, err := fmt.Fprintln(c.stdout, r.ID)
			return err
		}); err != nil || !f.wait {
			return err
		}
		return c.follow(ctx, s, &r.Run)
	})
	return c.prints(c.authored(cmd))
}

// sayWhen says when a requested run executes. A pause of the job holds the run back. A pause of the job's schedule
// does not, and neither does disabling the job.
func (c *cli) sayWhen(ctx context.Context, s *store.Store, job string, r store.RequestedRun) error {
	if r.Existing {
		c.say("a run with this key already exists: %s", stateOf(&r.Run))
		return nil
	}
	j, err := s.Job(ctx, job)
	if err != nil {
		return err
	}
	paused := holds(&j) != nil
	if j.Disabled && !paused {
		c.say("the job is disabled; this requested run executes anyway")
	}
	does, waits, err := when(ctx, s, &j, &r.Run, 1, "it")
	switch {
	case err != nil:
		return err
	case r.ReadyAt.After(r.CreatedAt) && !paused:
		c.say("the run waits for %s; the first dbjobs tick after that %s", report.Instant(r.ReadyAt), does)
	case waits != "":
		c.say("the run %s", waits)
	default:
		c.say("the next dbjobs tick %s", does)
	}
	return nil
}

// when says what the next tick does with runs of a job that were requested or opened again: r, and those after it; n is their
// number. If r has to wait for something else, waits says for what; the subject of that sentence is the run.
func when(ctx context.Context, s *store.Store, j *store.JobStatus, r *store.Run, n int, it string) (does, waits string, err error) {
	if p := holds(j); p != nil {
		return "", "waits while the job is paused: " + report.Paused(*p), nil
	}
	if does, err = runs(ctx, s, r, it); err != nil {
		return "", "", err
	}
	room := 1
	if j.Overlap == store.OverlapAllow {
		room = j.MaxRunning
	}
	before := j.RunsOpen - n // RunsOpen also counts these runs
	if before >= room {
		if before, err = blocking(ctx, s, r); err != nil {
			return "", "", err
		}
	}
	if before >= room {
		what, ended := "1 open run", "it has ended"
		if before > 1 {
			what, ended = fmt.Sprintf("%d open runs", before), "they have ended"
		}
		return does, fmt.Sprintf("waits behind %s of the job (dbjobs run list --job %s); when %s, a dbjobs tick %s", what, store.Argument(j.FullName()), ended, does), nil
	}
	waits, err = forGroup(ctx, s, j.Group, does)
	return does, waits, err
}

// forGroup says that a run waits for its group, and for which runs; empty: the group has room, or the job has none.
func forGroup(ctx context.Context, s *store.Store, group, does string) (string, error) {
	if group == "" {
		return "", nil
	}
	full, behind, err := s.FullGroup(ctx, group)
	switch {
	case err != nil || !full:
		return "", err
	case len(behind) == 0:
		return fmt.Sprintf("waits until there is a group %s; add it to a manifest: groups: {%[1]s: 1}", report.Line(group)), nil
	}
	return fmt.Sprintf("waits until the group %s has room, behind %s; then a dbjobs tick %s", report.Line(group), report.Line(strings.Join(behind, ", ")), does), nil
}

// blocking counts the open runs that a run waits behind: those under way, and older ones, but not those that wait for a later time
// of their own.
func blocking(ctx context.Context, s *store.Store, waiting *store.Run) (n int, err error) {
	runs, err := s.UnsettledRuns(ctx, []int64{waiting.JobID})
	older := true // they are in the order in which they were made
	for _, r := range runs[waiting.JobID] {
		switch {
		case r.ID == waiting.ID:
			older = false
		case r.UnderWay() || older && !r.Ended() && !r.ToCome(waiting.ReadyAt):
			n++
		}
	}
	return n, err
}

// holds returns the pause that holds the runs of a job back; nil: there is none. That of a schedule holds no runs.
func holds(j *store.JobStatus) *store.Pause {
	if p := j.Paused; p != nil && p.Scope != store.ScopeSchedule {
		return p
	}
	return nil
}

// held returns the pause that holds the runs of a job back; nil: there is none.
func held(ctx context.Context, s *store.Store, job string) (*store.Pause, error) {
	j, err := s.Job(ctx, job)
	return holds(&j), err
}
