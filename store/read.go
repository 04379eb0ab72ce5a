package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// knownSchedules are all schedules: the shared by name, the own rules by job.
type knownSchedules struct {
	named map[string]Schedule
	own   map[int64]Schedule
}

func (s *Store) schedules(ctx context.Context, q engine.Runner) (knownSchedules, error) {
	k := knownSchedules{map[string]Schedule{}, map[int64]Schedule{}}
	var c Schedule
	var job int64
	rd := engine.Reads(&c.ID, engine.Nullable(&c.Name), &c.Rule, &c.Zone, &c.Nonexistent, &c.Ambiguous, &c.Description, engine.Nullable(&c.Manifest), must{engine.At(&c.CreatedAt)},
		engine.Nullable(&job), &c.Jobs, &c.stale)
	err := q.Query(ctx, "schedules", engine.Args{}, rd.Each(func(fault string) error {
		defer func() { c = Schedule{} }()
		if c.Fault = fault; job != 0 {
			k.own[job] = c
		} else {
			k.named[c.Name] = c
		}
		return nil
	}))
	return k, err
}

func (s *Store) groups(ctx context.Context, q engine.Runner) (map[string]Group, error) {
	m := map[string]Group{}
	var g Group
	err := q.Query(ctx, "groups", engine.Args{}, engine.Reads(&g.Name, &g.MaxRunning).Each(func(fault string) error {
		g.Fault = fault
		m[g.Name] = g
		g = Group{}
		return nil
	}))
	return m, err
}

// jobs reads all jobs by full name, with steps and schedules.
func (s *Store) jobs(ctx context.Context, q engine.Runner) (map[string]Job, error) {
	list, err := s.statuses(ctx, q, 0)
	if err != nil {
		return nil, err
	}
	m := make(map[string]Job, len(list))
	for _, v := range list {
		m[v.FullName()] = v.Job
	}
	return m, nil
}

