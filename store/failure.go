package store

import (
	"context"
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// FailureFilter selects failed attempts.
type FailureFilter struct {
	Job   string    // name or owner/name; empty: all jobs
	Since time.Time // the attempt ended then or later
	Until time.Time // or before; zero: whenever
	Limit int
}

// FailedAttempt is an attempt that failed, or whose process was lost, with its run and its job.
type FailedAttempt struct {
	Attempt
	Job       string `json:"job"` // owner/name
	RunNumber int64  `json:"run_number,omitempty"`
	RunState  string `json:"run_state"` // what became of the run
}

// Failures lists attempts that failed or were lost, the newest first. Of all jobs, it leaves out those of runs that were made
// before Since and have succeeded.
func (s *Store) Failures(ctx context.Context, f FailureFilter) (list []FailedAttempt, err error) {
	a := engine.Args{"since": f.Since, "until": f.Until, "limit": f.Limit}
	if f.Until.IsZero() {
		a["until"] = engine.Last
	}
	statement := "failures"
	if f.Job != "" {
		statement = "failures_of_job"
		if a["job"], err = s.jobWithRuns(ctx, f.Job); err != nil {
			return nil, err
		}
	}
	var v FailedAttempt
	var j Job
	var id int64
	rd := engine.Reads(append(scanAttempt(&v.Attempt), engine.Nullable(&j.Owner), engine.Nullable(&j.Name), &id, engine.Nullable(&v.RunNumber), &v.RunState)...)
	err = s.db.Query(ctx, statement, a, rd.Each(func(fault string) error {
		if v.Fault, v.Job = fault, j.FullName(); j.Name == "" { // its row was deleted by SQL
			v.Job = fmt.Sprintf("job %d", id)
		}
		list = append(list, v)
		v, j = FailedAttempt{}, Job{}
		return nil
	}))
	return list, err
}

// NominalRuns are the nominal times of a job after an instant, and at another one or before it, that have a run: at most limit.
func (s *Store) NominalRuns(ctx context.Context, job int64, after, through time.Time, limit int) (times []time.Time, err error) {
	var t time.Time
	a := engine.Args{"job": job, "after": OccurrenceAt(after), "through": OccurrenceAt(through), "limit": limit}
	err = s.db.Query(ctx, "nominal_runs", a, engine.Reads(engine.At(&t)).Each(func(string) error {
		times = append(times, t)
		return nil
	}))
	return times, err
}
