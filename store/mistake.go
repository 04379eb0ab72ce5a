package store

import (
	"context"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Mistake says why no run of the steps could succeed. Commands refuse such steps, so plain SQL wrote them.
func (j *Job) Mistake() string {
	if len(j.Steps) == 0 {
		return ""
	}
	if err := j.validateSteps("job " + j.FullName()); err != nil {
		return err.Error()
	}
	return ""
}

// readMistakes looks for mistakes in steps, in the jobs where one may have been made or repaired: jobs
// that are new, changed or parked, and jobs with a failed run. Nothing else shows that plain SQL changed
// a step.
func (s *Store) readMistakes(ctx context.Context, tx *engine.Tx, failed map[int64]bool, byJob map[int64]*Snapshot) error {
	var ids []int64
	look := map[int64]Job{}
	for id, c := range byJob {
		if c.Job.ID != 0 && c.Job.Removed().IsZero() && (c.Stale || c.Plan.Parked != "" || failed[id]) {
			ids = append(ids, id)
			look[id] = Job{ID: id, Owner: c.Job.Owner, Name: c.Job.Name, RepeatAfter: c.Job.RepeatAfter}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if err := s.readSteps(ctx, tx, "batch_steps", engine.Args{"ids": ids}, look); err != nil {
		return err
	}
	for id, j := range look {
		if byJob[id].fault("its steps", j.fault); j.fault == "" {
			byJob[id].Mistake = j.Mistake()
		}
	}
	return nil
}
