package store

import (
	"context"
	"maps"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
)

// dryRun keeps what an applier that only reads would otherwise have written to rows. Later steps would read those
// rows from the database.
type dryRun struct {
	on      bool
	last    int64               // the newest of the ids that were made up; they are negative
	moved   map[int64]*Job      // jobs by their new names
	hooks   map[string]*Job     // the same jobs, by their former full names, once the hooks of other jobs have followed
	shared  map[string]Schedule // schedules that would have another name, by their former names
	links   map[link]int        // 1: the job uses the schedule from now on; -1: it no longer uses it
	defined map[int64]*Job      // as the definitions give them, with the hooks that they name
	gone    []keeper            // that would be removed
}

func newDryRun(on bool) dryRun {
	return dryRun{on: on, shared: map[string]Schedule{}, links: map[link]int{}, defined: map[int64]*Job{}}
}

// link names a shared schedule and a job that uses it.
type link struct{ schedule, job string }

// id makes up an id, for a row that is not written.
func (d *dryRun) id() int64 {
	d.last--
	return d.last
}

// uses records that a job begins or ceases to use a schedule.
func (d *dryRun) uses(schedule, job string, by int) {
	if d.on {
		d.links[link{schedule, job}] += by
	}
}

// goes records that a schedule or a job would be removed.
func (d *dryRun) goes(kind string, id int64) {
	if d.on {
		d.gone = append(d.gone, keeper{kind, id})
	}
}

// users corrects the number of jobs that use a schedule.
func (d *dryRun) users(schedule string, inDatabase int) int {
	for l, by := range d.links {
		if l.schedule == schedule {
			inDatabase += by
		}
	}
	return inDatabase
}

// named corrects the names of jobs that use a schedule.
func (d *dryRun) named(schedule string, inDatabase []string) []string {
	names := slices.DeleteFunc(inDatabase, func(job string) bool { return d.links[link{schedule, job}] < 0 })
	for l, by := range d.links {
		if l.schedule == schedule && by > 0 {
			names = append(names, l.job)
		}
	}
	slices.Sort(names)
	return names
}

// follows reports whether a job runs after another job. The definitions decide, where they contain the job, otherwise
// the database.
func (a *applier) follows(id, after int64, inDatabase bool) bool {
	if list, known := a.known.after[id]; a.dry.on && known {
		return slices.Contains(list, after)
	}
	return inDatabase
}

// newFollowers returns the jobs that run after another job by the definitions, but not by the database.
func (a *applier) newFollowers(after int64, inDatabase []Job, going map[int64]bool) (list []Job) {
	if !a.dry.on {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(a.known.after)) {
		j := a.known.byID[id]
		there := slices.ContainsFunc(inDatabase, func(f Job) bool { return f.ID == id })
		if j != nil && !there && !going[id] && a.follows(id, after, false) {
			list = append(list, *j)
		}
	}
	return list
}

// run executes statements that write, unless this is a dry run.
func (a *applier) run(ctx context.Context, args engine.Args, statements ...string) error {
	if a.dry.on {
		return nil
	}
	return execAll(ctx, a.tx, args, statements...)
}
