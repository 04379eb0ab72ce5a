package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
)

func (c *cli) job() *cobra.Command {
	g := &cobra.Command{Use: "job", Short: "Create, change, list, show, pause, abort, remove and run jobs"}
	c.add(g, []subcommand{
		{"create", (*cli).jobCreate}, {"alter", (*cli).jobAlter}, {"rename", (*cli).jobRename}, {"step", (*cli).jobStep},
		{"schedule", (*cli).jobSchedule}, {"list", (*cli).jobList}, {"show", (*cli).jobShow}, {"pause", (*cli).jobPause},
		{"resume", (*cli).jobResume}, {"enable", (*cli).jobEnable}, {"disable", (*cli).jobDisable}, {"abort", (*cli).jobAbort},
		{"remove", (*cli).jobRemove}, {"run-now", (*cli).jobRunNow}, {"skip-next", (*cli).jobSkipNext}, {"backfill", (*cli).jobBackfill},
		{"replan", (*cli).jobReplan}, {"history", (*cli).jobHistory},
	})
	return group(g)
}

// definitionFlags adds flags that describe a definition. It returns a function that returns the flags that were
// given, for use when the command runs.
func definitionFlags(cmd *cobra.Command, flags ...[]manifest.Flag) func() manifest.Given {
	given := manifest.Given{}
	for _, f := range slices.Concat(flags...) {
		cmd.Flags().Var(definitionFlag{f, given}, f.Name, f.Help)
		if f.Kind == manifest.Switch {
			cmd.Flags().Lookup(f.Name).NoOptDefVal = "true"
		}
	}
	return func() manifest.Given { return given }
}

// definitionFlag collects the values given for a flag. Package manifest reads them.
type definitionFlag struct {
	manifest.Flag
	given manifest.Given
}

func (f definitionFlag) String() string { return "" }

func (f definitionFlag) Set(value string) error {
	switch f.Kind {
	case manifest.Texts, manifest.Entries:
		f.given[f.Name] = append(f.given[f.Name], value)
		return nil
	case manifest.Switch:
		on, err := strconv.ParseBool(value)
		if err != nil {
			return err
		}
		value = strconv.FormatBool(on)
	}
	f.given[f.Name] = []string{value}
	return nil
}

// several reports whether the flag may be given several times.
func (f definitionFlag) several() bool { return f.Kind == manifest.Texts || f.Kind == manifest.Entries }

// Type returns the word for the value in the help.
func (f definitionFlag) Type() string {
	switch f.Kind {
	case manifest.Switch:
		return "bool"
	case manifest.Literal:
		return "value"
	}
	return "text"
}

func (c *cli) jobCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME --sql STATEMENT|--http URL|--exec PROGRAM|--shell TEXT|--mail-to ADDRESS",
		Short: "Create a job with one step",
		Example: `  dbjobs job create tidy --rule "every 5m" --sql "DELETE FROM sessions WHERE expires < CURRENT_TIMESTAMP"
  dbjobs job create report --schedule nightly --sql "INSERT INTO report SELECT * FROM totals" --atomic
  dbjobs job create ping --rule "every 5m" --http https://example.org/hook`,
		Args: positional("NAME"),
	}
	var isStrict bool
	strict(cmd, &isStrict, "refuse definitions that have warnings, before anything is written")
	given := definitionFlags(cmd, manifest.RuleFlags, manifest.JobFlags)
	cmd.RunE = c.do(func(cmd *cobra.Command, args []string) error {
		m, err := manifest.JobFromFlags(args[0], given(), time.Now())
		if err != nil {
			return err
		}
		if err := c.resolve(cmd, m); err != nil {
			return err
		}
		if isStrict {
			if err := c.strictly(cmd, m, store.ApplyOptions{CreateOnly: true}); err != nil {
				return already(err, "job", args[0])
			}
		}
		s, err := c.open(cmd, begin)
		if err != nil {
			return err
		}
		defer c.close(s)
		w, err := readWorld(cmd.Context(), s, m) // not later: then the change would be done
		if err != nil {
			return err
		}
		changes, err := s.Apply(cmd.Context(), m.Definitions, store.ApplyOptions{CreateOnly: true, Author: c.author(s), Start: decide.Start, First: decide.First})
		if err != nil {
			return already(m.Place(err), "job", args[0])
		}
		c.ring(cmd.Context(), s)
		first := ""
		for _, f := range w.firstRuns(m, changes) {
			first = "; first run: " + report.First(f)
		}
		c.say("created job %s%s", args[0], first)
		p, err := held(cmd.Context(), s, m.Jobs[0].FullName())
		if c.unknown("whether a pause holds the job", err); p != nil && err == nil {
			c.say("the job is paused: %s", report.Paused(*p))
		}
		return c.showCreated(cmd.Context(), s, m, changes, w)
	})
	return c.prints(c.authored(cmd))
}

