package store

import (
	"context"
	"database/sql"
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
		err := tx.Query(ctx, "lock_removed_plans", engine.Args{"ids": ids}, func(r *sql.Rows) error {
			var id int64
			err := r.Scan(&id)
			locked[id] = true
			return err
		})
		if err != nil {
			return err
		}
		var going []int64
		a := engine.Args{"ids": ids, "now": s.now(), "later_ms": -keepChanges.Milliseconds()}
		err = tx.Query(ctx, "lock_removed_jobs", a, func(r *sql.Rows) error {
			var id int64
			var planned bool
			err := r.Scan(&id, &planned)
			if !planned || locked[id] {
				going = append(going, id)
			}
			return err
		})
		if err != nil || len(going) == 0 {
			return err
		}
		a = engine.Args{"ids": going, "since": now}
		for _, statement := range []string{"forget_plan_rules", "forget_ends", "forget_plans", "delete_after", "finish_links",
			"finish_schedules", "delete_steps", "forget_jobs"} {
			if _, err := tx.Exec(ctx, statement, a); err != nil {
				return err
			}
		}
		return nil
	})
}
