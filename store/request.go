package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Request holds the arguments of a run outside the schedule.
type Request struct {
	Args     map[string]string
	Interval Interval // of data; without an end, there is no interval
	// At is the nominal time of the run, before which it does not begin; zero: it has none.
	At time.Time
	// FromStep is the name or the number of the step with which the run begins; empty: the first one.
	FromStep string
	// Key makes the request unique: a later request of the job with the same key finds this run, for as long as the
	// run is on record. Empty: each request makes its own run.
	Key    string
	Author Author
}

// RequestedRun is the run of a request.
type RequestedRun struct {
	Run
	// Existing says that an earlier request with the same key made the run.
	Existing bool `json:"existing,omitempty"`
}

// occurrence returns the key of the run that has this id.
func (q *Request) occurrence(id string) string {
	if q.Key != "" {
		return occurrenceKey + q.Key
	}
	return occurrenceNow + id
}

func (q *Request) check(job string) error {
	key := shortLine(q.Key, maxName-len(occurrenceKey))
	if key == nil && strings.TrimSpace(q.Key) != q.Key {
		key = fmt.Errorf("%q begins or ends with a blank", q.Key)
	}
	if err := firstError("job "+job, check{"key", key}, check{"at", instant(q.At)},
		check{"interval", cmp.Or(instant(q.Interval.Start), instant(q.Interval.End))}); err != nil {
		return err
	}
	if from := q.Interval.Start; !from.IsZero() && !q.Interval.End.After(from) {
		return &FieldError{"job " + job, "interval", fmt.Sprintf("begins at %s, but does not end after that", from.Format(time.RFC3339))}
	}
	return nil
}

// RunNow requests a run. The next decision for the job queues it, behind the active runs. If the run has an interval,
// a backfill counts the nominal times in it as covered; the schedule does not change.
//
// Of several requests with one key, the first that commits makes the run, and the others find it: the unique key
// (job, occurrence) of runs ensures that.
func (s *Store) RunNow(ctx context.Context, name string, q Request) (r RequestedRun, err error) {
	const tries = 3 // the second try finds the run, unless the run was deleted in between
	for range tries {
		if r, err = s.request(ctx, name, q); q.Key == "" || !errors.Is(err, ErrExists) {
			break
		}
	}
	return r, err
}

func (s *Store) request(ctx context.Context, name string, q Request) (r RequestedRun, err error) {
	var known string // the id of the run that has the key
	err = s.change(ctx, q.Author, func(a *applier) error {
		known = ""
		j, err := a.jobToRun(ctx, name)
		if err != nil {
			return err
		}
		if err := q.check(j.FullName()); err != nil {
			return err
		}
		id := NewRunID(a.now, 0)
		r = RequestedRun{Run: Run{ID: id, Owner: j.Owner, Job: j.Name, JobID: j.ID, Occurrence: q.occurrence(id), State: Waiting,
			Queue: j.Queue, Priority: j.Priority, ScheduledFor: q.At, ReadyAt: a.now, CreatedAt: a.now, Step: 1,
			IntervalStart: q.Interval.Start, IntervalEnd: q.Interval.End}}
		if q.At.After(a.now) {
			r.ReadyAt = q.At
		}
		if q.Key != "" {
			err = a.tx.Row(ctx, "keyed_run", engine.Args{"job": j.ID, "occurrence": r.Occurrence}, &known)
			if !errors.Is(err, ErrNotFound) {
				return err
			}
		}
		from := ""
		if q.FromStep != "" {
			if r.Step, err = stepNamed("job "+j.FullName(), j.Steps, q.FromStep); err != nil {
				return err
			}
			from = j.Steps[r.Step-1].Name
		}
		if len(q.Args) > 0 {
			b, err := json.Marshal(q.Args)
			if err != nil {
				return fmt.Errorf("encode the arguments: %w", err)
			}
			r.Args = string(b)
		}
		if _, err = a.tx.Exec(ctx, "request_run", engine.Args{"now": s.now(), "id": engine.ID(id), "job": j.ID, "occurrence": r.Occurrence, "queue": r.Queue,
			"priority": r.Priority, "args": engine.Document(r.Args), "from": r.IntervalStart, "to": r.IntervalEnd, "at": q.At, "ready": r.ReadyAt, "step": r.Step, "step_name": engine.Null(from)}); err != nil {
			return err
		}
		return a.record("job", j.FullName(), "run-now", j.ID, nil, struct {
			Run  string            `json:"run"`
			Args map[string]string `json:"args,omitempty"`
			From time.Time         `json:"from,omitzero"`
			To   time.Time         `json:"to,omitzero"`
			At   time.Time         `json:"at,omitzero"`
			Key  string            `json:"key,omitempty"`
			Step string            `json:"from_step,omitempty"`
		}{id, q.Args, r.IntervalStart, r.IntervalEnd, q.At, q.Key, from})
	})
	if err != nil || known == "" {
		return r, err
	}
	found, err := s.findRun(ctx, known)
	return RequestedRun{found, true}, err
}

// jobToRun reads a job of which a run is requested. Where a pass may remove the job as done, no decision for it is made until the
// transaction ends: the run would come too late for it, and be cancelled.
func (a *applier) jobToRun(ctx context.Context, name string) (JobStatus, error) {
	j, err := a.s.findJob(ctx, a.tx, name)
	if err != nil || !j.RemoveDone {
		return j, err
	}
	if err := a.s.lockPlans(ctx, a.tx, j.Job); err != nil {
		return j, err
	}
	return a.s.findJob(ctx, a.tx, name)
}
