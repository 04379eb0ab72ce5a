package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// FailureFilter selects failed attempts.
type FailureFilter struct {
	Job   string    // name or owner/name; empty: all jobs
	Since time.Time // the attempt ended at this instant or later; zero: no bound
	Until time.Time // the attempt ended before this instant; zero: no bound
	Limit int
}

// FailedAttempt is an attempt that failed, or whose process was lost, with its run and its job. If no attempt on
// record says why a run failed, because a worker has ended it by SQL, it is the run itself, without a step.
type FailedAttempt struct {
	Attempt
	Job       string `json:"job"` // owner/name
	RunNumber int64  `json:"run_number,omitempty"`
	RunState  string `json:"run_state"` // the state of the run
}

// Failures lists attempts that failed or were lost, and runs that failed without one, the newest first. If the filter names no job, attempts are left
// out whose runs were made before Since and have succeeded.
func (s *Store) Failures(ctx context.Context, f FailureFilter) (list []FailedAttempt, err error) {
	a := engine.Args{"job": int64(0), "since": cmp.Or(f.Since, First), "until": cmp.Or(f.Until, Last), "limit": f.Limit}
	statement := "failures"
	if f.Job != "" {
		statement = "failures_of_job"
		of, err := s.jobOnRecord(ctx, f.Job)
		if err != nil {
			return nil, err
		}
		a["job"] = of.ID
	}
	var v FailedAttempt
	var j Job
	var id int64
	rd := engine.Reads(append(scanAttempt(&v.Attempt), engine.Nullable(&j.Owner), engine.Nullable(&j.Name), &id, engine.Nullable(&v.RunNumber), &v.RunState)...)
	err = s.db.Query(ctx, statement, a, rd.Each(func(fault string) {
		v.Fault, v.Job = fault, j.nameOr(id)
		list = append(list, v)
		v, j = FailedAttempt{}, Job{}
	}))
	if err != nil {
		return nil, err
	}
	runs, err := s.failedRuns(ctx, a)
	list = append(list, runs...)
	slices.SortStableFunc(list, func(x, y FailedAttempt) int { return y.FinishedAt.Compare(x.FinishedAt) })
	return list[:min(f.Limit, len(list))], err
}

// failedRuns lists runs that failed or were lost, if no attempt on record says why, the newest first.
func (s *Store) failedRuns(ctx context.Context, a engine.Args) (list []FailedAttempt, err error) {
	var v FailedAttempt
	var j Job
	var id int64
	rd := engine.Reads(&v.RunID, &v.Attempt.Attempt, &v.Fence, engine.Nullable(&v.Holder), &v.State, engine.At(&v.StartedAt), engine.At(&v.FinishedAt),
		engine.Nullable(&v.Error), engine.Nullable(&j.Owner), engine.Nullable(&j.Name), &id, engine.Nullable(&v.RunNumber))
	err = s.db.Query(ctx, "failures_of_runs", a, rd.Each(func(fault string) {
		v.Fault, v.Job, v.RunState = fault, j.nameOr(id), v.State
		list = append(list, v)
		v, j = FailedAttempt{}, Job{}
	}))
	return list, err
}

// NominalRuns returns the nominal times of jobs that have a run, also one of a backfill, after one instant and up to and
// including another: at most limit of all jobs together. One that was made up for twice is there twice.
func (s *Store) NominalRuns(ctx context.Context, jobs []int64, after, through time.Time, limit int) (times map[int64][]time.Time, n int, err error) {
	var job int64
	var t time.Time
	a := engine.Args{"ids": jobs, "after": OccurrenceAt(after), "through": OccurrenceAt(through),
		"filled_after": fillsThrough(after), "filled_through": fillsThrough(through), "limit": limit}
	times = map[int64][]time.Time{}
	err = s.db.Query(ctx, "nominal_runs", a, engine.Reads(&job, engine.At(&t)).Each(func(string) {
		times[job] = append(times[job], t)
		n++
	}))
	return times, n, err
}
