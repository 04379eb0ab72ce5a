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
// many of. It deletes a bounded number of rows, settled ones only, and returns how many runs went. What somebody else
// has locked, such as to open it again, stays.
//
// Crash window: before COMMIT nothing is gone; after it a run is gone with its attempts.
func (s *Store) Prune(ctx context.Context, kept []Kept) (int, error) {
	var old []string
	if err := s.query(ctx, s.db, "expired_runs", args{"now": s.now(), "limit": pruneSize}, ids(&old)); err != nil {
		return 0, err
	}
	rows, err := s.keptRows(kept)
	if err != nil {
		return 0, err
	}
	if rows != "" {
		if err := s.query(ctx, s.db, "surplus_runs", args{"rows": rows, "limit": pruneSize}, ids(&old)); err != nil {
			return 0, err
		}
	}
	if len(old) == 0 && rows == "" {
		return 0, nil
	}
	var gone int64 // a run can be too old and one of too many
	err = s.tx(ctx, func(tx *sql.Tx) error {
		gone = 0
		var settled []string
		if len(old) > 0 {
			if err := s.query(ctx, tx, "lock_settled", args{"ids": old}, ids(&settled)); err != nil {
				return err
			}
		}
		if len(settled) > 0 {
			_, err := s.exec(ctx, tx, "delete_attempts", args{"ids": settled})
			if err != nil {
				return err
			}
			if gone, err = s.exec(ctx, tx, "delete_runs", args{"ids": settled}); err != nil {
				return err
			}
		}
		if rows == "" {
			return nil
		}
		_, err := s.exec(ctx, tx, "delete_old_gaps", args{"rows": rows, "limit": pruneSize})
		return err
	})
	return int(gone), err
}

// keptRows is a document of what is kept; empty: there is nothing to keep.
func (s *Store) keptRows(kept []Kept) (string, error) {
	type row struct {
		Kept
		Since string `json:"since"`
	}
	rows := make([]row, len(kept))
	for i, k := range kept {
		rows[i] = row{k, s.d.instantText(k.Since)}
	}
	if len(rows) == 0 {
		return "", nil
	}
	return doc(rows)
}
