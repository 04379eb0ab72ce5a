package store

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Retention says which of a job's history is kept.
type Retention struct {
	JobID int64     `json:"job_id"`
	Below int64     `json:"below"` // runs up to this number are deleted
	Since time.Time `json:"-"`     // gaps recorded before this are deleted
}

// pruneSize bounds the runs that one transaction deletes, so that a year of history is not deleted
// in one transaction.
const pruneSize = 1000

// pruneAttempts bounds the attempts that one transaction deletes: a run that is tried every second
// has millions of them after a month.
const pruneAttempts = 10_000

// keepRecords is how long an entry of the change log is kept, a job that was removed, a pause that has ended, and a
// stretch of ticks. The entries that say how a definition came to be as it is are kept for longer.
const keepRecords = 400 * 24 * time.Hour

// Sweep returns which history is kept for some jobs, chosen at random, whether or not they have run
// lately. In time it chooses every job, so that history is also deleted where an earlier pass had
// no time for it, or where keep was changed. Of these jobs it deletes those that were removed long
// ago. It also deletes other old records: see forgetRecords.
func (s *Store) Sweep(ctx context.Context) (kept []Retention, err error) {
	a := engine.Args{"now": s.now(), "share": s.chance(), "limit": sweepSize, "later_ms": -keepRecords.Milliseconds()}
	var removed []int64
	var now time.Time
	var k Retention
	var age Duration
	var long bool
	err = s.db.Query(ctx, "sweep_jobs", a, engine.Scan(func() {
		k.Since = now.Add(-time.Duration(age))
		if kept = append(kept, k); long {
			removed = append(removed, k.JobID)
		}
	}, engine.At(&now), &k.JobID, &k.Below, ms{&age}, &long))
	if err != nil {
		return nil, err
	}
	if err := s.forget(ctx, removed, now); err != nil {
		return kept, err
	}
	return kept, s.forgetRecords(ctx, a)
}

// sweepSize is the number of jobs that a sweep looks at, and of records of each kind.
const sweepSize = 100

// Prune deletes history that is not kept: runs of any job that are too old, and the surplus runs
// and old gaps of the given jobs. Each transaction deletes a bounded number of rows. Prune
// continues for as long as something is left and more returns true. It takes the jobs in a random
// order, so that none of them is always the last. It deletes settled runs only, and leaves rows
// that another session has locked, for example to open a run again. It returns the number of
// deleted runs.
//
// Crash window: before a COMMIT all rows of the transaction are there; after it a run is deleted
// with its attempts. A run with too many attempts for one transaction loses the oldest of them
// first, and is deleted with the last. If it is opened again meanwhile, it keeps the attempts that
// are left, and is kept from its new end on.
func (s *Store) Prune(ctx context.Context, kept []Retention, more func() bool) (gone int, err error) {
	rand.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
	var parts []portion
	for chunk := range slices.Chunk(kept, pruneSize) {
		parts = append(parts, portion{chunk, leftOver{surplus: true, gaps: true}})
	}
	for expired := true; ; { // in turn: runs that are too old, and the surplus of some of the jobs
		p := portion{}
		if len(parts) > 0 {
			p, parts = parts[0], parts[1:]
		}
		p.left.expired = expired
		n, left, err := s.pruneOnce(ctx, p)
		gone += n
		if err != nil {
			return gone, err
		}
		if expired = left.expired; left.surplus || left.gaps {
			parts = append(parts, portion{p.kept, left})
		}
		if !expired && len(parts) == 0 || !more() {
			return gone, nil
		}
	}
}

// portion is some jobs, and what may be left to delete of them. A look for old gaps reads all gaps of the jobs, so there is none
// after one that found the last of them.
type portion struct {
	kept []Retention
	left leftOver
}

// leftOver says what may be left to delete: runs of any job that are too old, surplus runs, old gaps.
type leftOver struct{ expired, surplus, gaps bool }

// pruneOnce deletes a bounded number of rows in one transaction. If it could delete nothing,
// because other sessions have all of it locked, it reports that nothing is left.
func (s *Store) pruneOnce(ctx context.Context, p portion) (gone int, left leftOver, err error) {
	var old []string
	if p.left.expired {
		if err := s.db.Query(ctx, "expired_runs", engine.Args{"now": s.now(), "limit": pruneSize}, engine.Column(&old)); err != nil {
			return 0, left, err
		}
	}
	tooOld := len(old)
	rows, err := s.keptRows(p.kept)
	if err != nil {
		return 0, left, err
	}
	if rows != "" && p.left.surplus {
		if err := s.db.Query(ctx, "surplus_runs", engine.Args{"rows": rows, "limit": pruneSize}, engine.Column(&old)); err != nil {
			return 0, left, err
		}
	}
	if len(old) == 0 && rows == "" {
		return 0, left, nil
	}
	var runs, gaps int64 // one run may be both too old and surplus
	var cut bool
	err = s.db.InTx(ctx, func(tx *engine.Tx) (err error) {
		if runs, cut, err = s.pruneRuns(ctx, tx, old, old[tooOld:]); err != nil || !p.left.gaps {
			return err
		}
		gaps, err = s.pruneGaps(ctx, tx, rows)
		return err
	})
	if err == nil && (runs+gaps > 0 || cut) {
		left.expired = tooOld == pruneSize || cut && tooOld > 0
		left.surplus = len(old)-tooOld == pruneSize || cut && len(old) > tooOld
		left.gaps = gaps == pruneSize
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

// pruneGaps deletes gaps that are too old, except for those that another session has locked.
func (s *Store) pruneGaps(ctx context.Context, tx *engine.Tx, rows string) (int64, error) {
	if rows == "" {
		return 0, nil
	}
	var list []gapKey
	var k gapKey
	var through time.Time
	err := tx.Query(ctx, "lock_old_gaps", engine.Args{"rows": rows, "limit": pruneSize}, engine.Scan(func() {
		k.ThroughAt = s.db.Engine().Instant(through)
		list = append(list, k)
	}, &k.JobID, &k.ScheduleID, engine.At(&through), &k.Reason))
	if err != nil || len(list) == 0 {
		return 0, err
	}
	text, err := doc(list)
	if err != nil {
		return 0, err
	}
	return tx.Exec(ctx, "delete_gaps", engine.Args{"rows": text})
}

// pruneRuns deletes those of the runs that are settled, the oldest first. It stops at the bound on
// attempts; cut reports whether it did. A run that is not surplus has to be too old still: it may have
// been opened again since it was read, and have ended.
func (s *Store) pruneRuns(ctx context.Context, tx *engine.Tx, old, surplus []string) (gone int64, cut bool, err error) {
	if len(old) == 0 {
		return 0, false, nil
	}
	var whole []string // runs that are deleted with all their attempts
	var part string    // the run of which only some attempts are deleted
	room, through := int64(pruneAttempts), int64(0)
	var id string
	var first, last int64
	var tooOld bool
	err = tx.Query(ctx, "lock_settled", engine.Args{"now": s.now(), "ids": old}, engine.Scan(func() {
		switch n := last - first + 1; {
		case part != "" || !tooOld && !slices.Contains(surplus, id):
		case n <= room:
			whole, room = append(whole, id), room-n
		default:
			part, through = id, first+room-1
		}
	}, &id, &first, &last, &tooOld))
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

// keptRows is a document with a row for each job; empty: there is no job.
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
