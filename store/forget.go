package store

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// forget deletes what is left of removed jobs, after their history. Otherwise a database in which jobs are made for one
// run each would grow for ever. A job stays as long as it has a run or a gap, and where something needs it: see
// lock_removed_jobs. So does a job that another session has locked.
//
// Crash window: all rows of a job go in one transaction.
func (s *Store) forget(ctx context.Context, ids []int64, now time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	return s.db.InTx(ctx, func(tx *engine.Tx) error {
		locked := map[int64]bool{} // their plans: plans are locked before definitions
		var id int64
		if err := tx.Query(ctx, "lock_removed_plans", engine.Args{"ids": ids}, engine.Scan(func() { locked[id] = true }, &id)); err != nil {
			return err
		}
		var going []int64
		var planned bool
		a := engine.Args{"ids": ids, "now": s.now(), "later_ms": -keepRecords.Milliseconds()}
		err := tx.Query(ctx, "lock_removed_jobs", a, engine.Scan(func() {
			if !planned || locked[id] {
				going = append(going, id)
			}
		}, &id, &planned))
		if err != nil || len(going) == 0 {
			return err
		}
		return execAll(ctx, tx, engine.Args{"ids": going, "since": now}, "forget_plan_rules", "forget_ends", "forget_plans", "delete_after", "finish_links",
			"finish_schedules", "delete_steps", "forget_jobs")
	})
}

// Forget deletes old records: stretches of ticks, pauses that have ended, and of the change log the requests, the oldest first, and
// other entries of a random place, except for those that say how a definition came to be as it is. So the newest stretch of a
// trigger that came lately stays, and a pause that no pass has seen. It goes on at that place while most of the entries there go,
// and more returns true: a database of which much is asked would grow for ever otherwise.
//
// Crash window: each record goes by itself, and a later pass finds those that are left.
func (s *Store) Forget(ctx context.Context, more func() bool) error {
	a := engine.Args{"now": s.now(), "share": s.chance(), "limit": sweepSize, "later_ms": -keepRecords.Milliseconds()}
	for {
		if gone, err := s.forgetRecords(ctx, a); err != nil || gone < sweepSize/2 || !more() {
			return err
		}
	}
}

// forgetRecords deletes a bounded number of old records. It returns how many entries of the change log are gone.
func (s *Store) forgetRecords(ctx context.Context, a engine.Args) (gone int64, err error) {
	var changes, pauses []int64
	var through time.Time // where the last of the stretches began
	var since engine.Moment
	var id int64
	var kind string
	err = s.db.Query(ctx, "old_records", a, engine.Scan(func() {
		switch kind {
		case "change":
			changes = append(changes, id)
		case "pause":
			pauses = append(pauses, id)
		case "tick":
			if since.After(through) {
				through = since.Time
			}
		}
	}, &since, engine.Nullable(&id), &kind))
	if err == nil && len(changes) > 0 {
		gone, err = s.db.Exec(ctx, "delete_changes", engine.Args{"ids": changes})
	}
	if err == nil && len(pauses) > 0 {
		_, err = s.db.Exec(ctx, "delete_pauses", engine.Args{"ids": pauses, "now": a["now"], "later_ms": a["later_ms"]})
	}
	if err == nil && !through.IsZero() {
		_, err = s.db.Exec(ctx, "delete_ticks", engine.Args{"through": through, "now": a["now"], "later_ms": a["later_ms"]})
	}
	return gone, err
}
