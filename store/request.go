package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Request holds the arguments of a run outside the schedule.
type Request struct {
	Args     map[string]string
	Interval Interval // of data; without an end, none
	Author   Author
}

// RunNow requests a run. The next decision for the job queues it, behind the active runs. If it has an
// interval, a backfill counts the nominal times in it as covered; the schedule does not change.
func (s *Store) RunNow(ctx context.Context, name string, q Request) (Run, error) {
	var r Run
	err := s.change(ctx, q.Author, func(a *applier) error {
		j, err := s.findJob(ctx, a.tx, name)
		if err != nil {
			return err
		}
		id := NewRunID(a.now, 0)
		r = Run{ID: id, Owner: j.Owner, Job: j.Name, JobID: j.ID, Occurrence: occurrenceNow + id, State: Waiting, Queue: j.Queue, Priority: j.Priority,
			ReadyAt: a.now, CreatedAt: a.now, Step: 1, IntervalStart: q.Interval.Start, IntervalEnd: q.Interval.End}
		if err := cmp.Or(instant(r.IntervalStart), instant(r.IntervalEnd)); err != nil {
			return &FieldError{"job " + j.FullName(), "interval", err.Error()}
		}
		if !r.IntervalEnd.After(r.IntervalStart) && !r.IntervalStart.IsZero() {
			return &FieldError{"job " + j.FullName(), "interval", fmt.Sprintf("begins at %s, but does not end after that", r.IntervalStart.Format(time.RFC3339))}
		}
		if len(q.Args) > 0 {
			b, err := json.Marshal(q.Args)
			if err != nil {
				return fmt.Errorf("encode the arguments: %w", err)
			}
			r.Args = string(b)
		}
		if _, err = a.tx.Exec(ctx, "request_run", engine.Args{"now": s.now(), "id": engine.ID(id), "job": j.ID, "occurrence": r.Occurrence, "queue": r.Queue,
			"priority": r.Priority, "args": engine.Document(r.Args), "from": r.IntervalStart, "to": r.IntervalEnd}); err != nil {
			return err
		}
		return a.record("job", j.FullName(), "run-now", j.ID, nil, struct {
			Run  string            `json:"run"`
			Args map[string]string `json:"args,omitempty"`
			From time.Time         `json:"from,omitzero"`
			To   time.Time         `json:"to,omitzero"`
		}{id, q.Args, r.IntervalStart, r.IntervalEnd})
	})
	return r, err
}
