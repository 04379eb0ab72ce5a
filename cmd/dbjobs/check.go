package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

// verdict is the error that ends the command check with the exit code of a monitoring plugin. The output has
// already said everything.
type verdict report.Level

func (v verdict) Error() string { return report.Level(v).String() }

func (c *cli) check() *cobra.Command {
	var trigger string
	lastPass, overdue := store.Duration(report.IdleAfter), store.Duration(report.LateAfter)
	stuck, running := store.Duration(report.StuckAfter), store.Duration(report.LongAfter)
	cmd := &cobra.Command{
		Use: "check", Short: "Say in one line whether all is well, for a monitor", Args: positional(),
		Long: `Prints one line, and ends with the exit codes of monitoring plugins (Nagios, Icinga, Zabbix, Sensu):

  0 OK        all is well
  1 WARNING   the last run of a job has failed, a job is parked or has paused itself (on_error: pause,
              pause_after_failures), a run is stuck or has been under way for --running (a day), the last pass of a
              trigger has failed and is not older than --last-pass, a calendar ends within 60 days, or jobs sleep because
              the clock of the database was ahead
  2 CRITICAL  no tick has come for --last-pass, or a job is overdue by more than --overdue
  3 UNKNOWN   the database could not be asked, or the command line or a variable is wrong

A trigger that comes more seldom than others needs a check of its own, with --trigger and a longer --last-pass: the others
hide that it comes no more.

A run is stuck if one of these has lasted for --stuck: the run is ready, but no process has taken it; its lease is over;
or it has ended, but no tick has decided what comes next. The figures follow the sign |.

Disabled jobs do not count, and neither do jobs that somebody has paused: the figure paused has their number. In a freeze,
only the last passes and the runs under way count, and the line says frozen. The check takes no longer with many runs.`,
		Annotations: map[string]string{mistakeCode: strconv.Itoa(int(report.Unknown))},
		Example: `  dbjobs check --last-pass 3m --overdue 30m
  dbjobs check --trigger tick --json`,
	}
	cmd.Flags().Var(durationFlag{&lastPass}, "last-pass", "how old the last pass of a tick may be")
	cmd.Flags().Var(durationFlag{&overdue}, "overdue", "how long a job may be due before a tick decides about it")
	cmd.Flags().Var(durationFlag{&stuck}, "stuck", "how long a run may wait to be taken or decided")
	cmd.Flags().Var(durationFlag{&running}, "running", "how long a run may be under way")
	cmd.Flags().StringVar(&trigger, "trigger", "", "only passes of this trigger (tick --name; any)")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		h, err := c.health(cmd, trigger, time.Duration(stuck))
		if err != nil {
			h = report.Health{Unknown: c.explain(exitCode(cmd.Context(), err), err)[0]}
		}
		h.Judge(time.Duration(lastPass), time.Duration(overdue), time.Duration(running))
		if err := c.print(h, func() error { return h.Print(c.stdout) }); err != nil || h.Level == report.OK {
			return err
		}
		c.told = true
		return verdict(h.Level)
	})
	return c.prints(cmd)
}

// unjudged prints the answer of check to a command line that means nothing: a monitor shows standard output only. It is in the form
// that --json asks for, if that is known.
func (c *cli) unjudged(code int, err error) {
	if c.ran == nil || c.ran.Name() != "check" || c.told || code != int(report.Unknown) {
		return
	}
	h := report.Health{Unknown: c.explain(code, err)[0]}
	h.Judge(0, 0, 0)
	if c.print(h, func() error { return h.Print(c.stdout) }) == nil {
		_ = c.stdout.Flush() // the message on standard error says the same
	}
}

// health reads from the database what check judges.
func (c *cli) health(cmd *cobra.Command, trigger string, stuck time.Duration) (h report.Health, err error) {
	s, err := c.open(cmd, use)
	if err != nil {
		return h, err
	}
	defer c.close(s)
	ctx := cmd.Context()
	triggers, err := c.lastPass(ctx, s, trigger, &h)
	if err != nil {
		return h, err
	}
	standing, err := s.Standing(ctx, 0, 0, 1)
	if err != nil {
		return h, err
	}
	figures, err := s.Figures(ctx, stuck)
	if err != nil {
		return h, err
	}
	pauses, err := s.Pauses(ctx, false, mostPauses)
	if err != nil {
		return h, err
	}
	h.Stand(standing, figures, pauses)
	longest, err := s.LongestRuns(ctx, 1)
	if err != nil {
		return h, err
	}
	for i := range longest {
		h.Execute(&longest[i])
	}
	ahead, until, err := s.AheadOf(ctx, h.Now, triggers)
	if err != nil {
		return h, err
	}
	h.Sleep(ahead, until)
	paused, err := s.CountPaused(ctx)
	if err != nil {
		return h, err
	}
	itself, first, err := s.PausedItself(ctx)
	if err != nil {
		return h, err
	}
	h.Pause(paused, itself, first)
	calendars, err := s.Calendars(ctx)
	h.AddCalendars(calendars)
	return h, err
}

// lastPass finds the last passes, of one trigger or of all triggers, and returns all triggers.
func (c *cli) lastPass(ctx context.Context, s *store.Store, trigger string, h *report.Health) ([]store.Trigger, error) {
	triggers, err := s.Triggers(ctx)
	if err != nil {
		return nil, err
	}
	known := trigger == ""
	for i := range triggers {
		if trigger == "" || triggers[i].Name == trigger {
			known = true
			h.AddTrigger(&triggers[i])
		}
	}
	if !known {
		return nil, fmt.Errorf("no pass of the trigger %s is on record", shown(trigger))
	}
	if trigger != "" { // it is the one that counts, whichever others come
		return triggers, nil
	}
	if hidden, err := s.PassesHidden(ctx); err != nil || !hidden {
		return triggers, err
	}
	job, since, err := s.Unplanned(ctx)
	h.Hide(job, since)
	return triggers, err
}
