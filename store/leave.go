package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

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
	known, err := a.s.schedules(ctx, a.tx)
	if err != nil {
		return err
	}
	for _, c := range d.Schedules {
		delete(known.named, c.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(known.named)) {
		switch c := known.named[name]; {
		case c.Manifest != a.o.Manifest:
		case !a.o.Prune:
			a.left("schedule", name)
		default:
			if err := a.removeSchedule(ctx, c); err != nil {
				return err
			}
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
		return &FieldError{"schedule " + c.Name, "jobs", fmt.Sprintf("%d jobs use it; remove it from these jobs first", c.Jobs)}
	}
	if _, err := a.tx.Exec(ctx, "delete_schedule", engine.Args{"id": c.ID}); err != nil {
		return err
	}
	return a.record(ctx, "schedule", c.Name, "remove", c.ID, c, nil)
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
