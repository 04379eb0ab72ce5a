package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
)

// row is one row of a statement's document.
type row = json.RawMessage

// write sends rows to a statement, if there are any.
func (a *applier) write(ctx context.Context, statement string, rows []row) error {
	if a.dry.on {
		return nil
	}
	return bulkWith(ctx, a.tx, statement, engine.Args{"now": a.now, "by": a.o.By, "reason": a.o.Reason}, rows, nil)
}

// writeJobs changes jobs, each of which has one row. If one was removed since it was read, as a pass removes a job that is done,
// the definitions are applied again: to a job that is gone, they are a new one.
func (a *applier) writeJobs(ctx context.Context, rows []row) error {
	if a.dry.on {
		return nil
	}
	return bulkWith(ctx, a.tx, "update_jobs", engine.Args{"now": a.now}, rows, func(n int64) error {
		if n < int64(len(rows)) {
			return fmt.Errorf("change jobs: %w", engine.ErrConflict)
		}
		return nil
	})
}

// exec sends ids to a statement, if there are any.
func (a *applier) exec(ctx context.Context, statement string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return a.run(ctx, engine.Args{"now": a.now, "ids": ids}, statement)
}

// edits are the rows that a batch of jobs writes, in the order in which they are written.
type edits struct {
	a                            *applier
	jobs, steps, links, unlinked []row
	newRules, rules              []row
	following                    []row
	unfollowing                  []int64 // jobs whose rows of job_after are written again
	ruled, unruled               []int64 // jobs that get a rule of their own, and jobs that lose it
	stepped, lost, touched       []int64 // jobs whose steps are written again; jobs that lost a link to plain SQL; jobs that lose links
	shared                       map[string]int64
}

// batch writes changed jobs that have a row, together with the rows that belong to them.
func (a *applier) batch(ctx context.Context, list []*edit) error {
	w := &edits{a: a}
	var changing []*edit
	for _, e := range list {
		if e.differs || changed(e.old, &e.job) {
			changing = append(changing, e)
		}
	}
	if err := w.findShared(ctx, changing); err != nil {
		return err
	}
	for i := range changing {
		if err := w.add(changing[i]); err != nil {
			return err
		}
	}
	return w.send(ctx)
}

// findShared reads the ids of the schedules that the jobs use, or used before.
func (w *edits) findShared(ctx context.Context, list []*edit) error {
	var names []string
	for _, e := range list {
		names = append(append(names, e.job.Schedules...), e.old.Schedules...)
	}
	slices.Sort(names)
	known, err := w.a.s.schedulesNamed(ctx, w.a.tx, slices.Compact(names))
	w.shared = make(map[string]int64, len(known))
	for name, c := range known {
		w.shared[name] = c.ID
	}
	for name, c := range w.a.schedules { // a dry run has not written its schedules to the database
		w.shared[name] = c.ID
	}
	return err
}

func (w *edits) add(of *edit) error {
	e, j, old := w.a.s.Engine(), &of.job, of.old
	isNew := old.ID == 0
	if !isNew || of.renamed { // a new row names hooks as the definition gives them
		w.jobs = append(w.jobs, jobRow(e, j))
	}
	if isNew || old.fault != "" || !reflect.DeepEqual(old.Steps, j.Steps) {
		if !isNew {
			w.stepped = append(w.stepped, j.ID)
		}
		for i := range j.Steps {
			w.steps = append(w.steps, stepRow(e, j.ID, i+1, &j.Steps[i]))
		}
	}
	if err := w.link(j, old); err != nil {
		return err
	}
	w.own(j, old)
	w.follow(j, old)
	if isNew {
		return w.a.record("job", j.FullName(), "create", j.ID, nil, *j)
	}
	return w.a.record("job", j.FullName(), "change", j.ID, *old, *j)
}

