package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/simulate"
)

// simulation has the flags of simulate.
type simulation struct {
	from, to         string
	file, diff, down []string
	every, took      store.Duration
	slow, runs       bool
	limit            int
	now              time.Time
}

// longest is the longest time that is simulated: a mistyped year would take hours.
const longest = 400 * 24 * time.Hour

func (c *cli) simulate() *cobra.Command {
	o := simulation{every: store.Duration(time.Minute), took: store.Duration(30 * time.Second)}
	cmd := &cobra.Command{
		Use: "simulate", Short: "Show what ticks would run, and write nothing", Args: positional(),
		Long: `Simulates the ticks of a span of time in memory, with the decisions that "dbjobs tick" would make. It shows which runs
there would be, which nominal times would not run and why, what would wait, and the busiest minutes. The jobs are those of
the database, or with -f those of a manifest. A login with the right to read is enough; with -f, no database is needed.

--down names an outage, in which no tick comes, such as --down 2026-12-24T22:00:00Z/8h. --diff shows what would run
differently if that manifest were applied; together with -f, it compares the two manifests.

A simulation from now begins with the runs that are open. With --from, all earlier times count as decided. A run takes
the median time of those that succeeded among the last 30 runs of its job, or with --slow, the 95th percentile. If none of
them did, it takes as long as --took says.

It is assumed that no run fails, that nobody edits, pauses or requests anything, that no host starts (on_startup), and
that there is always a process with room for a run.`,
		Example: `  dbjobs simulate --to 7d
  dbjobs simulate --from 2026-12-01 --to 2026-12-08 --down 2026-12-03T22:00:00Z/8h --json
  dbjobs simulate -f jobs.yaml --runs
  dbjobs simulate --to 7d --diff jobs.yaml`,
	}
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "", "first time, such as tomorrow or 2026-12-01T08:00:00Z (now)")
	f.StringVar(&o.to, "to", "", "end, such as 7d from now, or 2026-12-08 (24h after --from)")
	f.StringArrayVar(&o.down, "down", nil, "`FROM/FOR`: an outage without ticks, from a time on; FOR is its length or its end; may be given several times")
	f.StringArrayVarP(&o.file, "file", "f", nil, "simulate this manifest, or a folder of such files, instead of the database; - means standard input; may be given several times")
	f.StringArrayVar(&o.diff, "diff", nil, "compare with this `manifest`, or a folder of such files; - means standard input; may be given several times")
	f.Var(durationFlag{&o.every}, "every", "time between two ticks")
	f.Var(durationFlag{&o.took}, "took", "time that a run takes if none of the last 30 runs of its job succeeded")
	f.BoolVar(&o.slow, "slow", false, "runs take the 95th percentile instead of the median")
	f.BoolVar(&o.runs, "runs", false, "list each run")
	f.IntVar(&o.limit, "limit", 1000, "list at most `N` runs and gaps; all are counted, job by job")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		in, opts, err := c.simulated(cmd, &o)
		if err != nil {
			return err
		}
		if len(o.diff) == 0 {
			r, err := simulate.Run(cmd.Context(), in, opts)
			if err != nil {
				return err
			}
			return c.print(r, func() error { return report.Simulation(c.stdout, r, o.runs) })
		}
		in, other, err := c.compared(cmd, &o, in, opts.From)
		if err != nil {
			return err
		}
		d, err := simulate.Compare(cmd.Context(), in, other, opts)
		if err != nil {
			return err
		}
		return c.print(d, func() error { return report.SimulatedDifference(c.stdout, d) })
	})
	return c.prints(cmd)
}

// simulated returns what to simulate: the jobs of a file or of the database, and the times.
func (c *cli) simulated(cmd *cobra.Command, o *simulation) (in simulate.Input, opts simulate.Options, err error) {
	if o.limit < 1 {
		return in, opts, badInput("--limit: found %d, want at least 1", o.limit)
	}
	switch {
	case o.slow && len(o.file) > 0:
		return in, opts, badInput("--slow does not go together with -f: a file has no runs to learn from; see --took")
	case o.runs && len(o.diff) > 0:
		return in, opts, badInput("--runs does not go together with --diff")
	}
	if o.every < store.Duration(time.Second) {
		return in, opts, badInput("--every: found %s, want at least 1s", o.every)
	}
	var s *store.Store
	if o.now = time.Now().Truncate(time.Microsecond); len(o.file) == 0 {
		if s, err = c.open(cmd, use); err != nil {
			return in, opts, err
		}
		defer c.close(s)
		if o.now, err = s.Now(cmd.Context()); err != nil {
			return in, opts, err
		}
	}
	if opts, err = o.options(); err != nil {
		return in, opts, err
	}
	if s == nil {
		in, err = c.inputOf(cmd, o.file, opts.From)
		in.SetTook(nil, 0, time.Duration(o.took))
		return in, opts, err
	}
	in, left, err := simulate.Read(cmd.Context(), s, opts.From, o.now)
	if err != nil {
		return in, opts, err
	}
	if len(left) > 0 {
		c.say("left out, because their definitions cannot be read: %s; see dbjobs job list", strings.Join(left, ", "))
	}
	recent, err := s.Durations(cmd.Context(), simulate.Recent)
	share := 0.5
	if o.slow {
		share = 0.95
	}
	in.SetTook(recent, share, time.Duration(o.took))
	return in, opts, err
}

