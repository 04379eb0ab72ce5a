package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

// authored adds --reason and --by to a command that changes something.
func (c *cli) authored(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&c.who.Reason, "reason", "", "why you make this change, for the change log")
	cmd.Flags().StringVar(&c.who.By, "by", "", "who makes this change, for the change log; default: the database login, on SQLite the operating system's user")
	fromVariables(cmd, "by")
	mayBeEmpty(cmd, "reason")
	mayBeEmpty(cmd, "by")
	return cmd
}

// author returns the author of a change, for the change log. Without --by, the store records its login. SQLite has
// no logins, so there author names the user of the operating system.
func (c *cli) author(s *store.Store) store.Author {
	who := c.who
	if u, err := user.Current(); who.By == "" && !s.Engine().KnowsLogins && err == nil {
		who.By = u.Username
	}
	return who
}

// subjectFlags are the flags that name a tag or an owner instead of a job.
type subjectFlags struct{ tag, owner string }

func (f *subjectFlags) add(cmd *cobra.Command, doing string) {
	cmd.Flags().StringVar(&f.tag, "tag", "", doing+" the jobs with this tag")
	cmd.Flags().StringVar(&f.owner, "owner", "", doing+" the jobs of this owner")
}

// subject returns the job, tag or owner that the command line names. It must name exactly one.
func (f *subjectFlags) subject(cmd *cobra.Command, args []string) (store.Subject, error) {
	var named []store.Subject
	if len(args) > 0 {
		named = append(named, store.Subject{Scope: store.ScopeJob, Name: args[0]})
	}
	if cmd.Flags().Changed("tag") {
		named = append(named, store.Subject{Scope: store.ScopeTag, Name: f.tag})
	}
	if cmd.Flags().Changed("owner") {
		named = append(named, store.Subject{Scope: store.ScopeOwner, Name: f.owner})
	}
	if len(named) != 1 {
		return store.Subject{}, badInput("%s needs exactly one of NAME, --tag and --owner", cmd.CommandPath())
	}
	return named[0], nil
}

func (c *cli) jobPause() *cobra.Command {
	var f subjectFlags
	cmd := &cobra.Command{
		Use: "pause [NAME] [--tag TAG] [--owner OWNER]", Short: "Pause a job, or those of a tag or an owner", Args: positional("NAME?"),
		Long: `Pauses a job, all jobs with a tag, or all jobs of an owner. Runs that have started continue; runs that have not
started wait. Times that come during the pause become a recorded gap, unless you resume with --missed.`,
		Example: `  dbjobs job pause rollup --reason "the source is being moved" --until "tomorrow 08:00"
  dbjobs job pause --tag nightly --reason "stock-taking"`,
	}
	f.add(cmd, "pause")
	return c.pauses(cmd, f.subject)
}

func (c *cli) jobResume() *cobra.Command {
	var f subjectFlags
	cmd := &cobra.Command{
		Use: "resume [NAME] [--tag TAG] [--owner OWNER]", Short: "End the pause of a job, of a tag or of an owner", Args: positional("NAME?"),
		Long: `Ends the pause of this job, tag or owner, and no other. Times that came during the pause are a recorded gap. With
--missed they count as missed instead, and the job's policy missed decides which of them still run. Exception: times
before an edit of the job's schedules, start, not_before, not_after, max_runs, repeat_after, disabled, tags or owner stay
a gap.`,
		Example: `  dbjobs job resume rollup --missed`,
	}
	f.add(cmd, "resume")
	return c.resumes(cmd, f.subject)
}

// shared returns the subject of a command that names a shared schedule.
func shared(_ *cobra.Command, args []string) (store.Subject, error) {
	return store.Subject{Scope: store.ScopeSchedule, Name: args[0]}, nil
}

func (c *cli) schedulePause() *cobra.Command {
	return c.pauses(&cobra.Command{
		Use: "pause NAME", Short: "Pause a schedule for all jobs that use it", Args: positional("NAME"),
		Long: `Pauses a schedule. Its times make no runs, and its runs that have not started wait. Other schedules of the same jobs,
and requested runs, are not affected.`,
		Example: `  dbjobs schedule pause nightly --reason "the source is being moved"`,
	}, shared)
}

func (c *cli) scheduleResume() *cobra.Command {
	return c.resumes(&cobra.Command{
		Use: "resume NAME", Short: "End the pause of a schedule", Args: positional("NAME"),
		Long: `Ends the pause of a schedule. Times that came during the pause are a recorded gap; with --missed they count as
missed instead. Exceptions: for a job that has other schedules too, times before a time of the other schedules stay a
gap; and so do times before an edit of the schedule, or one that "dbjobs job resume --help" names.`,
		Example: `  dbjobs schedule resume nightly`,
	}, shared)
}

// everything returns the subject of a freeze.
func everything(*cobra.Command, []string) (store.Subject, error) {
	return store.Subject{Scope: store.ScopeAll}, nil
}

