package tick

import (
	"context"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// NextOfSchedules sets the next nominal time of each schedule that is not paused, as far as its rule can be read. One with a
// calendar has none here: its holidays are read with the jobs that use it.
func NextOfSchedules(ctx context.Context, s *store.Store, list []store.ScheduleStatus) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		c := &list[i]
		if c.Paused != nil || c.Calendar != "" || c.Fault != "" {
			continue
		}
		if t, err := decide.First(store.Job{}, c.Schedule, now); err == nil { // else the jobs that use it are parked, and say why
			c.Next = t
		}
	}
	return nil
}
