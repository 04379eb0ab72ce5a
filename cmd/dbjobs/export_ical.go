package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/ical"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// feedDates is the largest number of single dates that one schedule has in a feed.
const feedDates = 2000

// feedOptions has the flags of export that concern a feed.
type feedOptions struct {
	on          bool
	path, until string // path: of a manifest, too
	jobs        []string
}

func (o *feedOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.on, "ical", false, "write a calendar feed (iCalendar) of the schedules instead")
	cmd.Flags().StringVarP(&o.path, "output", "o", "-", "file to write; - means standard output")
	cmd.Flags().StringArrayVar(&o.jobs, "job", nil, "with --ical: only this job; may be given several times")
	cmd.Flags().StringVar(&o.until, "ahead", "366d", "with --ical: how far single dates reach, for rules that an RRULE cannot say")
}

// check refuses flags that cannot be combined.
func (o *feedOptions) check(cmd *cobra.Command) error {
	for _, name := range []string{"job", "ahead"} {
		if !o.on && cmd.Flags().Changed(name) {
			return badInput("--%s belongs to --ical", name)
		}
	}
	for _, name := range []string{"manifest", "owner"} {
		if o.on && cmd.Flags().Changed(name) {
			return badInput("--%s does not go together with --ical; choose jobs with --job", name)
		}
	}
	return nil
}

// exportFeed writes the schedules as a calendar feed.
func (c *cli) exportFeed(ctx context.Context, s *store.Store, o feedOptions) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	until, err := instantFrom("ahead", o.until, ahead, now)
	if err != nil {
		return err
	}
	if !until.After(now) {
		return badInput("--ahead: %s is not after now", report.Instant(until))
	}
	jobs, err := chosenJobs(ctx, s, o.jobs)
	if err != nil {
		return err
	}
	list, idle, err := tick.Feed(ctx, s, jobs, now, until, feedDates)
	if err != nil {
		return err
	}
	f := ical.Feed{Name: "dbjobs " + c.text(c.db.Display()), Product: "dbjobs " + build().Version, Made: now}
	where := fmt.Sprintf("%x", sha256.Sum256([]byte(s.Where())))[:12] // ids of two databases may be the same
	often, beyond, cut := 0, 0, time.Time{}
	for _, r := range list {
		if !r.Beyond.IsZero() {
			beyond++
		}
		if r.Often && len(o.jobs) == 0 {
			often++
			continue
		}
		for i, e := range r.Events {
			f.Events = append(f.Events, ical.Event{Event: e, UID: fmt.Sprintf("job-%d-schedule-%d-%d@%s.dbjobs", r.Job.ID, r.Schedule.ID, i, where),
				Summary: c.text(r.Job.FullName()), Description: c.describeEvent(r, e)})
			if !e.Until.IsZero() && (cut.IsZero() || e.Until.Before(cut)) {
				cut = e.Until
			}
		}
	}
	if _, err := c.writeTo(o.path, func(w io.Writer) error { return ical.Write(w, f) }); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	c.say("wrote %s", report.Plural(len(f.Events), "event"))
	if !cut.IsZero() {
		c.say("some events do not reach as far as their schedules: the first one ends at %s; export again before then", report.Instant(cut))
	}
	if often > 0 {
		c.say("left out, because they run more than 24 times a day: %s; to include them, name their jobs with --job", report.Plural(often, "schedule"))
	}
	if beyond > 0 {
		c.say("left out, because they have no time before %s: %s; raise --ahead", report.Instant(until), report.Plural(beyond, "schedule"))
	}
	if len(idle) > 0 {
		c.say("left out, because disabled, parked or paused: %s; see dbjobs job list", report.Plural(len(idle), "job"))
	}
	return nil
}

// describeEvent says which rule makes an event.
func (c *cli) describeEvent(r tick.FeedRule, e rules.Event) string {
	text := c.text(strings.ReplaceAll(r.Schedule.Rule, "\n", " ")) + " (" + cmp.Or(r.Schedule.Zone, "UTC") + ")"
	if name := c.text(r.Schedule.Name); name != "" { // not the job's own rule
		text = "schedule " + name + ": " + text
	}
	if d := c.text(r.Job.Description); d != "" {
		text = d + "\n" + text
	}
	if !e.Until.IsZero() {
		text += "\nTimes up to " + e.Until.Format(time.RFC3339) + " are known to this calendar."
	}
	return text
}
