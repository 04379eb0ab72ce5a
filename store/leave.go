package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// leave deals with what the manifest owns and does not name. With Prune it goes: jobs first, then schedules that nobody
// uses any more. Else it stays, and is told of each time: a job that left its file would go on unnoticed.
func (a *applier) leave(ctx context.Context, d Definitions, jobs map[string]Job) error {
	named, gone, going := map[string]bool{}, []Job{}, map[int64]bool{}
	for _, j := range d.Jobs {
		named[a.key(j)] = true
	}
	for _, key := range slices.Sorted(maps.Keys(jobs)) {
		if j := jobs[key]; j.Manifest == a.o.Manifest && !named[key] {
			gone, going[j.ID] = append(gone, j), true
		}
	}
	for _, j := range gone {
		if !a.o.Prune {
			a.left("job", j.FullName())
		} else if err := a.removeJob(ctx, j, going); err != nil {
			return err
		}
	}
	return a.leaveSchedules(ctx, d.Schedules)
}

func (a *applier) leaveSchedules(ctx context.Context, named []Schedule) error {
	var gone []Schedule
	err := a.s.readSchedules(ctx, a.tx, "schedules_owned", engine.Args{"manifest": a.o.Manifest}, func(c Schedule, _ int64) { gone = append(gone, c) })
	if err != nil {
		return err
	}
	stays := map[string]bool{}
	for _, c := range named {
		stays[c.Name] = true
	}
	gone = slices.DeleteFunc(gone, func(c Schedule) bool { return stays[c.Name] })
	slices.SortFunc(gone, func(x, y Schedule) int { return cmp.Compare(x.Name, y.Name) })
	if !a.o.Prune {
		for _, c := range gone {
			a.left("schedule", c.Name)
		}
		return nil
	}
	if err := a.s.countUsers(ctx, a.tx, gone); err != nil {
		return err
	}
	for _, c := range gone {
		if err := a.removeSchedule(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// left tells of something that stays though its manifest does not name it: no change, and none of the change log.
func (a *applier) left(kind, subject string) {
	a.changes = append(a.changes, Change{At: a.now, By: a.o.By, Kind: kind, Subject: subject, Action: "left"})
}

func (a *applier) removeSchedule(ctx context.Context, c Schedule) error {
	if c.Jobs > 0 {
		users, err := a.users(ctx, c)
		if err != nil {
			return err
		}
		return &FieldError{"schedule " + c.Name, "cannot be removed", "it is used by " + users + "; remove it from these jobs first"}
	}
	if _, err := a.tx.Exec(ctx, "delete_schedule", engine.Args{"id": c.ID}); err != nil {
		return err
	}
	return a.record(ctx, "schedule", c.Name, "remove", c.ID, c, nil)
}

// users names jobs that use a schedule, and counts those beyond the first few.
func (a *applier) users(ctx context.Context, c Schedule) (string, error) {
	const shown = 5
	var names []string
	var j Job
	err := a.tx.Query(ctx, "first_users", engine.Args{"id": c.ID, "limit": shown}, engine.Reads(&j.Owner, &j.Name).Each(func(string) error {
		names = append(names, j.FullName())
		j = Job{}
		return nil
	}))
	if more := c.Jobs - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", "), err
}

// removeJob keeps the row as history and frees its name. Its links go; its plan notices by the changed row. It is
// refused where a job that does not go with it runs after it: that one would stay enabled, and never run again.
func (a *applier) removeJob(ctx context.Context, j Job, going map[int64]bool) error {
	var refused error
	err := a.tx.Query(ctx, "followers", engine.Args{"id": j.ID}, func(r *sql.Rows) error {
		var f Job
		if err := r.Scan(&f.ID, &f.Owner, &f.Name); err != nil {
			return err
		}
		if refused == nil && f.ID != j.ID && !going[f.ID] {
			refused = &FieldError{"job " + j.FullName(), "cannot be removed",
				fmt.Sprintf("job %s runs after it and would never run again; remove `after` from %s, or remove that job too", f.FullName(), f.Name)}
		}
		return nil
	})
	if err != nil || refused != nil {
		return cmp.Or(err, refused)
	}
	for _, st := range []string{"remove_job", "delete_links", "delete_own_schedule"} {
		if _, err := a.tx.Exec(ctx, st, engine.Args{"now": a.now, "id": j.ID, "job": j.ID}); err != nil {
			return err
		}
	}
	return a.record(ctx, "job", j.FullName(), "remove", j.ID, j, nil)
}
