package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Held are pauses in force: those of single jobs by job, so that no job looks at those of all others, however many they are.
type Held struct {
	wide []Pause           // of schedules, tags and owners, and freezes, the newest first
	of   map[int64][]Pause // of the job with this id
}

// readHeld reads the pauses in force that may hold one of these jobs.
func (s *Store) readHeld(ctx context.Context, q engine.Runner, ids []int64) (h Held, err error) {
	h.of = map[int64][]Pause{}
	wide := 1 // the first part has all that are not of single jobs
	for part := range slices.Chunk(ids, page) {
		list, err := readPauses(ctx, q, "pauses_among", engine.Args{"now": s.now(), "ids": part, "wide": wide})
		if err != nil {
			return h, err
		}
		wide = 0
		for _, p := range list {
			if p.Scope == ScopeJob {
				h.of[p.SubjectID] = append(h.of[p.SubjectID], p)
			} else {
				h.wide = append(h.wide, p)
			}
		}
	}
	return h, nil
}

// OfJob returns the pauses that may hold a job, the newest first.
func (h *Held) OfJob(id int64) []Pause {
	own := h.of[id]
	if len(own) == 0 {
		return h.wide
	}
	list := slices.Concat(own, h.wide)
	slices.SortFunc(list, func(x, y Pause) int { return cmp.Compare(y.ID, x.ID) })
	return list
}

// HeldPauses returns the pauses in force that may hold one of the jobs with these ids, or a new job.
func (s *Store) HeldPauses(ctx context.Context, ids []int64) (Held, error) {
	return s.readHeld(ctx, s.db, append([]int64{0}, ids...)) // no job has the id 0: without ids, too, it reads all but those of jobs
}

// Wide returns the pauses in force that are not of a single job, the newest first.
func (h *Held) Wide() []Pause { return h.wide }

// WidePauses returns the pauses in force that are not of a single job, the newest first.
func (s *Store) WidePauses(ctx context.Context) ([]Pause, error) {
	h, err := s.HeldPauses(ctx, nil)
	return h.wide, err
}
