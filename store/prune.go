package store

import (
	"context"
	"database/sql"
	"time"
)

// Kept says what stays of a job's history.
type Kept struct {
	JobID int64     `json:"job_id"`
	Below int64     `json:"below"` // runs up to this number go
	Since time.Time `json:"-"`     // gaps recorded before go
}

// pruneSize bounds what one call deletes, so that a year of history goes over many passes instead of in one
// transaction.
const pruneSize = 1000

// Prune deletes history beyond what is kept: runs whose time is over, of any job, and what the given jobs have too
// many of. It deletes a bounded number of rows, settled ones only, and returns how many runs went.
func (s *Store) Prune(ctx context.Context, kept []Kept) (int, error) {
	var ids []string
	collect := func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	}
	if err := s.query(ctx, s.db, "expired_runs", args{"now": s.now(), "limit": pruneSize}, collect); err != nil {
		return 0, err
	}
	if len(kept) > 0 {
		type row struct {
			Kept
			Since string `json:"since"`
		}
		rows := make([]row, len(kept))
		for i, k := range kept {
			rows[i] = row{k, s.d.instantText(k.Since)}
		}
		text, err := doc(rows)
		if err != nil {
			return 0, err
		}
		if err := s.query(ctx, s.db, "surplus_runs", args{"rows": text, "limit": pruneSize}, collect); err != nil {
			return 0, err
		}
		if _, err := s.exec(ctx, s.db, "delete_old_gaps", args{"rows": text}); err != nil {
			return 0, err
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	var gone int64 // a run can be too old and one of too many
	err := s.tx(ctx, func(tx *sql.Tx) error {
		_, err := s.exec(ctx, tx, "delete_attempts", args{"ids": ids})
		if err != nil {
			return err
		}
		gone, err = s.exec(ctx, tx, "delete_runs", args{"ids": ids})
		return err
	})
	return int(gone), err
}
