package store

import (
	"context"
	"fmt"
	"slices"

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
	err = s.db.InTx(ctx, func(tx *engine.Tx) (err error) {
		given, err = s.giveBack(ctx, tx, tasks)
		return err
	})
	if err != nil {
		return nil, err
	}
	return given, nil
}

// Recall takes back deliveries of which nobody knows whether they took place, because no answer came to their COMMIT. A run that was
// delivered is given back, as by GiveBack; the others are as they were. Recall returns the tasks whose runs are locked: most likely the
// server has not yet ended the transaction of that COMMIT, so nobody knows more than before.
func (s *Store) Recall(ctx context.Context, tasks []*Task) (open []*Task, err error) {
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.Run.ID
	}
	err = s.db.InTx(ctx, func(tx *engine.Tx) error {
		var free []string
		if err := tx.Query(ctx, "lock_runs", engine.Args{"ids": ids}, engine.Column(&free)); err != nil {
			return err
		}
		var known []*Task
		open = nil
		for _, t := range tasks {
			if slices.Contains(free, t.Run.ID) {
				known = append(known, t)
			} else {
				open = append(open, t)
			}
		}
		_, err := s.giveBack(ctx, tx, known)
		return err
	})
	if err != nil {
		return tasks, err
	}
	return open, nil
}

func (s *Store) giveBack(ctx context.Context, tx *engine.Tx, tasks []*Task) (given []*Task, err error) {
	type row struct {
		ID     string `json:"id"`
		Fence  int    `json:"fence"`
		Holder string `json:"holder"`
		Number int    `json:"number"`
		Fresh  bool   `json:"fresh"` // it was never delivered before
		Error  string `json:"error,omitempty"`
	}
	rows := make([]row, len(tasks))
	for i, t := range tasks {
		rows[i] = row{t.Run.ID, t.Run.Fence, t.Run.Holder, t.Run.Attempts, t.was.StartedAt.IsZero(), t.was.Error}
	}
	free, err := s.lockEnding(ctx, tx, rows, nil)
	if err != nil || len(free) == 0 {
		return nil, err
	}
	mine := rows[:0]
	for i, t := range tasks {
		if _, locked := free[delivered{t.Run.ID, t.Run.Fence}]; locked {
			given, mine = append(given, t), append(mine, rows[i])
		}
	}
	text, err := doc(mine)
	if err != nil {
		return nil, err
	}
	n, err := tx.Exec(ctx, "return_runs", engine.Args{"rows": text, "now": s.now()})
	if err != nil {
		return nil, err
	}
	if n != int64(len(mine)) { // the guard where there are no locks
		return nil, fmt.Errorf("give back runs: %w", engine.ErrConflict)
	}
	_, err = tx.Exec(ctx, "drop_attempts", engine.Args{"rows": text})
	return given, err
}
