package tick

import (
	"context"
	"slices"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// NextOfSchedules sets the next nominal time of each schedule that is not paused, as far as its rule can be read.
func NextOfSchedules(ctx context.Context, s *store.Store, list []store.ScheduleStatus) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	var named store.Definitions
	for i := range list {
		named.Schedules = append(named.Schedules, list[i].Schedule)
	}
	calendars, err := s.KnownCalendars(ctx, named)
	if err != nil {
		return err
	}
	for i := range list {
		c := &list[i]
		calendar := calendars[c.Calendar]
		if c.Paused != nil || c.Fault != "" || c.Calendar != "" && calendar == nil {
			continue
		}
		// If the rule cannot be read, the jobs that use it are parked, and their state says why.
		if n, err := decide.NewNominal(&store.Job{CreatedAt: now}, planned(c, calendar)); err == nil {
			if t, err := n.Next(now); err == nil {
				c.Next = t
			}
		}
	}
	return nil
}

// planned returns the rule of a schedule as the plans of its jobs have it: after a rename, these keep what the old name chose
// for a `~`. A job without a plan, as where there is no job, has the rule of the definition.
func planned(c *store.ScheduleStatus, calendar *store.Calendar) []store.Rule {
	texts := slices.Compact(slices.Sorted(slices.Values(c.Planned)))
	if len(texts) == 0 {
		texts = []string{""}
	}
	list := make([]store.Rule, len(texts))
	for i, text := range texts {
		list[i] = store.Rule{Schedule: c.Schedule, Calendar: calendar, Text: text}
	}
	return list
}
