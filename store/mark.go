package store

import (
	"context"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/secret"
)

// window limits how many changed definitions one statement reads. PostgreSQL's planner assumes that
// every second row has changed, so with a larger limit it would scan the table instead of using the
// index.
const window = 1000

// markSize bounds how many definitions one transaction locks.
const markSize = 1000

// Unmarked are changed schedules or pauses, as they were read before the decisions for their jobs.
type Unmarked struct {
	statements marking
	ids        []int64
	inputs     map[int64]string
	wide       bool // one of them is a pause whose jobs cannot be found by a key
	// Faults are the reasons why schedules cannot be used, by their ids. They are set before Mark, which records
	// them.
	Faults map[int64]string
}

// marking names the statements that read, lock and mark the changed definitions of a kind. end ends those that nobody can use
// any more, before they are marked; empty: there are none.
type marking struct{ stale, lock, end, mark string }

// markings are the kinds by their needs. Jobs and links are marked together with the plan of their job.
var markings = map[Need]marking{
	ScheduleChanged: {"stale_schedules", "lock_schedules", "", "mark_schedules"},
	PauseChanged:    {"stale_pauses", "lock_pauses", "end_idle_pauses", "mark_pauses"},
}

// More reports whether there may be more changed definitions that were not read.
func (u *Unmarked) More() bool { return len(u.ids) == window }

// Unmarked reads the changed definitions that Mark marks after all pages of the need are decided. For a need without
// such definitions it reads nothing. Call it before the first page: a definition that changes after that must not be
// marked as seen.
func (s *Store) Unmarked(ctx context.Context, n Need) (*Unmarked, error) {
	statements, ok := markings[n]
	u := &Unmarked{statements: statements, inputs: map[int64]string{}}
	if !ok {
		return u, nil
	}
	var id int64
	var input string
	var wide bool
	err := s.db.Query(ctx, u.statements.stale, engine.Args{"window": window}, engine.Reads(&id, engine.Nullable(&input), &wide).Each(func(string) {
		u.wide = u.wide || wide
		u.ids, u.inputs[id] = append(u.ids, id), input
	}))
	return u, err
}

// UnmarkedSchedules are the shared schedules that Mark is about to mark.
func (s *Store) UnmarkedSchedules(ctx context.Context, u *Unmarked) (list []Schedule, err error) {
	if u.statements != markings[ScheduleChanged] || len(u.ids) == 0 {
		return nil, nil
	}
	err = s.readSchedules(ctx, s.db, "schedules_among", engine.Args{"ids": u.ids}, func(c Schedule, _ int64) { list = append(list, c) })
	return list, err
}

// Mark marks changed schedules or pauses as seen by all of their jobs, and returns how many it marked. Call it when
// all pages of the need are decided and no job was left out. A schedule stays unmarked if one of its jobs has not
// been planned with it yet.
func (s *Store) Mark(ctx context.Context, u *Unmarked) (marked int64, err error) {
	for ids := range slices.Chunk(u.ids, markSize) {
		n, err := s.mark(ctx, u, ids)
		if marked += n; err != nil {
			return marked, err
		}
	}
	return marked, nil
}

// mark marks definitions. If the database refuses one of them, that definition stays unmarked, and each pass looks at
// it again; the others are marked.
func (s *Store) mark(ctx context.Context, u *Unmarked, ids []int64) (marked int64, err error) {
	err = s.db.InTx(ctx, func(tx *engine.Tx) error {
		same, err := s.unedited(ctx, tx, u.statements.lock, ids, u.inputs)
		if err != nil || len(same) == 0 {
			return err
		}
		if u.statements.end != "" {
			if _, err := tx.Exec(ctx, u.statements.end, engine.Args{"ids": same, "now": s.now(), "resumed_by": Itself}); err != nil {
				return err
			}
		}
		if marked, err = tx.Exec(ctx, u.statements.mark, engine.Args{"ids": same}); err != nil {
			return err
		}
		for _, id := range same {
			if why := u.Faults[id]; why != "" { // a text of the schedule's owner, who must not guess secrets by it, see secret.Known.For
				if _, err := tx.Exec(ctx, "park_schedule", engine.Args{"id": id, "parked": clip(secret.Hide(why))}); err != nil {
					return err
				}
			}
		}
		return nil
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

// unedited locks definitions, and returns those that no session is editing or has edited since they were read. An
// edit that was committed since then still needs a decision.
func (s *Store) unedited(ctx context.Context, tx *engine.Tx, lock string, ids []int64, read map[int64]string) (same []int64, err error) {
	var id int64
	var input string
	err = tx.Query(ctx, lock, engine.Args{"ids": ids}, engine.Reads(&id, engine.Nullable(&input)).Each(func(string) {
		if read[id] == input {
			same = append(same, id)
		}
	}))
	return same, err
}

// markOwn marks the jobs' own schedules together with the jobs. Otherwise a pass over a million jobs with a rule each
// would leave a million schedules to decide for. A schedule that was edited after it was read differs from the plan,
// and stays unmarked.
func (w *writer) markOwn(ctx context.Context, jobs []int64) error {
	var own []int64
	var id int64
	var stale bool
	err := w.tx.Query(ctx, "lock_own_schedules", engine.Args{"ids": jobs}, engine.Scan(func() {
		if stale {
			own = append(own, id)
		}
	}, &id, &stale))
	if err != nil {
		return err
	}
	return w.exec(ctx, "mark_schedules", own)
}

// links locks the links of the jobs, and returns the jobs that have no link which another session is editing. Marking
// the links of the other jobs would have to wait for those sessions.
func (w *writer) links(ctx context.Context, ids []int64) ([]int64, error) {
	free := map[int64]int{} // negative: fewer links were locked than read, so another session has one of them
	for i := range w.rules {
		if !w.rules[i].bare {
			free[w.rules[i].JobID]--
		}
	}
	var jobs []int64
	var id int64
	err := w.tx.Query(ctx, "lock_stale_links", engine.Args{"ids": ids}, engine.Scan(func() {
		if free[id]++; len(jobs) == 0 || jobs[len(jobs)-1] != id {
			jobs = append(jobs, id)
		}
	}, &id))
	return slices.DeleteFunc(jobs, func(id int64) bool { return free[id] < 0 }), err
}
