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

// pruneAttempts bounds how many attempts go with the runs: one that is tried every second has as many as a month has
// seconds.
const pruneAttempts = 10_000

// Prune deletes history beyond what is kept: runs whose time is over, of any job, and what the given jobs have too
// many of. It deletes a bounded number of rows, settled ones only, and returns how many runs went. What somebody else
// has locked, such as to open it again, stays.
//
// Crash window: before COMMIT nothing is gone; after it a run is gone with its attempts. One with more attempts than
// go at once loses the first of them, call by call, and goes with the last; opened again meanwhile, it keeps what is left.
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
		var err error
		gone, err = s.pruneRuns(ctx, tx, old)
		if err != nil || rows == "" {
			return err
		}
		_, err = s.exec(ctx, tx, "delete_old_gaps", args{"rows": rows, "limit": pruneSize})
		return err
	})
	return int(gone), err
}

// pruneRuns deletes those of the runs that are settled, the oldest first, as far as the bound on their attempts lets it.
func (s *Store) pruneRuns(ctx context.Context, tx *sql.Tx, old []string) (gone int64, err error) {
	if len(old) == 0 {
		return 0, nil
	}
	var whole []string // runs that go with all that they have
	var part string    // the run that does not
	room, through := int64(pruneAttempts), int64(0)
	err = s.query(ctx, tx, "lock_settled", args{"ids": old}, func(r *sql.Rows) error {
		var id string
		var first, last int64
		err := r.Scan(&id, &first, &last)
		switch n := last - first + 1; {
		case part != "":
		case n <= room:
			whole, room = append(whole, id), room-n
		default:
			part, through = id, first+room-1
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if part != "" && room > 0 {
		if _, err := s.exec(ctx, tx, "delete_first_attempts", args{"id": runID(part), "through": through}); err != nil {
			return 0, err
		}
	}
	if len(whole) == 0 {
		return 0, nil
	}
	if _, err := s.exec(ctx, tx, "delete_attempts", args{"ids": whole}); err != nil {
		return 0, err
	}
	return s.exec(ctx, tx, "delete_runs", args{"ids": whole})
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
