package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// RunFilter selects runs; empty fields select all.
type RunFilter struct {
	Job   string // name or owner/name
	State string
	Since time.Time // made then or later; zero: whenever
	Until time.Time // made before; zero: whenever
	Limit int       // 0: 100
}

// RunDetail is a run with its attempts.
type RunDetail struct {
	Run
	Tries []Attempt `json:"tries"`
}

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f RunFilter) ([]Run, error) {
	var job int64
	if f.Job != "" {
		var err error
		if job, err = s.jobWithRuns(ctx, f.Job); err != nil {
			return nil, err
		}
	}
	if f.Limit == 0 {
		f.Limit = 100
	}
	statement := "runs"
	switch f.State {
	case Failed, Cancelled, Lost:
		statement = "runs_unwell"
	case Waiting, Queued, Running:
		statement = "runs_under_way"
	}
	if job != 0 {
		statement = "runs"
	}
	until := f.Until
	if until.IsZero() {
		until = engine.Last
	}
	since := f.Since
	if since.IsZero() {
		since = engine.First
	}
	return s.listRuns(ctx, statement, engine.Args{"job": job, "state": f.State, "since": since, "until": until, "limit": f.Limit})
}

// jobWithRuns finds a job. Where there is none, it finds the last removed job of that name.
func (s *Store) jobWithRuns(ctx context.Context, name string) (id int64, err error) {
	j, err := s.findJob(ctx, s.db, name)
	if !errors.Is(err, ErrNotFound) {
		return j.ID, err
	}
	gone, failed := s.named(ctx, name)
	if failed != nil {
		return 0, failed
	}
	failed = s.db.Row(ctx, "removed_job", engine.Args{"owner": gone.Owner, "name": gone.Name}, &id)
	if errors.Is(failed, ErrNotFound) {
		return 0, err
	}
	return id, failed
}

// listRuns reads runs with the names of their jobs. A pause that began after the last pass shows in
// the runs that it holds, before a pass records that.
func (s *Store) listRuns(ctx context.Context, statement string, a engine.Args) ([]Run, error) {
	pauses, err := s.Pauses(ctx, false, maxPauses)
	if err != nil {
		return nil, err
	}
	var out []Run
	var v Run
	var c Snapshot
	rd := engine.Reads(append(scanRun(&v), engine.Nullable(&v.Owner), engine.Nullable(&v.Job), tags{&c.Job.Tags})...)
	err = s.db.Query(ctx, statement, a, rd.Each(func(fault string) error {
		defer func() { v, c = Run{}, Snapshot{} }()
		v.Fault = fault
		c.Plan.JobID, c.Job.Owner = v.JobID, v.Owner
		for i := range pauses {
			if !v.Begun() && (v.State == Waiting || v.State == Queued) && pauses[i].covers(&c) {
				v.HeldBy = HeldByPause
			}
		}
		out = append(out, v)
		return nil
	}))
	return out, err
}

var runPrefix = regexp.MustCompile(`^[0-9a-f-]{4,36}$`)

// Run finds a run by its id, or by the beginning of its id: at least four characters that no other
// run has.
func (s *Store) Run(ctx context.Context, id string) (RunDetail, error) {
	id = strings.ToLower(id)
	low, high, ok := prefixRange(id)
	if !ok {
		return RunDetail{}, fmt.Errorf("run %q: %w: want an id, or at least its first four characters", id, ErrNotFound)
	}
	found, err := s.listRuns(ctx, "run_by_prefix", engine.Args{"low": engine.ID(low), "high": engine.ID(high)})
	if err != nil {
		return RunDetail{}, err
	}
	switch len(found) {
	case 0:
		return RunDetail{}, fmt.Errorf("run %s: %w; `dbjobs run list` shows them", id, ErrNotFound)
	case 2:
		return RunDetail{}, &FieldError{"run " + id, "id", fmt.Sprintf("several runs begin with this (%s, %s, ...); give more characters", found[0].ID, found[1].ID)}
	}
	d := RunDetail{Run: found[0]}
	var a Attempt
	var n *int64
	rd := engine.Reads(&a.RunID, &a.Number, &a.Step, &a.StepName, &a.Attempt, &a.Fence, &a.Holder, &a.State, engine.At(&a.StartedAt), engine.At(&a.FinishedAt), optional[int64]{&n},
		engine.Nullable(&a.Error), engine.Nullable(&a.Code), engine.Nullable(&a.Line), engine.Nullable(&a.Severity), engine.Nullable(&a.Detail), engine.Nullable(&a.Hint),
		engine.Nullable(&a.Output))
	err = s.db.Query(ctx, "attempts", engine.Args{"id": engine.ID(d.ID)}, rd.Each(func(fault string) error {
		a.Rows, a.Fault = n, fault
		d.Tries = append(d.Tries, a)
		a = Attempt{}
		return nil
	}))
	return d, err
}

// prefixRange returns the lowest and the highest UUID with a beginning.
func prefixRange(id string) (low, high string, ok bool) {
	if !runPrefix.MatchString(id) {
		return "", "", false
	}
	const shape = "00000000-0000-0000-0000-000000000000"
	for i := range len(id) {
		if (shape[i] == '-') != (id[i] == '-') {
			return "", "", false
		}
	}
	rest := shape[len(id):]
	return id + rest, id + strings.ReplaceAll(rest, "0", "f"), true
}

// Gaps lists the newest gaps of a job.
func (s *Store) Gaps(ctx context.Context, job string, limit int) ([]Gap, error) {
	j, err := s.findJob(ctx, s.db, job)
	if err != nil {
		return nil, err
	}
	var out []Gap
	var g Gap
	rd := engine.Reads(&g.JobID, &g.ScheduleID, engine.At(&g.From), engine.At(&g.Through), &g.Reason, &g.Rule, engine.At(&g.RecordedAt))
	err = s.db.Query(ctx, "gaps", engine.Args{"job": j.ID, "limit": limit}, rd.Each(func(fault string) error {
		g.Fault = fault
		out = append(out, g)
		g = Gap{}
		return nil
	}))
	return out, err
}
