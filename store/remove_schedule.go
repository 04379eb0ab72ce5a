package store

import (
	"context"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
)

// RemoveSchedule removes a shared schedule that no job uses. With detach, it first removes the schedule from the jobs
// that use it. Nominal times of the schedule that these jobs still had to run become a gap.
func (s *Store) RemoveSchedule(ctx context.Context, name string, detach bool, o AlterOptions) ([]Change, error) {
	return s.inTurn(ctx, o.apply(), func(a *applier) error {
		c, err := a.lockSchedule(ctx, name)
		if err != nil {
			return err
		}
		if detach {
			if err := a.detach(ctx, &c); err != nil {
				return err
			}
		}
		return a.removeSchedule(ctx, c)
	})
}

// RemoveUnused removes all shared schedules that no job uses.
func (s *Store) RemoveUnused(ctx context.Context, o AlterOptions) ([]Change, error) {
	return s.inTurn(ctx, o.apply(), func(a *applier) error {
		var list []Schedule
		if err := s.readSchedules(ctx, a.tx, "schedules", engine.Args{}, func(c Schedule, _ int64) { list = append(list, c) }); err != nil {
			return err
		}
		if err := s.countUsers(ctx, a.tx, list); err != nil {
			return err
		}
		for _, c := range list {
			if c.Jobs > 0 {
				continue
			}
			if err := a.removeSchedule(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// detach removes a schedule from the jobs that use it. A job that plain SQL has removed loses all of its links, as with the
// next decision.
func (a *applier) detach(ctx context.Context, c *Schedule) error {
	var ids []int64
	err := a.tx.Query(ctx, "schedule_jobs", engine.Args{"id": c.ID}, engine.Column(&ids))
	if err != nil || len(ids) == 0 {
		return err
	}
	if !a.dry.on {
		if err := a.lock(ctx, "lock_jobs", ids...); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(byIDs(ids), batchSize) {
		jobs, err := a.definitions(ctx, part)
		if err != nil {
			return err
		}
		var removed []int64
		jobs = slices.DeleteFunc(jobs, func(j Job) bool {
			if !j.Removed().IsZero() {
				removed = append(removed, j.ID)
			}
			return !j.Removed().IsZero()
		})
		if err := a.exec(ctx, "finish_links", removed); err != nil {
			return err
		}
		for i := range jobs {
			jobs[i].loses(c.Name)
		}
		if err := a.rewriteEach(ctx, jobs); err != nil {
			return err
		}
	}
	if c.Jobs = 0; a.dry.on {
		clear(a.dry.links)
		return nil
	}
	left := []Schedule{*c} // a job that plain SQL has linked meanwhile keeps the schedule
	err = a.s.countUsers(ctx, a.tx, left)
	c.Jobs = left[0].Jobs
	return err
}