func (c *cli) freeze() *cobra.Command {
	return c.pauses(&cobra.Command{
		Use: "freeze", Short: "Pause everything: no tick decides or takes anything", Args: positional(),
		Long: `Pauses everything in this database. A tick that is started now does nothing and says so. Runs that have started
continue; a tick that is under way starts no more runs. Times that come during the freeze become a recorded gap, unless
you unfreeze with --missed.`,
		Example: `  dbjobs freeze --reason "release 4.2" --until "tomorrow 08:00"`,
	}, everything)
}

func (c *cli) unfreeze() *cobra.Command {
	return c.resumes(&cobra.Command{
		Use: "unfreeze", Short: "End the pause of everything", Args: positional(),
		Long: `Ends a freeze. Pauses of single jobs, schedules, tags and owners stay in force.`, Example: `  dbjobs unfreeze --missed`,
	}, everything)
}

type subjectOf func(*cobra.Command, []string) (store.Subject, error)

// pauses completes a command that begins a pause.
func (c *cli) pauses(cmd *cobra.Command, of subjectOf) *cobra.Command {
	var until string
	cmd.Flags().StringVar(&until, "until", "", "end the pause at this time: 2h from now, tomorrow 08:00, 2026-12-01T08:00:00Z")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, cmd *cobra.Command, args []string) error {
		on, err := of(cmd, args)
		if err != nil {
			return err
		}
		end, err := instantIn(ctx, s, "until", until, ahead)
		if err != nil {
			return err
		}
		p, err := s.PauseUntil(ctx, on, end, untilAs(until), c.author(s))
		if errors.Is(err, store.ErrExists) {
			return fmt.Errorf("%w; to pause it anew, end this pause first: `dbjobs %s`", err, endsPause(on))
		} else if err != nil {
			return err
		}
		c.say("paused %s", on)
		if !c.asJSON {
			return nil
		}
		return report.JSON(c.stdout, p)
	})
	return c.prints(c.authored(cmd))
}

// resumes completes a command that ends a pause.
func (c *cli) resumes(cmd *cobra.Command, of subjectOf) *cobra.Command {
	var missed bool
	cmd.Flags().BoolVar(&missed, "missed", false, "treat times that came during the pause as missed, not as paused")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, cmd *cobra.Command, args []string) error {
		on, err := of(cmd, args)
		if err != nil {
			return err
		}
		p, err := s.Resume(ctx, on, missed, c.author(s))
		if errors.Is(err, store.ErrNotFound) {
			return cmp.Or(heldByOther(ctx, s, on), err)
		}
		if err != nil {
			return err
		}
		c.say("resumed %s", on)
		if on.Scope == store.ScopeJob {
			j, err := s.Job(ctx, on.Name)
			if c.unknown("whether another pause holds the job", err); err == nil && j.Paused != nil {
				c.say("the job is still paused: %s", report.Paused(*j.Paused))
			}
		}
		if !c.asJSON {
			return nil
		}
		return report.JSON(c.stdout, p)
	})
	return c.prints(c.authored(cmd))
}

// heldByOther explains why a job or a schedule cannot be resumed that another pause holds, such as that of a tag. It
// returns nil if no pause holds it, or if it does not exist.
func heldByOther(ctx context.Context, s *store.Store, on store.Subject) error {
	var held *store.Pause
	switch on.Scope {
	case store.ScopeJob:
		if j, err := s.Job(ctx, on.Name); err == nil && j.Paused != nil {
			on.Name, held = j.FullName(), j.Paused
		}
	case store.ScopeSchedule:
		if list, err := s.ScheduleStatuses(ctx, on.Name); err == nil && len(list) == 1 {
			held = list[0].Paused
		}
	}
	if held == nil {
		return nil
	}
	by := store.Subject{Scope: held.Scope, Name: held.Subject}
	return badInput("%s: not paused itself; the pause of %s holds it: `dbjobs %s`", on, by, endsPause(by))
}

// endsPause returns the command that ends a pause, without the name of the program.
func endsPause(on store.Subject) string {
	switch on.Scope {
	case store.ScopeAll:
		return "unfreeze"
	case store.ScopeSchedule:
		return "schedule resume " + store.Argument(on.Name)
	case store.ScopeJob:
		return "job resume " + store.Argument(on.Name)
	}
	return "job resume --" + on.Scope + " " + store.Argument(on.Name)
}

// pauseList makes the command that lists the recorded pauses.
func (c *cli) pauseList() *cobra.Command {
	var all bool
	var limit int
	cmd := &cobra.Command{
		Use: "pauses", Short: "List the pauses in force, with who began them and why", Args: positional(),
		Long: `Lists the pauses and freezes that are in force now, a freeze first, then the newest; with --all, all that are on
record, the newest first.`,
		Example: `  dbjobs pauses --all --json`,
	}
	cmd.Flags().BoolVar(&all, "all", false, "include pauses that have ended")
	cmd.Flags().IntVar(&limit, "limit", 100, "show at most `N` pauses")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
		if limit < 1 {
			return badInput("--limit: found %d, want at least 1", limit)
		}
		list, err := s.Pauses(ctx, all, oneMore(limit))
		if err != nil {
			return err
		}
		list = shorten(c, list, limit, "pauses")
		return c.print(report.List(list), func() error { return report.Pauses(c.stdout, list) })
	})
	return c.prints(cmd)
}