// options returns the times of a simulation.
func (o *simulation) options() (opts simulate.Options, err error) {
	from, err := instantFrom("from", o.from, ahead, o.now)
	if err != nil {
		return opts, err
	}
	to, err := instantFrom("to", o.to, ahead, o.now)
	if err != nil {
		return opts, err
	}
	if from.IsZero() {
		from = o.now
	}
	if to.IsZero() {
		to = from.Add(24 * time.Hour)
	}
	if !to.After(from) {
		return opts, badInput("--to: %s is not after %s", report.Instant(to), report.Instant(from))
	}
	if to.Sub(from) > longest {
		return opts, badInput("--to: %s is more than %d days after %s", report.Instant(to), longest/24/time.Hour, report.Instant(from))
	}
	opts = simulate.Options{From: from, To: to, Every: time.Duration(o.every), Down: []simulate.Outage{}, Zone: report.Zone(), Keep: o.limit}
	for _, text := range o.down {
		d, err := readOutage(text, o.now)
		if err != nil {
			return opts, err
		}
		opts.Down = append(opts.Down, d)
	}
	slices.SortFunc(opts.Down, func(x, y simulate.Outage) int { return x.From.Compare(y.From) })
	return opts, nil
}

// readOutage reads FROM/FOR, where FOR is a length or an end.
func readOutage(text string, now time.Time) (d simulate.Outage, err error) {
	from, until, ok := strings.Cut(text, "/")
	if !ok || from == "" || until == "" {
		return d, badInput("--down: found %s, want FROM/FOR, such as 2026-12-24T22:00:00Z/8h", shown(text))
	}
	if d.From, err = instantFrom("down", from, ahead, now); err != nil {
		return d, err
	}
	if length, bad := store.ParseDuration(until); bad == nil {
		d.To = d.From.Add(time.Duration(length))
	} else if d.To, err = instantFrom("down", until, ahead, now); err != nil {
		return d, err
	}
	if !d.To.After(d.From) {
		return d, badInput("--down: found %s, which ends before it begins", shown(text))
	}
	return d, nil
}

// inputOf returns what a manifest defines, as if it was applied at an instant.
func (c *cli) inputOf(cmd *cobra.Command, paths []string, at time.Time) (in simulate.Input, err error) {
	m, shared, err := c.shares(cmd, paths)
	if err != nil {
		return in, err
	}
	return ofFile(m, shared, at)
}

// ofFile returns what a manifest alone defines. It refuses the rules that apply would refuse at that instant.
func ofFile(m *manifest.Manifest, shared simulate.Shared, at time.Time) (in simulate.Input, err error) {
	if err := simulate.Refused(m.Definitions, shared, at); err != nil {
		return in, m.Place(err)
	}
	return simulate.Of(m.Definitions, shared, at)
}

// shares reads a manifest, and from the database what it uses but does not define. Other jobs that it names are not simulated.
func (c *cli) shares(cmd *cobra.Command, paths []string) (m *manifest.Manifest, shared simulate.Shared, err error) {
	kinds := []string{store.KindSchedule, store.KindCalendar, store.KindGroup}
	if m, err = c.resolved(cmd, paths, kinds...); err != nil || len(m.References(kinds...)) == 0 {
		return m, shared, err
	}
	s, err := c.open(cmd, use)
	if err != nil {
		return m, shared, err
	}
	defer c.close(s)
	w, err := readWorld(cmd.Context(), s, m)
	if err != nil {
		return m, shared, err
	}
	shared.Schedules, shared.Calendars = m.Shared, w.calendars
	shared.Groups, err = s.Groups(cmd.Context())
	return m, shared, err
}

// compared returns what --diff compares: the input by its new names, and what the manifest would make of it.
func (c *cli) compared(cmd *cobra.Command, o *simulation, in simulate.Input, at time.Time) (was, other simulate.Input, err error) {
	m, shared, err := c.shares(cmd, o.diff)
	if err != nil {
		return in, other, err
	}
	if len(o.file) > 0 {
		other, err = ofFile(m, shared, at)
		other.SetTook(nil, 0, time.Duration(o.took))
		return in.Renamed(m.Definitions, ""), other, err
	}
	// Where apply refuses the file, there is nothing to compare. Whose manifest a definition is from changes no times.
	changes, _, err := c.change(cmd, m, store.ApplyOptions{Manifest: m.Name, DryRun: true, TakeOwnership: true})
	if err != nil {
		return in, other, err
	}
	made := map[[3]string]bool{} // what apply does, by action, kind and name
	for _, ch := range changes {
		made[[3]string{ch.Action, ch.Kind, ch.PlainSubject()}] = true
	}
	// The input has no schedules that no job uses, and no jobs that are done.
	m.Renames = slices.DeleteFunc(m.Renames, func(r store.Rename) bool { return !made[[3]string{"rename", r.Kind, r.To}] })
	m.Jobs = slices.DeleteFunc(m.Jobs, func(j store.Job) bool { return made[[3]string{"done", store.KindJob, j.Name}] })
	owner, err := c.login(cmd)
	if err != nil {
		return in, other, err
	}
	in = in.Renamed(m.Definitions, owner)
	if other, err = in.With(m.Definitions, shared, owner, at); err != nil {
		return in, other, err
	}
	for i := range other.Jobs {
		if t := &other.Jobs[i].Took; t.Length == 0 && t.Of == 0 {
			t.Length = o.took
		}
	}
	return in, other, nil
}

// login returns the login to which new jobs would belong.
func (c *cli) login(cmd *cobra.Command) (string, error) {
	s, err := c.open(cmd, use)
	if err != nil {
		return "", err
	}
	defer c.close(s)
	return s.Login(cmd.Context())
}
