package store

import (
	"context"
	"database/sql"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
)

// window limits how many changed definitions one statement reads. PostgreSQL's planner assumes that
// every second row has changed, so with a larger limit it would scan the table instead of using the
// index.
const window = 1000

// markSize bounds how many are locked at a time.
const markSize = 1000

// Unmarked are changed schedules or pauses, as they were read before their jobs were decided for.
type Unmarked struct {
	kind   string
	ids    []int64
	inputs map[int64]string
	wide   bool // one of them is a pause whose jobs no key leads to
}

// More reports whether there may be others, which were not read.
func (u *Unmarked) More() bool { return len(u.ids) == window }

// Unmarked reads what is to be marked when all pages of the need were decided; nothing for needs without such rows.
// Call it before the first page: what changes after that is still to be seen.
func (s *Store) Unmarked(ctx context.Context, n Need) (*Unmarked, error) {
	u := &Unmarked{kind: map[Need]string{ScheduleChanged: "schedules", PauseChanged: "pauses"}[n], inputs: map[int64]string{}}
	if u.kind == "" {
		return u, nil
	}
	var id int64
	var input string
	var wide bool
	err := s.db.Query(ctx, "stale_"+u.kind, engine.Args{"window": window}, engine.Reads(&id, engine.Nullable(&input), &wide).Each(func(string) error {
		u.wide = u.wide || wide
		u.ids, u.inputs[id] = append(u.ids, id), input
		return nil
	}))
	return u, err
}

// Mark marks changed schedules or pauses as seen by all of their jobs, and tells how many. Call it when all of the need's
// pages were decided and none passed over; a schedule that a job still waits for stays unmarked all the same.
func (s *Store) Mark(ctx context.Context, u *Unmarked) (marked int64, err error) {
	for ids := range slices.Chunk(u.ids, markSize) {
		n, err := s.mark(ctx, u, ids)
		if marked += n; err != nil {
			return marked, err
		}
	}
	return marked, nil
}

// mark marks as many of them as the database lets it: one that it refuses stays unmarked, and is looked at by each pass.
func (s *Store) mark(ctx context.Context, u *Unmarked, ids []int64) (marked int64, err error) {
	err = s.db.InTx(ctx, func(tx *engine.Tx) error {
		same, err := s.unedited(ctx, tx, "lock_"+u.kind, ids, u.inputs)
		if err != nil || len(same) == 0 {
			return err
		}
		marked, err = tx.Exec(ctx, "mark_"+u.kind, engine.Args{"ids": same})
		return err
	})
	if err == nil || !s.Refused(ctx, err) {
		return marked, err
	}
	if len(ids) == 1 {
		return 0, nil
	}
	half := len(ids) / 2
	first, err := s.mark(ctx, u, ids[:half])
	if err != nil {
		return first, err
	}
	second, err := s.mark(ctx, u, ids[half:])
	return first + second, err
}

// unedited locks definitions, and returns those that nobody is editing or has edited since they were read: an edit that was
// committed in between is still to be decided for.
func (s *Store) unedited(ctx context.Context, tx *engine.Tx, lock string, ids []int64, read map[int64]string) (same []int64, err error) {
	var id int64
	var input string
	err = tx.Query(ctx, lock, engine.Args{"ids": ids}, engine.Reads(&id, engine.Nullable(&input)).Each(func(string) error {
		if read[id] == input {
			same = append(same, id)
		}
		return nil
	}))
	return same, err
}

// markOwn marks the jobs' own schedules with them: else a pass over a million jobs with a rule each would leave as many
// schedules to decide for. One that was edited since it was read differs from what the plan was made from.
func (w *writer) markOwn(ctx context.Context, jobs []int64) error {
	var own []int64
	err := w.tx.Query(ctx, "lock_own_schedules", engine.Args{"ids": jobs}, func(r *sql.Rows) error {
		var id int64
		var stale bool
		err := r.Scan(&id, &stale)
		if stale {
			own = append(own, id)
		}
		return err
	})
	if err != nil || len(own) == 0 {
		return err
	}
	_, err = w.tx.Exec(ctx, "mark_schedules", engine.Args{"ids": own})
	return err
}
