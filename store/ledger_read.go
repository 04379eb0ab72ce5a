package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// RunFilter selects runs; empty fields select all.
type RunFilter struct {
	Job      string    // name or owner/name
	States   []string  // any of these
	Schedule string    // of jobs that use this schedule
	Step     string    // that tried this step
	Since    time.Time // made at this instant or later; zero: no bound
	Until    time.Time // made before this instant; zero: no bound
	Limit    int       // 0: 100
}

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f RunFilter) ([]Run, error) {
	var job Job
	if f.Job != "" {
		var err error
		if job, err = s.jobOnRecord(ctx, f.Job); err != nil {
			return nil, err
		}
	}
	f.Limit = cmp.Or(f.Limit, 100)
	var schedule int64
	if f.Schedule != "" {
		c, err := s.Schedule(ctx, f.Schedule)
		if err != nil {
			return nil, err
		}
		schedule = c.ID
	}
	states := slices.Compact(slices.Sorted(slices.Values(f.States)))
	if len(states) == 0 {
		states = []string{""}
	}
	var list []Run
	for _, state := range states {
		some, err := s.listRuns(ctx, s.db, runsOf(state, job.ID), engine.Args{"job": job.ID, "state": state, "schedule": schedule, "step": f.Step,
			"since": cmp.Or(f.Since, First), "until": cmp.Or(f.Until, Last), "limit": f.Limit})
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	if len(states) > 1 {
		slices.SortFunc(list, func(x, y Run) int { return cmp.Or(y.CreatedAt.Compare(x.CreatedAt), cmp.Compare(y.ID, x.ID)) })
	}
	return list[:min(f.Limit, len(list))], nil
}

// runsOf returns the statement that finds the runs of a state, or of a job, by an index.
func runsOf(state string, job int64) string {
	underWay := state == Waiting || state == Queued || state == Running
	switch {
	case job != 0 && underWay:
		return "runs_open_of_job"
	case job != 0:
		return "runs_of_job"
	case underWay:
		return "runs_under_way"
	case state != "" && state != Succeeded:
		return "runs_unwell"
	}
	return "runs"
}

// jobOnRecord finds a job. If none has the name, it finds the last removed job with that name.
func (s *Store) jobOnRecord(ctx context.Context, name string) (Job, error) {
	j, err := s.findJob(ctx, s.db, name)
	if !errors.Is(err, ErrNotFound) {
		return j.Job, err
	}
	gone, failed := s.named(ctx, name)
	if failed != nil {
		return Job{}, failed
	}
	failed = s.db.Row(ctx, "removed_job", engine.Args{"owner": gone.Owner, "name": gone.Name}, &gone.ID)
	if errors.Is(failed, ErrNotFound) {
		return Job{}, err
	}
	return gone, failed
}

// listRuns reads runs with the names of their jobs. If a pause began after the last pass, it shows in the runs that
// it holds, before a pass records that. Of queued runs, a freeze holds all at once; another pause holds none before a pass has seen it,
// since a worker may take them until then.
func (s *Store) listRuns(ctx context.Context, q engine.Runner, statement string, a engine.Args) ([]Run, error) {
	var out []Run
	var v Run
	var c Snapshot
	jobs := map[int]Snapshot{} // of the runs that a pause may hold, by their places in out
	var ids []int64
	rd := engine.Reads(append(scanRun(&v), engine.Nullable(&v.Owner), engine.Nullable(&v.Job), tags{&c.Job.Tags}, &v.removed)...)
	err := q.Query(ctx, statement, a, rd.Each(func(fault string) {
		v.Fault = fault
		if c.Plan.JobID, c.Job.Owner = v.JobID, v.Owner; !v.Begun() && (v.State == Waiting || v.State == Queued) {
			jobs[len(out)], ids = c, append(ids, v.JobID)
		}
		out = append(out, v)
		v, c = Run{}, Snapshot{}
	}))
	if err != nil || len(ids) == 0 {
		return out, err
	}
	slices.Sort(ids)
	pauses, err := s.readHeld(ctx, q, slices.Compact(ids))
	for i, c := range jobs {
		r := &out[i]
		for _, p := range pauses.OfJob(r.JobID) {
			if (r.State == Waiting || p.Scope == ScopeAll) && p.Covers(&c) {
				r.HeldBy = HeldByPause
			}
		}
	}
	return out, err
}

// JobGap is a gap with the name of its job.
type JobGap struct {
	Gap
	Job string `json:"job"` // owner/name
}

// Gaps lists the newest gaps of a job, also of one that was removed.
func (s *Store) Gaps(ctx context.Context, job string, limit int) ([]JobGap, error) {
	j, err := s.jobOnRecord(ctx, job)
	if err != nil {
		return nil, err
	}
	var out []JobGap
	var g JobGap
	rd := engine.Reads(&g.JobID, &g.ScheduleID, engine.At(&g.From), engine.At(&g.Through), &g.Reason, &g.Rule, engine.At(&g.RecordedAt))
	err = s.db.Query(ctx, "gaps", engine.Args{"job": j.ID, "limit": limit}, rd.Each(func(fault string) {
		g.Fault, g.Job = fault, j.FullName()
		out = append(out, g)
		g = JobGap{}
	}))
	return out, err
}

// RecentGaps lists the gaps of all jobs that end at an instant or later, the newest first.
func (s *Store) RecentGaps(ctx context.Context, since time.Time, limit int) ([]JobGap, error) {
	var out []JobGap
	var g JobGap
	var j Job
	rd := engine.Reads(&g.JobID, engine.Nullable(&j.Owner), engine.Nullable(&j.Name), &g.ScheduleID, engine.At(&g.From), engine.At(&g.Through), &g.Reason, &g.Rule, engine.At(&g.RecordedAt))
	err := s.db.Query(ctx, "recent_gaps", engine.Args{"since": since, "limit": limit}, rd.Each(func(fault string) {
		g.Fault, g.Job = fault, j.nameOr(g.JobID)
		out = append(out, g)
		g, j = JobGap{}, Job{}
	}))
	return out, err
}

// Durations returns how long recent runs took, by job: the runs that succeeded among the last runs of each job.
func (s *Store) Durations(ctx context.Context, most int) (map[int64][]time.Duration, error) {
	byJob := map[int64][]time.Duration{}
	var job int64
	var began, ended time.Time
	rd := engine.Reads(&job, engine.At(&began), engine.At(&ended))
	err := s.db.Query(ctx, "durations", engine.Args{"most": most}, rd.Each(func(fault string) {
		if took := ended.Sub(began); fault == "" && took >= 0 {
			byJob[job] = append(byJob[job], took)
		}
	}))
	return byJob, err
}
