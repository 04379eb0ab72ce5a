package store

import (
	"cmp"
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
	Since time.Time `json:"-"`     // gaps recorded before this are deleted; zero: a sweep looks for them
	// Oldest is the number of the oldest settled run, if it has ended before Since: then the age was made smaller after that, or a pass had
	// no time. From this run on, those that have ended before Since are deleted. Zero: nothing is known of it.
	Oldest int64 `json:"-"`
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
// no time for it, or where keep was changed. What it asks of each job is one row: runs end about in the order of their numbers, so
// if the oldest of those that are settled is not too old, the others are taken for young, too. Of these jobs it deletes those that were removed long
// ago.
func (s *Store) Sweep(ctx context.Context) (kept []Retention, err error) {
	a := engine.Args{"now": s.now(), "share": s.chance(), "limit": sweepSize, "later_ms": -keepRecords.Milliseconds()}
	var removed []int64
	var now time.Time
	var k Retention
	var age Duration
	var long bool
	var ended engine.Moment // the oldest settled run
	err = s.db.Query(ctx, "sweep_jobs", a, engine.Scan(func() {
		if k.Since = now.Add(-time.Duration(age)); !ended.Set() || !ended.Before(k.Since) {
			k.Oldest = 0
		}
		if kept = append(kept, k); long {
			removed = append(removed, k.JobID)
		}
	}, engine.At(&now), &k.JobID, &k.Below, ms{&age}, &long, &k.Oldest, &ended))
	if err != nil {
		return nil, err
	}
	return kept, s.forget(ctx, removed, now)
}

// sweepSize is the number of jobs that a sweep looks at, and of old records of each kind that are looked for at once.
const sweepSize = 100

// Prune deletes history that is not kept: runs of any job that are too old, and the surplus runs
// and old gaps of the given jobs. The age that counts is the one that the job has now. A run that
// was to expire by a smaller one is kept for longer, and its row says until when. Each transaction
// deletes a bounded number of rows. Prune continues for as long as something is left and more
// returns true. It takes the jobs in a random order, so that none of them is always the last. It
// deletes settled runs only, and leaves rows that another session has locked, for example to open a
// run again. It returns the number of deleted runs.
//
// Crash window: before a COMMIT all rows of the transaction are there; after it a run is deleted
// with its attempts. A run with too many attempts for one transaction loses the oldest of them
// first, and is deleted with the last. If it is opened again meanwhile, it keeps the attempts that
// are left, and is kept from its new end on.
func (s *Store) Prune(ctx context.Context, kept []Retention, more func() bool) (gone int, err error) {
	rand.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
	var parts []portion
	for chunk := range slices.Chunk(kept, pruneSize) {
		parts = append(parts, portion{chunk, leftOver{surplus: true, gaps: true}, pruneSize})
	}
	for expired := true; ; { // in turn: runs that are too old, and the surplus of some of the jobs
		var p portion
		if len(parts) > 0 {
			p, parts = parts[0], parts[1:]
		}
		p.left.expired = expired
		n, left, err := s.pruneOnce(ctx, &p)
		gone += n
		if err != nil {
			return gone, err
		}
		if expired = left.expired; left.surplus || left.gaps {
			p.left, p.oldest = left, p.oldest+pruneSize
			parts = append(parts, p)
		}
		if !expired && len(parts) == 0 || !more() {
			return gone, nil
		}
	}
}

// portion is some jobs, and what may be left to delete of them. A look for old gaps goes over all gaps of the jobs, and there may
// be very many: so only those of a sweep are looked at, and not again after a look that found the last of them.
type portion struct {
	kept   []Retention
	left   leftOver
	oldest int64 // how many runs, from Oldest on, are looked at for their age
}

// found notes in which of its jobs a look has found runs, in the order of the rows. A job without one is not looked at further for
// the age of its runs, since each further look would read all of its young ones. A full look has not come to the jobs behind its last one.
func (p *portion) found(jobs map[int64]bool, full bool) {
	p.kept = slices.Clone(p.kept)
	came := len(p.kept)
	for full && came > 0 && !jobs[p.kept[came-1].JobID] {
		came--
	}
	for i := range p.kept[:came] {
		if k := &p.kept[i]; !jobs[k.JobID] {
			k.Oldest = 0
		}
	}
}

// aged reports whether one of the jobs may have more runs that are too old, from Oldest on.
func (p portion) aged() bool {
	return slices.ContainsFunc(p.kept, func(k Retention) bool { return k.Oldest > 0 })
}

// swept reports whether one of the jobs is of a sweep.
func (p portion) swept() bool {
	return slices.ContainsFunc(p.kept, func(k Retention) bool { return !k.Since.IsZero() })
}

// leftOver says what may be left to delete: runs of any job that are too old, surplus runs, old gaps.
type leftOver struct{ expired, surplus, gaps bool }

// pruneOnce deletes a bounded number of rows in one transaction. If it could delete nothing,
// because other sessions have all of it locked, it reports that nothing is left.
func (s *Store) pruneOnce(ctx context.Context, p *portion) (gone int, left leftOver, err error) {
	rows, err := s.keptRows(*p)
	if err != nil {
		return 0, left, err
	}
	old, err := s.oldRuns(ctx, p, rows)
	p.left.gaps = p.left.gaps && p.swept()
	if err != nil || len(old.ids) == 0 && !p.left.gaps {
		return 0, left, err
	}
	var runs pruned // one run may be both too old and surplus
	var gaps int64
	err = s.db.InTx(ctx, func(tx *engine.Tx) (err error) {
		if runs, err = s.pruneRuns(ctx, tx, old); err != nil || !p.left.gaps {
			return err
		}
		gaps, err = s.pruneGaps(ctx, tx, *p)
		return err
	})
	if err == nil && (runs.gone+runs.later+gaps > 0 || runs.cut) {
		surplus := len(old.ids) - old.expired
		left.expired = old.expired == pruneSize || runs.cut && old.expired > 0
		left.surplus = surplus == pruneSize || surplus > 0 && (runs.cut || p.aged())
		left.gaps = gaps == pruneSize
	}
	return int(runs.gone), left, err
}

// oldRuns are runs that may be deleted.
type oldRuns struct {
	ids     []string
	expired int      // how many of them are there because they have expired; the others are surplus, or older than their job keeps now
	surplus []string // these are surplus, however old they are
}

// oldRuns looks for runs of any job that have expired, and for those of the portion. The portion notes which of its jobs had some.
func (s *Store) oldRuns(ctx context.Context, p *portion, rows string) (old oldRuns, err error) {
	if p.left.expired {
		if err := s.db.Query(ctx, "expired_runs", engine.Args{"now": s.now(), "limit": pruneSize}, engine.Column(&old.ids)); err != nil {
			return old, err
		}
	}
	old.expired = len(old.ids)
	if rows == "" || !p.left.surplus {
		return old, nil
	}
	var id string
	var job int64
	var surplus bool
	jobs := make(map[int64]bool)
	err = s.db.Query(ctx, "surplus_runs", engine.Args{"rows": rows, "limit": pruneSize}, engine.Scan(func() {
		jobs[job] = true
		if old.ids = append(old.ids, id); surplus {
			old.surplus = append(old.surplus, id)
		}
	}, &id, &job, &surplus))
	p.found(jobs, len(old.ids)-old.expired == pruneSize)
	return old, err
}

// gapKey is the key of a gap, by the names of its columns.
type gapKey struct {
	JobID      int64  `json:"job_id"`
	ScheduleID int64  `json:"schedule_id"`
	ThroughAt  string `json:"through_at"`
	Reason     string `json:"reason"`
}

// pruneGaps deletes gaps that are too old, except for those that another session has locked.
func (s *Store) pruneGaps(ctx context.Context, tx *engine.Tx, p portion) (int64, error) {
	p.kept = slices.DeleteFunc(slices.Clone(p.kept), func(k Retention) bool { return k.Since.IsZero() })
	rows, err := s.keptRows(p)
	if err != nil {
		return 0, err
	}
	var list []gapKey
	var k gapKey
	var through time.Time
	err = tx.Query(ctx, "lock_old_gaps", engine.Args{"rows": rows, "limit": pruneSize}, engine.Scan(func() {
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

// pruned says what became of runs that might be deleted.
type pruned struct {
	gone  int64 // deleted
	later int64 // these expire later, since their job keeps them for longer now
	cut   bool  // the bound on attempts has left some
}

// verdict says what is to be done with runs that are locked.
type verdict struct {
	whole   []string // deleted with all their attempts
	later   []string // they expire later
	part    string   // loses its attempts up to the number through
	through int64
}

// pruneRuns deletes those of the runs that are settled, the oldest first. It stops at the bound on attempts.
func (s *Store) pruneRuns(ctx context.Context, tx *engine.Tx, old oldRuns) (done pruned, err error) {
	if len(old.ids) == 0 {
		return done, nil
	}
	v, err := s.judge(ctx, tx, old)
	if err != nil {
		return done, err
	}
	done.cut = v.part != ""
	if done.cut && v.through > 0 {
		if _, err := tx.Exec(ctx, "delete_first_attempts", engine.Args{"id": engine.ID(v.part), "through": v.through}); err != nil {
			return done, err
		}
	}
	if len(v.later) > 0 {
		if done.later, err = tx.Exec(ctx, "expire_later", engine.Args{"ids": v.later}); err != nil {
			return done, err
		}
	}
	if len(v.whole) == 0 {
		return done, nil
	}
	if _, err := tx.Exec(ctx, "delete_attempts", engine.Args{"ids": v.whole}); err != nil {
		return done, err
	}
	done.gone, err = tx.Exec(ctx, "delete_runs", engine.Args{"ids": v.whole})
	return done, err
}

// judge locks those of the runs that are settled. A run that is not surplus has to be too old still: it may have been opened
// again since it was read, and have ended, or its job keeps it for longer now.
func (s *Store) judge(ctx context.Context, tx *engine.Tx, old oldRuns) (v verdict, err error) {
	room := int64(pruneAttempts)
	var id string
	var first, last int64
	var tooOld, expired bool
	err = tx.Query(ctx, "lock_settled", engine.Args{"now": s.now(), "ids": old.ids}, engine.Scan(func() {
		goes := tooOld || slices.Contains(old.surplus, id)
		switch n := last - first + 1; {
		case !goes && expired:
			v.later = append(v.later, id)
		case !goes || v.part != "":
		case n <= room:
			v.whole, room = append(v.whole, id), room-n
		default:
			v.part = id
			if room > 0 {
				v.through = first + room - 1
			}
		}
	}, &id, &first, &last, &tooOld, &expired))
	return v, err
}

// keptRows is a document with a row for each job of a portion; empty: there is no job. Of runs up to the number through, those
// are wanted that are surplus or too old.
func (s *Store) keptRows(p portion) (string, error) {
	type row struct {
		Retention
		Through int64  `json:"through"`
		Since   string `json:"since"`
	}
	rows := make([]row, len(p.kept))
	for i, k := range p.kept {
		rows[i] = row{k, k.Below, s.db.Engine().Instant(cmp.Or(k.Since, First))}
		if k.Oldest > 0 {
			rows[i].Through = max(k.Below, k.Oldest+p.oldest-1)
		}
	}
	if len(rows) == 0 {
		return "", nil
	}
	return doc(rows)
}
