package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Settlement is what a decision would write of a run that succeeded, where that is known beforehand: the run is settled
// together with its end, and needs no decision. It holds only as long as the plan has this version, the job was not edited,
// and no other job runs after it.
type Settlement struct {
	JobID   int64
	Version int64         // of the plan
	Keep    time.Duration // of the run, from its end
	Below   int64         // runs of the job up to this number are no longer kept
	Age     time.Duration // nor are gaps that are older
}

// Retention says which of the job's history is kept once the run is settled.
func (e *Settlement) Retention(now time.Time) Retention {
	return Retention{JobID: e.JobID, Below: e.Below, Since: now.Add(-e.Age)}
}

// settlingRow is a plan that counts a run with its end.
type settlingRow struct {
	JobID   int64  `json:"job_id"`
	Version int64  `json:"version"`
	RunID   string `json:"run_id"`
}

// lockSettling locks the plans of the runs that are to be settled with their ends, as far as nobody else has them locked
// and each is as it was. Of the others it takes the settlement away: decisions settle them. The document that it returns is
// that of settle_plans; empty: there is none.
//
// Plans are locked before runs elsewhere. Here they come after, and are never waited for.
func (s *Store) lockSettling(ctx context.Context, tx *engine.Tx, rows []endingRow, free ended) (string, error) {
	var list []settlingRow
	for i := range rows {
		if r := &rows[i]; r.JobID != 0 {
			list = append(list, settlingRow{r.JobID, r.Version, r.ID})
		}
	}
	if len(list) == 0 {
		return "", nil
	}
	text, err := doc(list)
	if err != nil {
		return "", err
	}
	settles := make(map[string]bool, len(list))
	var run string
	err = tx.Query(ctx, "lock_settling", engine.Args{"rows": text}, func(r *sql.Rows) error {
		err := r.Scan(&run)
		settles[run] = true
		return err
	})
	if err != nil {
		return "", err
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
	if len(list) == 0 {
		return "", nil
	}
	return doc(list)
}
