package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// statuses reads all jobs, or those of the ids, with the facts of their plans, by name.
func (s *Store) statuses(ctx context.Context, q engine.Runner, ids ...int64) ([]JobStatus, error) {
	statement, a := "jobs", engine.Args{}
	if ids != nil {
		statement, a = "jobs_among", engine.Args{"ids": ids}
	}
	var list []JobStatus
	var v JobStatus
	var skips string
	rd := engine.Reads(append(scanJob(&v.Job), engine.At(&v.NextRun), engine.At(&v.DecidedThrough), engine.Nullable(&v.Parked), engine.Nullable(&v.LastState), engine.At(&v.LastScheduled),
		engine.At(&v.LastFinished), engine.At(&v.LastSuccess), engine.Nullable(&v.LastError), engine.Nullable(&v.Streak), engine.Nullable(&v.Cycles), engine.Nullable(&v.RunsMade), engine.At(&v.RepeatFrom), engine.At(&v.LastNominal), engine.At(&v.LastStarted),
		engine.Nullable(&v.lastAction), engine.At(&v.lastActionAt), &v.RunsOpen, &v.RunsRunning, &v.Stale, engine.Nullable(&skips))...)
	err := q.Query(ctx, statement, a, rd.Each(func(fault string) {
		v.fault, v.Skips = fault, readSkips(skips)
		list = append(list, v)
		v, skips = JobStatus{}, ""
	}))
	if err != nil {
		return nil, err
	}
	jobs := make([]*Job, len(list))
	for i := range list {
		jobs[i] = &list[i].Job
	}
	if err := s.complete(ctx, q, jobs, "job_links"); err != nil {
		return nil, err
	}
	for i := range list {
		v := &list[i]
		v.Stale, v.Unreadable = v.Stale || v.staleTimes, v.fault
	}
	return list, nil
}

// page is the largest number of ids or names that one reading statement gets.
const page = 5000

// complete adds steps, schedules and the names that ids stand for to jobs that were read. The name of the statement
// for links says whether stale links matter.
func (s *Store) complete(ctx context.Context, q engine.Runner, jobs []*Job, links string) error {
	index := make(map[int64]*Job, len(jobs))
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		index[j.ID], ids[i] = j, j.ID
	}
	for part := range slices.Chunk(ids, page) {
		in := engine.Args{"ids": part}
		if err := s.addRules(ctx, q, in, index); err != nil {
			return err
		}
		if err := s.addLinks(ctx, q, links, in, index); err != nil {
			return err
		}
		if err := s.addSteps(ctx, q, in, index); err != nil {
			return err
		}
	}
	for _, j := range jobs {
		j.Normalize()
	}
	return nil
}

// addRules reads the jobs' own rules.
func (s *Store) addRules(ctx context.Context, q engine.Runner, in engine.Args, index map[int64]*Job) error {
	return s.readSchedules(ctx, q, "own_rules", in, func(c Schedule, job int64) {
		j := index[job]
		if c.Fault != "" {
			j.fault = engine.JoinFaults(j.fault, "its rule: "+c.Fault)
		}
		j.Own, j.staleTimes = &c, j.staleTimes || c.stale
	})
}

// addLinks reads which shared schedules the jobs use, and the jobs after which they run.
func (s *Store) addLinks(ctx context.Context, q engine.Runner, statement string, in engine.Args, index map[int64]*Job) error {
	var job, id int64
	var name, owner, on sql.NullString // of the other job, whose own row has a fault if they are not valid text
	var link, schedule bool
	var f After
	return q.Query(ctx, statement, in, engine.Scan(func() {
		j := index[job]
		if f.id != 0 {
			other := Job{Owner: owner.String, Name: name.String}
			f.Job, f.On, f.out = j.calls(&other), on.String, id == 0
			if f.out { // deleted by plain SQL, or of another owner
				f.Job = fmt.Sprintf("job %d, whose row is gone", f.id)
			}
			j.After = append(j.After, f)
			return
		}
		j.staleTimes = j.staleTimes || link || schedule
		if name.Valid {
			j.Schedules = append(j.Schedules, name.String)
		} else if id == 0 {
			j.lostLink = true
		}
	}, &job, engine.Nullable(&id), &name, &link, engine.Nullable(&schedule), engine.Nullable(&f.id), &owner, &on))
}

func (s *Store) addSteps(ctx context.Context, q engine.Runner, in engine.Args, index map[int64]*Job) error {
	var of int64
	var position int
	var st Step
	return q.Query(ctx, "batch_steps", in, engine.Reads(scanStep(&of, &position, &st)...).Each(func(fault string) {
		j := index[of]
		if j.Steps = append(j.Steps, st); fault != "" {
			j.fault = engine.JoinFaults(j.fault, fmt.Sprintf("step %d: %s", position, fault))
		}
		st = Step{}
	}))
}