// link makes the job's links to shared schedules as they should be.
func (w *edits) link(j, old *Job) error {
	if old.lostLink {
		w.lost, w.touched = append(w.lost, j.ID), append(w.touched, j.ID)
	}
	for _, name := range j.Schedules {
		if slices.Contains(old.Schedules, name) {
			continue
		}
		id, ok := w.shared[name]
		if !ok {
			return &FieldError{"job " + j.FullName(), "schedule", fmt.Sprintf("there is no schedule %q; `dbjobs schedule list` shows them", name)}
		}
		w.links = append(w.links, w.pair(j.ID, id))
		w.a.dry.uses(name, j.FullName(), 1)
	}
	for _, name := range old.Schedules {
		if !slices.Contains(j.Schedules, name) {
			w.unlink(j.ID, w.shared[name])
			w.a.dry.uses(name, j.FullName(), -1)
		}
	}
	return nil
}

func (w *edits) pair(job, schedule int64) row {
	e := w.a.s.Engine()
	return engine.EndRow(e.AppendField(e.AppendField(nil, "job_id", job), "schedule_id", schedule))
}

// unlink deletes a link, and records that in the job's row: a deleted link has no row that could differ.
func (w *edits) unlink(job, schedule int64) {
	w.unlinked, w.touched = append(w.unlinked, w.pair(job, schedule)), append(w.touched, job)
}

// own makes the job's own rule as it should be.
func (w *edits) own(j, old *Job) {
	e := w.a.s.Engine()
	rule := func(key string, id int64) row {
		c := j.Own
		b := e.AppendField(e.AppendField(nil, key, id), "rule", c.Rule)
		b = e.AppendField(e.AppendField(b, "zone", c.Zone), "nonexistent", c.Nonexistent)
		b = e.AppendField(e.AppendField(b, "ambiguous", c.Ambiguous), "calendar", c.Calendar)
		b = e.AppendField(e.AppendField(b, "on_holiday", cmp.Or(c.OnHoliday, HolidaySkip)), "calendar_version", w.a.versionOf(c.Calendar))
		return engine.EndRow(e.AppendField(b, "description", c.Description))
	}
	switch {
	case j.Own == nil && old.Own == nil:
	case j.Own == nil:
		w.unlink(j.ID, old.Own.ID)
		w.unruled = append(w.unruled, j.ID)
	case old.Own == nil:
		w.ruled, w.newRules = append(w.ruled, j.ID), append(w.newRules, rule("job_id", j.ID))
	default:
		w.rules = append(w.rules, rule("id", old.Own.ID))
	}
}

// send writes the rows, with few statements for each table, the jobs first.
func (w *edits) send(ctx context.Context) error {
	a := w.a
	slices.Sort(w.touched)
	for _, send := range []func() error{
		func() error { return a.writeJobs(ctx, w.jobs) },
		func() error { return a.exec(ctx, "delete_steps", w.stepped) },
		func() error { return a.write(ctx, "insert_steps", w.steps) },
		func() error { return a.exec(ctx, "delete_after", w.unfollowing) },
		func() error { return a.write(ctx, "insert_after", w.following) },
		func() error { return a.exec(ctx, "delete_lost_links", w.lost) },
		func() error { return a.write(ctx, "delete_links", w.unlinked) },
		func() error { return a.exec(ctx, "touch_jobs", slices.Compact(w.touched)) },
		func() error { return a.exec(ctx, "touch_parked", w.stepped) },
		func() error { return a.write(ctx, "insert_links", w.links) },
		func() error { return a.exec(ctx, "finish_schedules", w.unruled) },
		func() error { return a.write(ctx, "date_own_rules", w.rules) },
		func() error { return a.write(ctx, "update_own_rules", w.rules) },
		func() error { return a.write(ctx, "insert_own_rules", w.newRules) },
		func() error { return a.exec(ctx, "link_own_rules", w.ruled) },
		func() error { return a.flush(ctx) },
	} {
		if err := send(); err != nil {
			return err
		}
	}
	return nil
}
