package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

func (c *cli) upcoming() *cobra.Command {
	var from, to string
	var limit int
	cmd := &cobra.Command{
		Use: "upcoming", Short: "List what all jobs will run next", Args: positional(),
		Long: `Lists the nominal times of all jobs that are to come, the next ones first: those of the next 24 hours, or between
--from and --to. A job that is paused until a time is in it from then on. What a pass decided already, such as a run that
waits, is in "run list".`,
		Example: `  dbjobs upcoming --to "tomorrow 08:00"
  dbjobs upcoming --from tomorrow --to 7d --limit 1000 --json`,
	}
	cmd.Flags().StringVar(&from, "from", "", "first time, such as tomorrow or 2026-12-01T08:00:00Z (now)")
	cmd.Flags().StringVar(&to, "to", "", "end, before which a time is listed, such as 2h from now, tomorrow 08:00 (24h after --from)")
	cmd.Flags().IntVar(&limit, "limit", 50, "show at most `N` times")
	cmd.RunE = c.with(func(ctx context.Context, s *store.Store, _ *cobra.Command, _ []string) error {
		if limit < 1 {
			return badInput("--limit: found %d, want at least 1", limit)
		}
		first, err := instantFlag("from", from, ahead)
		if err != nil {
			return err
		}
		end, err := instantFlag("to", to, ahead)
		if err != nil {
			return err
		}
		if now := time.Now(); first.Before(now) { // what was to come before is in run list
			first = now
		}
		if end.IsZero() {
			end = first.Add(24 * time.Hour)
		}
		if !end.After(first) {
			return badInput("--to: %s is not after %s", report.Instant(end), report.Instant(first))
		}
		u, err := tick.Upcoming(ctx, s, first, end, limit)
		if err != nil {
			return err
		}
		return c.print(u, func() error {
			if u.More {
				c.say("there are more until %s; raise --limit", report.Instant(end))
			}
			for i := range u.Holidays {
				c.say("job %s: %s", u.Holidays[i].Job, u.Holidays[i].Text())
			}
			if len(u.Idle) > 0 {
				c.say("left out, because disabled, parked or paused: %s; see dbjobs job list", report.Plural(len(u.Idle), "job"))
			}
			for _, k := range u.Skipped {
				c.say("job %s does not run at %s", k.Job, report.Skipped(k.Skip))
			}
			return report.Upcoming(c.stdout, u)
		})
	})
	return c.prints(cmd)
}
