package main

import (
	"context"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

// authored adds the flags of a command that changes something: why, and who does it.
func (c *cli) authored(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&c.who.Reason, "reason", "", "why, for the change log")
	cmd.Flags().StringVar(&c.who.By, "by", "", "who, for the change log: else the database's login, on SQLite the system's user")
	variable(cmd, "by", "DBJOBS_BY")
	return cmd
}

// author is who changes something. The store knows its login; SQLite has none.
func (c *cli) author(s *store.Store) store.Author {
	who := c.who
	if u, err := user.Current(); who.By == "" && s.Dialect() == "sqlite" && err == nil {
		who.By = u.Username
	}
	return who
}

// subjectFlags are those that name what is paused, in the place of a job.
type subjectFlags struct{ tag, owner string }

func (f *subjectFlags) add(cmd *cobra.Command, doing string) {
	cmd.Flags().StringVar(&f.tag, "tag", "", doing+" the jobs with this tag")
	cmd.Flags().StringVar(&f.owner, "owner", "", doing+" the jobs of this owner")
}

// subject is the one thing that is named.
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
		return store.Subject{}, badInput("%s wants one of NAME, --tag and --owner", cmd.CommandPath())
	}
	return named[0], nil
}

func (c *cli) jobPause() *cobra.Command {
	var f subjectFlags
	cmd := &cobra.Command{
		Use: "pause [NAME] [--tag TAG] [--owner OWNER]", Short: "Pause a job, or those of a tag or an owner", Args: positional("NAME?"),
		Long: `Pauses a job, all jobs with a tag, or all jobs of an owner. What runs goes on; what has not begun is held; what falls
due meanwhile is a recorded gap, unless it is resumed with --missed.`,
		Example: `  dbjobs job pause rollup --reason "the source is being moved" --until 2026-12-01T08:00:00Z
  dbjobs job pause --tag nightly --reason "stock-taking"`,
	}
	f.add(cmd, "pause")
	return c.pauses(cmd, f.subject)
}

func (c *cli) jobResume() *cobra.Command {
	var f subjectFlags
	cmd := &cobra.Command{
		Use: "resume [NAME] [--tag TAG] [--owner OWNER]", Short: "End the pause of a job, of a tag or of an owner", Args: positional("NAME?"),
		Long: `Ends a pause: just the one that was begun for the same job, tag or owner. What fell due meanwhile is a recorded gap;
with --missed it counts as missed, so that the job's own policy says what of it still runs.`,
		Example: `  dbjobs job resume rollup --missed`,
	}
	f.add(cmd, "resume")
	return c.resumes(cmd, f.subject)
}

// shared is the subject of a command that names a shared schedule.
func shared(_ *cobra.Command, args []string) (store.Subject, error) {
	return store.Subject{Scope: store.ScopeSchedule, Name: args[0]}, nil
}

func (c *cli) schedulePause() *cobra.Command {
	return c.pauses(&cobra.Command{
		Use: "pause NAME", Short: "Pause a schedule for all jobs that use it", Args: positional("NAME"),
		Long: `Pauses a schedule. Its nominal times become no runs, and runs that it made and that have not begun are held; other
schedules of the same jobs, and requests, go on.`,
		Example: `  dbjobs schedule pause nightly --reason "the source is being moved"`,
	}, shared)
}

func (c *cli) scheduleResume() *cobra.Command {
	return c.resumes(&cobra.Command{
		Use: "resume NAME", Short: "End the pause of a schedule", Args: positional("NAME"),
		Long: `Ends the pause of a schedule. What fell due meanwhile is a recorded gap; with --missed it counts as missed. (Of a job
that has other schedules, too, what fell due before one of their times is a gap all the same.)`,
		Example: `  dbjobs schedule resume nightly`,
	}, shared)
}

// everything is the subject of a freeze.
func everything(*cobra.Command, []string) (store.Subject, error) {
	return store.Subject{Scope: store.ScopeAll}, nil
}

func (c *cli) freeze() *cobra.Command {
	return c.pauses(&cobra.Command{
		Use: "freeze", Short: "Pause everything: no tick decides or takes anything", Args: positional(),
		Long: `Pauses everything in this database. Ticks go on to be started and do nothing but say so; what runs goes on; a pass
that is under way takes no more. What falls due meanwhile is a recorded gap, unless unfrozen with --missed.`,
		Example: `  dbjobs freeze --reason "release 4.2" --until 2026-12-01T08:00:00Z`,
	}, everything)
}

func (c *cli) unfreeze() *cobra.Command {
	return c.resumes(&cobra.Command{
		Use: "unfreeze", Short: "End the pause of everything", Args: positional(),
		Long: `Ends a freeze. Pauses of jobs, schedules, tags and owners go on.`, Example: `  dbjobs unfreeze --missed`,
	}, everything)
}

type subjectOf func(*cobra.Command, []string) (store.Subject, error)

// pauses makes cmd one that begins a pause.
func (c *cli) pauses(cmd *cobra.Command, of subjectOf) *cobra.Command {
	var until string
	cmd.Flags().StringVar(&until, "until", "", "end by itself at this instant, such as 2026-12-01T08:00:00Z")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, cmd *cobra.Command, args []string) error {
		on, err := of(cmd, args)
		if err != nil {
			return err
		}
		end, err := instantFlag("until", until)
		if err != nil {
			return err
		}
		p, err := s.Pause(ctx, on, end, c.author(s))
		if err != nil {
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

// resumes makes cmd one that ends a pause.
func (c *cli) resumes(cmd *cobra.Command, of subjectOf) *cobra.Command {
	var missed bool
	cmd.Flags().BoolVar(&missed, "missed", false, "treat what fell due meanwhile as missed, not as paused")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, cmd *cobra.Command, args []string) error {
		on, err := of(cmd, args)
		if err != nil {
			return err
		}
		p, err := s.Resume(ctx, on, missed, c.author(s))
		if err != nil {
			return err
		}
		c.say("resumed %s", on)
		if on.Scope == store.ScopeJob {
			j, err := s.Job(ctx, on.Name)
			if err != nil {
				return err
			}
			if j.Paused != nil {
				c.say("it is still paused: %s", report.Paused(*j.Paused))
			}
		}
		if !c.asJSON {
			return nil
		}
		return report.JSON(c.stdout, p)
	})
	return c.prints(c.authored(cmd))
}

// instantFlag reads an instant with its offset from UTC; an empty text is the zero time.
func instantFlag(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, badInput("--%s: found %q, want an instant such as 2026-12-01T08:00:00Z", flag, text)
	}
	return t.UTC(), nil
}

// pauseList is the list of the recorded intervals.
func (c *cli) pauseList() *cobra.Command {
	var all bool
	var limit int
	cmd := &cobra.Command{
		Use: "pauses", Short: "List the pauses that hold, with who began them and why", Args: positional(),
		Long:    `Lists the pauses and freezes that hold now, or with --all every one on record, the newest first.`,
		Example: `  dbjobs pauses --all --json`,
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that have ended, too")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most so many")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
		if limit < 1 {
			return badInput("--limit: found %d, want at least 1", limit)
		}
		list, err := s.Pauses(ctx, all, limit)
		if err != nil {
			return err
		}
		return c.print(report.List(list), func() error { return report.Pauses(c.stdout, list) })
	})
	return c.prints(cmd)
}
