package store

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Retention says what stays of a job's history.
type Retention struct {
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

// keepChanges is how long the change log is kept, beyond what a definition that stands, or one that is done, came by.
const keepChanges = 400 * 24 * time.Hour

// Sweep finds what stays of the history of some jobs, wherever in the table, whether or not they have run of late: in time
// all of them come up, so that what an earlier pass had no time for, or what another keep leaves, goes too. With the same
// dice it deletes changes of definitions that are older than is kept, but for those that say what a definition is now.
func (s *Store) Sweep(ctx context.Context) (kept []Retention, err error) {
	a := engine.Args{"now": s.now(), "share": s.chance() * 0.999, "limit": sweepSize, "later_ms": -keepChanges.Milliseconds()}
	err = s.db.Query(ctx, "sweep_jobs", a, func(r *sql.Rows) error {
		var k Retention
		var now time.Time
		var age Duration
		err := r.Scan(engine.At(&now), &k.JobID, &k.Below, ms{&age})
		k.Since = now.Add(-time.Duration(age))
		kept = append(kept, k)
		return err
	})
	if err != nil {
		return nil, err
	}
	var old []int64
	err = s.db.Query(ctx, "old_changes", a, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		old = append(old, id)
		return err
	})
	if err != nil || len(old) == 0 {
		return kept, err
	}
	_, err = s.db.Exec(ctx, "delete_changes", engine.Args{"ids": old})
	return kept, err
}

// sweepSize is how many jobs, or changes, a sweep looks at.
const sweepSize = 100

// Prune deletes history beyond what is kept: runs whose time is over, of any job, and what the given jobs have too many of,
// a bounded number of rows in each transaction, for as long as more says so and something is left. The jobs come in any
// order, so that none is always the last. Only settled runs go; what somebody else has locked, such as to open it again,
// stays. It returns how many runs went.
//
// Crash window: before a COMMIT nothing of its rows is gone; after it a run is gone with its attempts. One with more
// attempts than go at once loses the first of them, call by call, and goes with the last; opened again meanwhile, it keeps
// what is left.
func (s *Store) Prune(ctx context.Context, kept []Retention, more func() bool) (gone int, err error) {
	rand.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
	chunks := slices.Collect(slices.Chunk(kept, pruneSize))
	for expired := true; ; { // in turn: what is too old, and what some of the jobs have too many of
		var chunk []Retention
		if len(chunks) > 0 {
			chunk, chunks = chunks[0], chunks[1:]
		}
		n, left, err := s.pruneOnce(ctx, expired, chunk)
		gone += n
		if err != nil {
			return gone, err
		}
		if expired = expired && left.expired; left.surplus {
			chunks = append(chunks, chunk)
		}
		if !expired && len(chunks) == 0 || !more() {
			return gone, nil
		}
	}
}

// leftOver says whether there may be more than was deleted.
type leftOver struct{ expired, surplus bool }

// pruneOnce deletes a bounded number of rows in one transaction. Where nothing went, since somebody else has it locked,
// nothing is left to be done.
func (s *Store) pruneOnce(ctx context.Context, expired bool, kept []Retention) (gone int, left leftOver, err error) {
	var old []string
	if expired {
		if err := s.db.Query(ctx, "expired_runs", engine.Args{"now": s.now(), "limit": pruneSize}, ids(&old)); err != nil {
			return 0, left, err
		}
	}
	tooOld := len(old)
	rows, err := s.keptRows(kept)
	if err != nil {
		return 0, left, err
	}
	if rows != "" {
		if err := s.db.Query(ctx, "surplus_runs", engine.Args{"rows": rows, "limit": pruneSize}, ids(&old)); err != nil {
			return 0, left, err
		}
	}
	if len(old) == 0 && rows == "" {
		return 0, left, nil
	}
	var runs, gaps int64 // a run can be too old and one of too many
	var part bool
	err = s.db.InTx(ctx, func(tx *engine.Tx) (err error) {
		if runs, part, err = s.pruneRuns(ctx, tx, old); err != nil {
			return err
		}
		gaps, err = s.pruneGaps(ctx, tx, rows)
		return err
	})
	if err == nil && (runs+gaps > 0 || part) {
		left.expired = tooOld == pruneSize || part && tooOld > 0
		left.surplus = len(old)-tooOld == pruneSize || gaps == pruneSize || part && len(old) > tooOld
	}
	return int(runs), left, err
}

// gapKey is the key of a gap, by the names of its columns.
type gapKey struct {
	JobID      int64  `json:"job_id"`
	ScheduleID int64  `json:"schedule_id"`
	ThroughAt  string `json:"through_at"`
	Reason     string `json:"reason"`
}

// pruneGaps deletes gaps that were recorded before what is kept, of those that nobody else has locked.
func (s *Store) pruneGaps(ctx context.Context, tx *engine.Tx, rows string) (int64, error) {
	if rows == "" {
		return 0, nil
	}
	var list []gapKey
	err := tx.Query(ctx, "lock_old_gaps", engine.Args{"rows": rows, "limit": pruneSize}, func(r *sql.Rows) error {
		var k gapKey
		var through time.Time
		err := r.Scan(&k.JobID, &k.ScheduleID, engine.At(&through), &k.Reason)
		k.ThroughAt = s.db.Engine().Instant(through)
		list = append(list, k)
		return err
	})
	if err != nil || len(list) == 0 {
		return 0, err
	}
	text, err := doc(list)
	if err != nil {
		return 0, err
	}
	return tx.Exec(ctx, "delete_gaps", engine.Args{"rows": text})
}

// pruneRuns deletes those of the runs that are settled, the oldest first, as far as the bound on their attempts lets it:
// cut reports whether it did not let all of them.
func (s *Store) pruneRuns(ctx context.Context, tx *engine.Tx, old []string) (gone int64, cut bool, err error) {
	if len(old) == 0 {
		return 0, false, nil
	}
	var whole []string // runs that go with all that they have
	var part string    // the run that does not
	room, through := int64(pruneAttempts), int64(0)
	err = tx.Query(ctx, "lock_settled", engine.Args{"ids": old}, func(r *sql.Rows) error {
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
		return 0, false, err
	}
	if part != "" && room > 0 {
		if _, err := tx.Exec(ctx, "delete_first_attempts", engine.Args{"id": engine.ID(part), "through": through}); err != nil {
			return 0, false, err
		}
	}
	if len(whole) == 0 {
		return 0, part != "", nil
	}
	if _, err := tx.Exec(ctx, "delete_attempts", engine.Args{"ids": whole}); err != nil {
		return 0, false, err
	}
	gone, err = tx.Exec(ctx, "delete_runs", engine.Args{"ids": whole})
	return gone, part != "", err
}

// keptRows is a document of what is kept; empty: there is nothing to keep.
func (s *Store) keptRows(kept []Retention) (string, error) {
	type row struct {
		Retention
		Since string `json:"since"`
	}
	rows := make([]row, len(kept))
	for i, k := range kept {
		rows[i] = row{k, s.db.Engine().Instant(k.Since)}
	}
	if len(rows) == 0 {
		return "", nil
	}
	return doc(rows)
}
