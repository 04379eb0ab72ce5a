package store

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Settlement is what a decision would write for a run that succeeded, if that is known beforehand. The run is then
// settled together with its end, and needs no decision. A settlement is valid only while the plan has this version,
// the job is not edited, and no other job runs after it.
type Settlement struct {
	JobID   int64
	Version int64         // of the plan
	Keep    time.Duration // of the run, from its end
	Below   int64         // runs of the job up to this number are no longer kept
}

// Retention says which runs of the job are kept once the run is settled.
func (e *Settlement) Retention() Retention { return Retention{JobID: e.JobID, Below: e.Below} }

// settlingRow is a plan that counts a run together with the run's end.
type settlingRow struct {
	JobID   int64  `json:"job_id"`
	Version int64  `json:"version"`
	RunID   string `json:"run_id"`
}

// lockSettling locks the plans of the runs that are to be settled with their ends. It skips the plans that other
// sessions have locked, and those that have changed. It removes the settlement of the runs of those plans: decisions
// settle them. It returns the rows for settle_plans.
//
// Elsewhere, plans are locked before runs. Here they are locked after them, but the lock never waits.
func (s *Store) lockSettling(ctx context.Context, tx *engine.Tx, rows []endingRow, free ended) ([]settlingRow, error) {
	var list []settlingRow
	for i := range rows {
		if r := &rows[i]; r.JobID != 0 {
			list = append(list, settlingRow{r.JobID, r.Version, r.ID})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	text, err := doc(list)
	if err != nil {
		return nil, err
	}
	settles := make(map[string]bool, len(list))
	var run string
	if err := tx.Query(ctx, "lock_settling", engine.Args{"rows": text}, engine.Scan(func() { settles[run] = true }, &run)); err != nil {
		return nil, err
	}
	list = list[:0]
	for i := range rows {
		r := &rows[i]
		if r.JobID != 0 && settles[r.ID] {
			list, free[delivered{r.ID, r.Fence}] = append(list, settlingRow{r.JobID, r.Version, r.ID}), true
			continue
		}
		r.JobID, r.Version, r.Keep = 0, 0, 0
	}
	return list, nil
}
