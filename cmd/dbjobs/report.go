package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/cmd/internal/webpage"
)

// The limits of a page, so that a browser on a phone can still open it. The limit of runs is a flag.
const (
	pageJobs     = 2000
	pageGaps     = 2000
	pageSilences = 500
	pageTimes    = 20_000 // of the calendar, over all jobs
)

// pageOptions are the flags of report.
type pageOptions struct {
	path, since, until string
	jobs               []string
	limit              int
}

func (c *cli) report() *cobra.Command {
	o := pageOptions{}
	cmd := &cobra.Command{
		Use: "report -o report.html", Short: "Write an HTML page of runs, failures and coming times", Args: positional(),
		Long: `Writes one HTML file: what needs attention, a timeline of the runs, failures with their errors, how long jobs took
and how late they were, times without a run, silences of triggers, and a calendar of the coming weeks. The page loads
nothing from the network: open it from a folder, or from object storage.

The file is replaced in one step. Only its owner may read a new file; an existing file keeps its mode.`,
		Example: `  dbjobs report -o report.html
  dbjobs report -o - --since 24h --ahead 7d --job rollup > rollup.html`,
	}
	cmd.Flags().StringVarP(&o.path, "output", "o", "", "file to write; - means standard output")
	cmd.Flags().StringVar(&o.since, "since", "7d", "runs made since then, and those that have not ended: 24h ago, yesterday, 2026-12-01T08:00:00Z")
	cmd.Flags().StringVar(&o.until, "ahead", "14d", "how far the calendar reaches: 30d, 2026-12-31")
	cmd.Flags().StringArrayVar(&o.jobs, "job", nil, "only this job; may be given several times")
	cmd.Flags().IntVar(&o.limit, "limit", 10_000, "show at most `N` runs, the newest")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error {
		switch {
		case o.path == "":
			return badInput("report needs a file to write; give it with -o report.html, or -o - for standard output")
		case o.limit < 1:
			return badInput("--limit: found %d, want at least 1", o.limit)
		}
		s, err := c.open(cmd, use)
		if err != nil {
			return err
		}
		defer c.close(s)
		f, err := c.facts(cmd.Context(), s, o)
		if err != nil {
			return err
		}
		size, err := c.writeTo(o.path, func(w io.Writer) error { return webpage.Write(w, f) })
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		c.say("wrote %s of %s, %s kB", report.Plural(len(f.Runs.ID), "run"), report.Plural(len(f.Jobs), "job"), thousands(int(size+999)/1000))
		for _, text := range f.Cut {
			c.say("%s", text)
		}
		return nil
	})
	return cmd
}