// findJob finds a job by owner/name, or by a name that only one owner has. A job of the login comes first.
func (s *Store) findJob(ctx context.Context, q engine.Runner, name string) (JobStatus, error) {
	k := newKnownJobs()
	if err := s.jobsNamed(ctx, q, []string{plainName(name)}, k.add); err != nil {
		return JobStatus{}, err
	}
	var login string
	if err := q.Row(ctx, "login", engine.Args{}, &login); err != nil {
		return JobStatus{}, err
	}
	j, err := k.find(name, login)
	if err != nil {
		return JobStatus{}, err
	}
	return s.jobByID(ctx, q, j.ID, name)
}

// jobByID reads a job that was found by a name, unless it was removed just now.
func (s *Store) jobByID(ctx context.Context, q engine.Runner, id int64, name string) (JobStatus, error) {
	list, err := s.statuses(ctx, q, id)
	if err == nil && len(list) == 0 {
		err = missing("job", name)
	}
	if err != nil {
		return JobStatus{}, err
	}
	return list[0], nil
}

// JobName returns the full name of a job, also of a removed one.
func (s *Store) JobName(ctx context.Context, id int64) (string, error) {
	var j Job
	var parked string
	err := s.db.PartialRow(ctx, "job_name", engine.Args{"id": id}, &j.Owner, &j.Name, engine.Nullable(&parked))
	if errors.Is(err, ErrNotFound) { // deleted by SQL
		return fmt.Sprintf("number %d", id), nil
	}
	return j.FullName(), err
}

// JobFilter selects jobs; empty fields select all.
type JobFilter struct {
	Owner, Manifest, Tag string
	States               []string // any of JobStates
}

// Jobs lists jobs with the facts of their plans, by name.
func (s *Store) Jobs(ctx context.Context, f JobFilter) ([]JobStatus, error) {
	list, err := s.statuses(ctx, s.db)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(v JobStatus) bool {
		return f.Owner != "" && v.Owner != f.Owner || f.Manifest != "" && v.Manifest != f.Manifest || f.Tag != "" && !slices.Contains(v.Tags, f.Tag)
	})
	if err := s.deriveAll(ctx, s.db, list); err != nil || len(f.States) == 0 {
		return list, err
	}
	return slices.DeleteFunc(list, func(v JobStatus) bool {
		return !slices.Contains(f.States, v.State) && !(v.Failing() && slices.Contains(f.States, JobFailing)) && !(v.CountsAsParked() && slices.Contains(f.States, JobParked))
	}), nil
}

// IDs returns the ids of jobs, in their order.
func IDs(jobs []JobStatus) []int64 {
	ids := make([]int64, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].ID
	}
	return ids
}

// deriveAll sets the states of jobs as of now.
func (s *Store) deriveAll(ctx context.Context, q engine.Runner, list []JobStatus) error {
	pauses, err := s.readHeld(ctx, q, IDs(list))
	if err != nil {
		return err
	}
	left, err := readPauses(ctx, q, "pauses_left", engine.Args{"now": s.now(), "limit": maxPauses})
	if err != nil {
		return err
	}
	now, thaw, err := s.thaw(ctx, q)
	for i := range list {
		list[i].derive(now, thaw, pauses.OfJob(list[i].ID), left)
	}
	return err
}

// thaw reads the clock, and when the last freeze that is over has ended. No pass decides or takes anything in a freeze, so
// nothing is late because of that time. Zero: there was no freeze.
func (s *Store) thaw(ctx context.Context, q engine.Runner) (now, ended time.Time, err error) {
	err = q.Row(ctx, "read_thaw", engine.Args{"now": s.now()}, engine.At(&now), engine.At(&ended))
	return now, ended, err
}

// Thawed is when the last freeze that is over has ended; zero: there was none.
func (s *Store) Thawed(ctx context.Context) (time.Time, error) {
	_, ended, err := s.thaw(ctx, s.db)
	return ended, err
}

// Job finds a job by name or owner/name.
func (s *Store) Job(ctx context.Context, name string) (JobStatus, error) {
	v, err := s.findJob(ctx, s.db, name)
	if err != nil {
		return v, err
	}
	list := []JobStatus{v}
	err = s.deriveAll(ctx, s.db, list)
	return list[0], err
}

// Now is the database's clock.
func (s *Store) Now(ctx context.Context) (t time.Time, err error) {
	err = s.db.Row(ctx, "read_now", engine.Args{"now": s.now()}, engine.At(&t))
	return t, err
}