// showCreated warns of what the definition of a created job may not mean, and prints the job as JSON if --json is
// given.
func (c *cli) showCreated(ctx context.Context, s *store.Store, m *manifest.Manifest, changes []store.Change, w world) error {
	warnings := c.warnings(m, changes, w)
	if c.warn(warnings); !c.asJSON {
		return nil
	}
	j, err := s.Job(ctx, m.Jobs[0].FullName())
	if err != nil {
		return unseen(err)
	}
	return report.JSON(c.stdout, report.CreatedJob{JobStatus: j, Warnings: warnings})
}

// showJob prints a job as JSON after a command has changed it, if --json is given.
func (c *cli) showJob(ctx context.Context, s *store.Store, name string) error {
	if !c.asJSON {
		return nil
	}
	j, err := s.Job(ctx, name)
	if err != nil {
		return unseen(err)
	}
	return report.JSON(c.stdout, j)
}

func (c *cli) jobList() *cobra.Command {
	var f store.JobFilter
	cmd := &cobra.Command{Use: "list", Short: "List the jobs", Args: positional(),
		Example: `  dbjobs job list
  dbjobs job list --state failing,parked
  dbjobs job list --manifest jobs --json`}
	cmd.Flags().StringVar(&f.Owner, "owner", "", "only jobs of this owner")
	cmd.Flags().StringVar(&f.Manifest, "manifest", "", "only jobs that belong to this manifest")
	cmd.Flags().StringVar(&f.Tag, "tag", "", "only jobs with this tag")
	cmd.Flags().StringSliceVar(&f.States, "state", nil, "only jobs in one of these states, with commas between them: "+strings.Join(store.JobStates, ", "))
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
		if err := among("state", f.States, store.JobStates); err != nil {
			return err
		}
		jobs, err := s.Jobs(ctx, f)
		if err != nil {
			return err
		}
		if err := tick.NextOutsidePauses(ctx, s, jobs); err != nil {
			return err
		}
		return c.print(report.List(jobs), func() error { return report.Jobs(c.stdout, jobs) })
	})
	return c.prints(cmd)
}

func (c *cli) jobShow() *cobra.Command {
	return c.prints(&cobra.Command{
		Use: "show NAME", Short: "Show a job: state, next times, policies, gaps", Args: positional("NAME"),
		Example: `  dbjobs job show rollup`,
		RunE: c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
			status, err := s.Job(ctx, args[0])
			if err != nil {
				return err
			}
			gaps, err := tick.Missed(ctx, s, status.FullName(), time.Time{}, 10)
			if err != nil {
				return err
			}
			o, err := tick.Forecast(ctx, s, &status, 5)
			if err != nil {
				return err
			}
			one := []store.JobStatus{status}
			if err := tick.NextOutsidePauses(ctx, s, one); err != nil {
				return err
			}
			status = one[0]
			if status.Parked == "" {
				status.Parked = o.Problem
			}
			j := report.JobDetail{JobStatus: status, NextTimes: report.List(o.Next), Lateness: store.Duration(o.Late.Truncate(time.Millisecond)), Gaps: gaps, Holidays: o.Holidays, Faulty: o.Problem != ""}
			return c.print(j, func() error { return report.Job(c.stdout, j) })
		}),
	})
}

func (c *cli) jobRemove() *cobra.Command {
	cmd := &cobra.Command{Use: "remove NAME", Short: "Remove a job; its history stays until it is pruned", Args: positional("NAME"),
		Example: `  dbjobs job remove rollup --reason "replaced by sums"`}
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, args []string) error {
		if err := s.RemoveJob(ctx, args[0], c.author(s)); err != nil {
			return err
		}
		return c.print(report.Removed{Kind: "job", Name: args[0]}, func() error {
			c.say("removed job %s", args[0])
			return nil
		})
	})
	return c.prints(c.authored(cmd))
}
