package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// doneJobs are jobs that remove_when_done has removed, if no other job of that name was created since. If a manifest
// still contains them, they must not run again.
type doneJobs struct {
	jobs knownJobs                              // id, owner and name only
	were map[int64][]map[string]json.RawMessage // the definitions that they had, from the change log
}

// findDone reads the done jobs, if the definitions may contain one of them. That is so if they create a job that does
// not exist, or run after one that does not.
func (a *applier) findDone(ctx context.Context, jobs []Job) (err error) {
	var names []string
	for i := range jobs {
		j := &jobs[i]
		if j.RemoveDone && !a.o.CreateOnly && a.known.byName[a.fullName(*j)] == nil {
			names = append(names, j.Name)
		}
		for _, f := range j.After {
			if _, err := a.known.find(f.Job, cmp.Or(j.Owner, a.login)); err != nil {
				names = append(names, plainName(f.Job))
			}
		}
	}
	a.done, err = readDone(ctx, a.tx, names)
	return err
}

// readDone reads which jobs with these names are done.
func readDone(ctx context.Context, q engine.Runner, names []string) (doneJobs, error) {
	d := doneJobs{newKnownJobs(), map[int64][]map[string]json.RawMessage{}}
	last := map[string]*Job{} // of each full name, the last one that is done
	for part := range slices.Chunk(legible(names), page) {
		var j Job
		var done bool
		var became map[string]json.RawMessage
		err := q.Query(ctx, "removed_jobs", engine.Args{"ids": part}, engine.Reads(&j.ID, &j.Owner, &j.Name, &done, jsonInto{&became}).Each(func(string) {
			if delete(last, j.FullName()); done {
				last[j.FullName()] = new(j)
			}
			if became != nil {
				d.were[j.ID] = append(d.were[j.ID], became)
			}
			j, became = Job{}, nil
		}))
		if err != nil {
			return d, err
		}
	}
	for _, j := range last {
		d.jobs.add(j)
	}
	return d, nil
}

// has reports whether this very job is done, whichever manifest had it. It had several definitions if it was altered before, by
// a command or by a file: with none of them it runs again.
func (d *doneJobs) has(j Job) bool {
	old := d.jobs.byName[j.FullName()]
	if old == nil || d.were[old.ID] == nil || !j.RemoveDone {
		return false
	}
	text, err := fields(j)
	if err != nil {
		return false
	}
	is, err := byField(text)
	if err != nil {
		return false
	}
	another := func(c FieldChange) bool { return !besideWork(c.Field) && (c.Field != "not_before" || j.Start == "") } // to which the start schedule resolved
	return slices.ContainsFunc(d.were[old.ID], func(was map[string]json.RawMessage) bool {
		return !slices.ContainsFunc(differences(was, is), another)
	})
}

// besideWork reports whether a job that differs in this field alone is the same piece of work, so that it need not be done again.
// Such are its names, and all that a file may say for all of its jobs: policies, by which runs are executed, and a zone. Whether it
// is enabled is a state, and no work.
func besideWork(field string) bool {
	switch field {
	case "name", "manifest", "description", "disabled", "own.zone", "start_zone":
		return true
	}
	return slices.ContainsFunc(policies, func(p Policy) bool { return p.Shared && p.Key == field })
}

// doneOf is a job that a decision removes, because none of its runs is left to be executed.
type doneOf struct {
	c      *Snapshot
	name   string
	reason string
}

// editorsTurn is how long a decision leaves a job that is done alone if somebody is editing it.
const editorsTurn = time.Minute

// writeDone removes jobs that are done, as a command would, and records that in the change log. A job that a session
// is editing is left for a later decision: waiting for the lock would delay the batch, and the edit may give the job
// something to do.
func (w *writer) writeDone(ctx context.Context) error {
	if err := w.spareHooks(ctx); err != nil || len(w.done) == 0 {
		return err
	}
	ids, free, err := w.unedited(ctx)
	if err != nil {
		return err
	}
	later := w.at(w.now.Add(editorsTurn))
	var changes []changeRow
	for _, d := range w.done {
		id := d.c.Plan.JobID
		if free[id] {
			changes = append(changes, changeRow{id, d.name, "remove", d.reason})
			continue
		}
		ids = slices.DeleteFunc(ids, func(other int64) bool { return other == id })
		for i := range w.plans {
			if w.plans[i].JobID == id {
				w.plans[i].NextRun = later
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if err := execAll(ctx, w.tx, engine.Args{"ids": ids, "now": w.now}, "finish_jobs", "finish_links", "finish_schedules", "forget_plan_rules"); err != nil {
		return err
	}
	return bulk(ctx, w, "insert_changes", changes, nil)
}

// leaves notes a job that plain SQL has removed, and reports whether it is one. It still has the schedules that a command
// would have taken away: they would be in use for ever.
func (w *writer) leaves(c *Snapshot) bool {
	if c.Job.Removed().IsZero() || !slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.Linked || r.Lost }) {
		return false
	}
	w.removed = append(w.removed, c.Plan.JobID)
	return true
}

// writeRemoved takes the schedules away from the jobs that plain SQL has removed.
func (w *writer) writeRemoved(ctx context.Context) error {
	if err := w.exec(ctx, "finish_links", w.removed); err != nil {
		return err
	}
	return w.exec(ctx, "finish_schedules", w.removed)
}

// spareHooks leaves out jobs that are hooks of jobs that stay: those may need them again. The definition of such a job
// would name nothing, and could not be applied again.
func (w *writer) spareHooks(ctx context.Context) error {
	if len(w.done) == 0 {
		return nil
	}
	used := map[string]bool{}
	var owner string
	var on Hooks
	to := []any{&owner}
	for _, hook := range on.All() {
		to = append(to, engine.Nullable(hook))
	}
	err := w.tx.Query(ctx, "hooks_in_use", nil, engine.Reads(to...).Each(func(string) {
		of := on.Of(owner)
		for _, hook := range of.Jobs() {
			used[hook] = true
		}
		on = Hooks{}
	}))
	w.done = slices.DeleteFunc(w.done, func(d doneOf) bool { return used[d.name] })
	return err
}

// unedited returns the jobs to be removed. free has those that no session has locked, or has edited since they were
// read, together with their links and their own rules.
func (w *writer) unedited(ctx context.Context) (ids []int64, free map[int64]bool, err error) {
	missing := map[int64]int{} // locks that are still missing
	for _, d := range w.done {
		id := d.c.Plan.JobID
		ids, missing[id] = append(ids, id), 1
		for _, r := range d.c.Rules {
			if r.Linked {
				missing[id]++
			}
		}
	}
	var id int64
	for _, q := range []struct {
		statement string
		by        int
	}{{"own_schedules", 1}, {"lock_unchanged_jobs", -1}, {"lock_stale_links", -1}, {"lock_done_schedules", -1}} {
		if err := w.tx.Query(ctx, q.statement, engine.Args{"ids": ids}, engine.Scan(func() { missing[id] += q.by }, &id)); err != nil {
			return nil, nil, err
		}
	}
	free = map[int64]bool{}
	for id, n := range missing {
		free[id] = n == 0
	}
	return ids, free, nil
}
