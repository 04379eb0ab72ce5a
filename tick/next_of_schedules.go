package tick

import (
	"context"

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
		if t, err := decide.First(store.Job{}, c.Schedule, calendar, now); err == nil {
			c.Next = t
		}
	}
	return nil
}