// statuses reads one job, or all with job 0, with the facts of their plans, by name.
func (s *Store) statuses(ctx context.Context, q engine.Runner, job int64) ([]JobStatus, error) {
	var list []JobStatus
	index := map[int64]int{}
	var v JobStatus
	rd := engine.Reads(append(scanJob(&v.Job), engine.At(&v.NextRun), engine.At(&v.DecidedThrough), engine.Nullable(&v.Parked), engine.Nullable(&v.LastState), engine.At(&v.LastScheduled),
		engine.At(&v.LastFinished), engine.At(&v.LastSuccess), engine.Nullable(&v.LastError), engine.Nullable(&v.Streak), engine.Nullable(&v.Cycles), engine.Nullable(&v.RunsMade), engine.At(&v.LastNominal), engine.At(&v.LastStarted),
		engine.Nullable(&v.lastAction), engine.At(&v.lastActionAt), &v.RunsOpen, &v.RunsRunning, &v.Stale)...)
	err := q.Query(ctx, "jobs", engine.Args{"job": job}, rd.Each(func(fault string) error {
		defer func() { v = JobStatus{} }()
		v.fault = fault
		index[v.ID] = len(list)
		list = append(list, v)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	return list, s.complete(ctx, q, list, index, job)
}

// complete adds steps, schedules and the names behind ids.
func (s *Store) complete(ctx context.Context, q engine.Runner, list []JobStatus, index map[int64]int, job int64) error {
	all, err := s.schedules(ctx, q)
	if err != nil {
		return err
	}
	err = q.Query(ctx, "job_links", engine.Args{"job": job}, func(r *sql.Rows) error {
		var job, id int64
		var name sql.NullString
		var stale bool
		if err := r.Scan(&job, engine.Nullable(&id), &name, &stale); err != nil {
			return err
		}
		i, ok := index[job]
		if !ok {
			return nil
		}
		if stale || name.Valid && all.named[name.String].stale {
			list[i].Stale = true
		}
		if name.Valid {
			list[i].Schedules = append(list[i].Schedules, name.String)
		} else if id == 0 {
			list[i].lostLink = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	var of int64
	var position int
	var st Step
	err = q.Query(ctx, "all_steps", engine.Args{"job": job}, engine.Reads(scanStep(&of, &position, &st)...).Each(func(fault string) error {
		if i, ok := index[of]; ok {
			list[i].Steps = append(list[i].Steps, st)
			if fault != "" {
				list[i].fault = engine.JoinFaults(list[i].fault, fmt.Sprintf("step %d: %s", position, fault))
			}
		}
		st = Step{}
		return nil
	}))
	if err != nil {
		return err
	}
	for i := range list {
		v := &list[i]
		if own, ok := all.own[v.ID]; ok {
			if own.Fault != "" {
				v.fault = engine.JoinFaults(v.fault, "its rule: "+own.Fault)
			}
			own.Jobs = 0
			v.Own, v.Stale = &own, v.Stale || own.stale
		}
		slices.Sort(v.Schedules)
		if k, ok := index[v.afterID]; ok {
			v.After = list[k].FullName()
		} else if v.afterID != 0 {
			var other Job
			err := q.PartialRow(ctx, "job_name", engine.Args{"id": v.afterID}, &other.Owner, &other.Name)
			if v.After = other.FullName(); errors.Is(err, ErrNotFound) { // deleted by plain SQL
				v.After, err = fmt.Sprintf("job %d, whose row is gone", v.afterID), nil
			}
			if err != nil {
				return err
			}
		}
		v.Normalize()
		v.Unreadable = v.fault
	}
	return nil
}

// findJob finds a job by owner/name, or by a name that only one owner has: the login's own first.
func (s *Store) findJob(ctx context.Context, q engine.Runner, name string) (JobStatus, error) {
	known := map[string]Job{}
	_, plain, ok := strings.Cut(name, "/")
	if !ok {
		plain = name
	}
	err := q.Query(ctx, "jobs_named", engine.Args{"name": plain}, func(r *sql.Rows) error {
		j := Job{Name: plain}
		err := r.Scan(&j.ID, &j.Owner)
		known[j.FullName()] = j
		return err
	})
	if err != nil {
		return JobStatus{}, err
	}
	var login string
	if err := q.Row(ctx, "login", engine.Args{}, &login); err != nil {
		return JobStatus{}, err
	}
	j, err := find(known, name, login)
	if err != nil {
		return JobStatus{}, err
	}
	list, err := s.statuses(ctx, q, j.ID)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("job %q: %w", name, ErrNotFound) // removed this moment
	}
	if err != nil {
		return JobStatus{}, err
	}
	return list[0], nil
}

// JobName is the full name of a job, also of one that was removed.
func (s *Store) JobName(ctx context.Context, id int64) (string, error) {
	var j Job
	err := s.db.PartialRow(ctx, "job_name", engine.Args{"id": id}, &j.Owner, &j.Name)
	if errors.Is(err, ErrNotFound) { // deleted by SQL
		return fmt.Sprintf("number %d", id), nil
	}
	return j.FullName(), err
}

// JobFilter selects jobs; empty fields select all.
type JobFilter struct{ Owner, Manifest string }

// Jobs lists jobs with the facts of their plans, by name.
func (s *Store) Jobs(ctx context.Context, f JobFilter) ([]JobStatus, error) {
	list, err := s.statuses(ctx, s.db, 0)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(v JobStatus) bool {
		return f.Owner != "" && v.Owner != f.Owner || f.Manifest != "" && v.Manifest != f.Manifest
	})
	return list, s.deriveAll(ctx, list)
}

// deriveAll finds the states of jobs as of now.
func (s *Store) deriveAll(ctx context.Context, list []JobStatus) error {
	pauses, err := s.Pauses(ctx, false, maxPauses)
	if err != nil {
		return err
	}
	now, err := s.Now(ctx)
	for i := range list {
		list[i].derive(now, pauses)
	}
	return err
}

// Job finds a job by name or owner/name.
func (s *Store) Job(ctx context.Context, name string) (JobStatus, error) {
	v, err := s.findJob(ctx, s.db, name)
	if err != nil {
		return v, err
	}
	list := []JobStatus{v}
	err = s.deriveAll(ctx, list)
	return list[0], err
}

// Schedules lists the shared schedules by name.
func (s *Store) Schedules(ctx context.Context) ([]Schedule, error) {
	k, err := s.schedules(ctx, s.db)
	if err != nil {
		return nil, err
	}
	out := make([]Schedule, 0, len(k.named))
	for _, c := range k.named {
		out = append(out, c)
	}
	slices.SortFunc(out, func(x, y Schedule) int {
		if x.Name < y.Name {
			return -1
		}
		return 1
	})
	return out, nil
}

// ScheduleStatuses lists the shared schedules by name, or the one named, with the pauses that hold them.
func (s *Store) ScheduleStatuses(ctx context.Context, name string) ([]ScheduleStatus, error) {
	list, err := s.Schedules(ctx)
	if name != "" {
		var one Schedule
		one, err = s.Schedule(ctx, name)
		list = []Schedule{one}
	}
	if err != nil {
		return nil, err
	}
	pauses, err := s.Pauses(ctx, false, maxPauses)
	out := make([]ScheduleStatus, len(list))
	for i, c := range list {
		out[i].Schedule = c
		out[i].derive(pauses)
	}
	return out, err
}

// Groups lists the groups by name.
func (s *Store) Groups(ctx context.Context) ([]Group, error) {
	m, err := s.groups(ctx, s.db)
	if err != nil {
		return nil, err
	}
	out := make([]Group, 0, len(m))
	for _, g := range m {
		out = append(out, g)
	}
	slices.SortFunc(out, func(x, y Group) int {
		if x.Name < y.Name {
			return -1
		}
		return 1
	})
	return out, nil
}

// Schedule finds a shared schedule by name.
func (s *Store) Schedule(ctx context.Context, name string) (Schedule, error) {
	return s.findSchedule(ctx, s.db, name)
}

func (s *Store) findSchedule(ctx context.Context, q engine.Runner, name string) (Schedule, error) {
	k, err := s.schedules(ctx, q)
	if err != nil {
		return Schedule{}, err
	}
	c, ok := k.named[name]
	if !ok {
		return c, fmt.Errorf("schedule %q: %w; `dbjobs schedule list` shows them", name, ErrNotFound)
	}
	return c, nil
}

// Now is the database's clock.
func (s *Store) Now(ctx context.Context) (t time.Time, err error) {
	err = s.db.Row(ctx, "read_now", engine.Args{"now": s.now()}, engine.At(&t))
	return t, err
}
