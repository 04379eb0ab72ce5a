package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
)

// RenamedJob is the result of renaming a job.
type RenamedJob struct {
	Job       Job   // with its new name
	Followers []Job // the jobs that run after it, as they are now
	Changes   []Change
}

// RenameJob gives a job another name. Its history, its plan and its runs belong to its id, and stay. Jobs that run
// after it refer to its id; jobs that name it as a hook are changed with it. RenameJob cannot change files, and the
// hooks of hosts. It does not change steps: those of Followers may name its arguments by its old name.
func (s *Store) RenameJob(ctx context.Context, name, to string, o AlterOptions) (r RenamedJob, err error) {
	r.Changes, err = s.inTurn(ctx, o.apply(), func(a *applier) error {
		v, err := a.lockJob(ctx, name)
		if err != nil {
			return err
		}
		was := v.Job
		r.Job = was
		if r.Job.Name = to; to == was.Name {
			return &FieldError{"job " + was.FullName(), "name", "is this name already"}
		}
		if err := checkName(to); err != nil {
			return &FieldError{"job " + was.FullName(), "name", err.Error()}
		}
		taken := newKnownJobs()
		if err := s.jobsNamed(ctx, a.tx, []string{to}, taken.add); err != nil {
			return err
		}
		if taken.byName[r.Job.FullName()] != nil {
			return fmt.Errorf("job %s: %w", r.Job.FullName(), ErrExists)
		}
		if err := a.renameJobs(ctx, []move{{was, r.Job}}); err != nil {
			return err
		}
		r.Followers, err = a.followersOf(ctx, was.ID)
		return err
	})
	return r, err
}

// followersOf reads the jobs that run after a job.
func (a *applier) followersOf(ctx context.Context, id int64) ([]Job, error) {
	var known []*Job
	var of int64
	var f Job
	err := a.tx.Query(ctx, "followers", engine.Args{"ids": []int64{id}}, engine.Scan(func() { known = append(known, new(f)) }, &of, &f.ID, &f.Owner, &f.Name))
	if err != nil {
		return nil, err
	}
	return a.definitions(ctx, known)
}

// AlteredSchedule is a schedule before and after a change in place.
type AlteredSchedule struct {
	Before, After Schedule
	Changes       []Change // none: the schedule is as it was before
}

// AlterSchedule changes a shared schedule in place, as AlterJob does for a job.
func (s *Store) AlterSchedule(ctx context.Context, name string, o AlterOptions, edit func(Schedule) (Schedule, error)) (r AlteredSchedule, err error) {
	r.Changes, err = s.inTurn(ctx, o.apply(), func(a *applier) error {
		if r.Before, err = a.lockSchedule(ctx, name); err != nil {
			return err
		}
		if r.After, err = edit(r.Before); err != nil {
			return err
		}
		r.After.Name, r.After.Jobs, a.o.Manifest = r.Before.Name, r.Before.Jobs, r.Before.Manifest
		if err := a.allCalendars(ctx, Definitions{Schedules: []Schedule{r.After}}); err != nil {
			return err
		}
		return a.schedule(ctx, r.After, map[string]Schedule{name: r.Before})
	})
	return r, err
}

// lockSchedule reads a shared schedule that is to be changed, and keeps other sessions from changing its row.
func (a *applier) lockSchedule(ctx context.Context, name string) (Schedule, error) {
	c, err := a.s.findSchedule(ctx, a.tx, name)
	if err != nil || a.dry.on {
		return c, err
	}
	if err := a.lock(ctx, "lock_altered", c.ID); err != nil {
		return c, err
	}
	return a.s.findSchedule(ctx, a.tx, name)
}

// RenameSchedule gives a shared schedule another name. The jobs that use it refer to its id.
func (s *Store) RenameSchedule(ctx context.Context, name, to string, o AlterOptions) (r AlteredSchedule, err error) {
	r.Changes, err = s.inTurn(ctx, o.apply(), func(a *applier) error {
		if r.Before, err = a.lockSchedule(ctx, name); err != nil {
			return err
		}
		r.After = r.Before
		if r.After.Name = to; to == name {
			return &FieldError{"schedule " + name, "name", "is this name already"}
		}
		if err := checkName(to); err != nil {
			return &FieldError{"schedule " + name, "name", err.Error()}
		}
		taken, err := s.schedulesNamed(ctx, a.tx, []string{to})
		if err != nil {
			return err
		}
		if _, ok := taken[to]; ok {
			return fmt.Errorf("schedule %s: %w", to, ErrExists)
		}
		return a.renameSchedule(ctx, r.Before, r.After)
	})
	return r, err
}

// renameSchedule writes the new name of a shared schedule. The rows of its jobs stay as they are. But of a job that is done,
// only the change log has the definition, by which apply knows the job in a file: there, it gets the new name, too. This is no
// change of the job itself: who aborted, disabled or resumed it, and why, stays the latest word on its state.
func (a *applier) renameSchedule(ctx context.Context, was, is Schedule) error {
	jobs, err := a.briefUsers(ctx, was.ID)
	if err != nil {
		return err
	}
	if err := a.run(ctx, engine.Args{"id": was.ID, "name": is.Name}, "rename_schedule"); err != nil {
		return err
	}
	if a.dry.on {
		a.dry.shared[was.Name] = is
	}
	if err := a.record(KindSchedule, is.Name, "rename", was.ID, was, is); err != nil {
		return err
	}
	for i := range jobs {
		j := jobs[i]
		j.Schedules = renamedIn(j.Schedules, was.Name, is.Name)
		if err := a.record(KindJob, j.FullName(), "rename", j.ID, jobs[i], j); err != nil {
			return err
		}
	}
	return nil
}

// briefUsers reads the jobs that use a schedule until they are done.
func (a *applier) briefUsers(ctx context.Context, schedule int64) ([]Job, error) {
	var ids []int64
	if err := a.tx.Query(ctx, "brief_users", engine.Args{"id": schedule}, engine.Column(&ids)); err != nil {
		return nil, err
	}
	return a.allDefinitions(ctx, byIDs(ids))
}

// renamedIn returns the sorted names with one of them replaced.
func renamedIn(names []string, was, is string) []string {
	i := slices.Index(names, was)
	if i < 0 {
		return names
	}
	names = slices.Clone(names)
	names[i] = is
	slices.Sort(names)
	return names
}
