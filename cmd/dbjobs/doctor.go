package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/tick/doctor"
)

func (c *cli) doctor() *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Examine the database: what is wrong, and what to do about it", Args: positional(),
		Long: `Examines the database and what dbjobs depends on, and says for each finding what to do. It only reads.

It holds each nominal time of the last 30 days, or from --since on, against the runs and gaps on record. It looks for rows
that contradict each other or belong to nothing, for jobs that cannot run, and for runs that are stuck. It looks at the
trigger, the clock, the rights of the login, the settings of the server, its tables, indexes and statistics, and at the
versions of the program on other hosts. A database with millions of runs takes a minute.

It ends with 1 if it found an error or a warning. A note alone is no problem.`,
		Example: `  dbjobs doctor
  dbjobs doctor --since 90d --json`,
	}
	cmd.Flags().StringVar(&since, "since", "", "nominal times from then on are looked at: 90d ago, 2026-12-01 (30d)")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		from, err := instantFlag("since", since, ago)
		if err != nil {
			return err
		}
		if from.IsZero() {
			from = time.Now().Add(-30 * 24 * time.Hour).UTC()
		}
		s, err := c.open(cmd, probe)
		if err != nil {
			return err
		}
		defer c.close(s)
		r, err := doctor.Examine(cmd.Context(), s, doctor.Options{Clock: time.Now, Version: build().Version, Since: from})
		for i := range r.Findings { // an error in a row may quote a password
			r.Findings[i].Problem = c.db.Scrub(r.Findings[i].Problem)
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
