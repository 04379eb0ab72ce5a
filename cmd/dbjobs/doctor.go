package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/doctor"
)

func (c *cli) doctor() *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Examine the database: report what is wrong, and what to do about it", Args: positional(),
		Long: `Examines the database and what dbjobs depends on, and says for each finding what to do. It only reads.

It checks that each nominal time of the last 30 days, or since --since, has one run or lies in one gap: of one rule the
newest 20,000 at most, of all rules about two million. It finds rows that contradict each other or belong to nothing,
jobs that cannot run, and runs that are stuck. It checks the trigger, the clocks, the rights of the login, the settings
of the server, the tables with their indexes and statistics, the versions of the program on other hosts, and
DBJOBS_DATABASE_DIRECT_URL of this host, if it is set. With millions of runs it takes a minute.

The exit code is 1 if there is an error or a warning. Notes do not count.`,
		Example: `  dbjobs doctor
  dbjobs doctor --since 90d --json`,
	}
	cmd.Flags().StringVar(&since, "since", "", "check nominal times since then: 90d ago, 2026-12-01 (30d)")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		s, err := c.open(cmd, probe)
		if err != nil {
			return err
		}
		defer c.close(s)
		from, err := instantIn(cmd.Context(), s, "since", cmp.Or(since, "30d"), ago)
		if err != nil {
			return err
		}
		o := doctor.Options{Clock: time.Now, Version: build().Version, Since: from}
		if way := c.direct(); way != nil {
			o.Direct = func(ctx context.Context, s *store.Store) error {
				if err := way.Try(ctx, s, c.db.Secrets()); err != nil {
					return fmt.Errorf("%s: %w", way.From, err)
				}
				return nil
			}
		}
		r, err := doctor.Examine(cmd.Context(), s, o)
		for i := range r.Findings { // an error in a row may contain a password
			r.Findings[i].Problem = c.db.Scrub(r.Findings[i].Problem)
		}
		r.Stopped = c.db.Scrub(r.Stopped)
		if err != nil && len(r.Findings) == 0 {
			return err
		}
		if printed := c.print(r, func() error { return report.Doctor(c.stdout, &r) }); err == nil {
			err = printed
		}
		if err != nil || !r.Bad() {
			return err
		}
		c.told = true
		return verdict(report.Warning)
	})
	return c.prints(cmd)
}
