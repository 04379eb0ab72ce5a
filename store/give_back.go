package store

import (
	"context"
	"fmt"

	"github.com/dbjobs/dbjobs/store/engine"
)

// GiveBack gives back runs that were taken ahead and have not begun. They are queued again as they were before, and
// the delivery does not count. GiveBack returns the tasks that it gave back. A run that is locked or was delivered
// again stays as it is. Any process may take the runs at once, also where no decision comes, as in a worker. The next
// decision looks at those that are still queued, since a pause or a lower cap that came meanwhile has not held them. A run
// that is to be cancelled waits for that decision.
//
// Crash window: before COMMIT the holder still has the runs. Their leases end, which counts as a loss. No run ends by
// this loss, since a run whose next loss is the last is not taken ahead.
func (s *Store) GiveBack(ctx context.Context, tasks []*Task) (given []*Task, err error) {
	type row struct {
		ID     string `json:"id"`
		Fence  int    `json:"fence"`
		Holder string `json:"holder"`
		Number int    `json:"number"`
		Fresh  bool   `json:"fresh"` // it was never delivered before
		Error  string `json:"error,omitempty"`
	}
	err = s.db.InTx(ctx, func(tx *engine.Tx) error {
		given = nil
		rows := make([]row, len(tasks))
		for i, t := range tasks {
			rows[i] = row{t.Run.ID, t.Run.Fence, t.Run.Holder, t.Run.Attempts, t.was.StartedAt.IsZero(), t.was.Error}
		}
		free, err := s.lockEnding(ctx, tx, rows, nil)
		if err != nil || len(free) == 0 {
			return err
		}
		mine := rows[:0]
		for i, t := range tasks {
			if _, locked := free[delivered{t.Run.ID, t.Run.Fence}]; locked {
				given, mine = append(given, t), append(mine, rows[i])
			}
		}
		text, err := doc(mine)
		if err != nil {
			return err
		}
		n, err := tx.Exec(ctx, "return_runs", engine.Args{"rows": text, "now": s.now()})
		if err != nil {
			return err
		}
		if n != int64(len(mine)) { // the guard where there are no locks
			return fmt.Errorf("give back runs: %w", engine.ErrConflict)
		}
		_, err = tx.Exec(ctx, "drop_attempts", engine.Args{"rows": text})
		return err
	})
	if err != nil {
		return nil, err
	}
	return given, nil
}
