package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// jobs applies jobs in two rounds, so that one may run after another that stands below it.
func (a *applier) jobs(ctx context.Context, jobs []Job, known map[string]Job) error {
	type pending struct{ job, old Job }
	var list []pending
	twice := a.twice(known)
	for _, j := range jobs {
		asked := j.Owner
		if j.Owner == "" {
			j.Owner = a.login
		}
		if !a.s.db.Engine().KnowsLogins && j.Owner != "" {
			return &FieldError{"job " + j.Name, "owner", "SQLite has no logins; remove this key"}
		}
		j.Manifest = a.o.Manifest
		j.Normalize()
		if err := j.Validate(); err != nil {
			return err
		}
		if _, ok := a.groups[j.Group]; j.Group != "" && !ok {
			return &FieldError{"job " + j.FullName(), "group", fmt.Sprintf("there is no group %q; add it to a manifest: groups: {%s: 1}", j.Group, j.Group)}
		}
		old, ok := known[j.FullName()]
		if err := twice(j, asked, ok); err != nil {
			return err
		}
		if ok && a.o.CreateOnly {
			return fmt.Errorf("job %s: %w", j.FullName(), ErrExists)
		}
		if err := a.mayTake("job "+j.FullName(), old.Manifest); err != nil {
			return err
		}
		if !ok && !a.o.CreateOnly && a.done.has(j) {
			a.changes = append(a.changes, Change{At: a.now, By: a.o.By, Kind: "job", Subject: j.FullName(), Action: "done"})
			continue
		}
		if err := a.start(&j, old); err != nil {
			return err
		}
		j.ID, j.afterID = old.ID, old.afterID
		if !ok {
			if _, err := a.tx.Exec(ctx, "insert_job", jobArgs(&j).With("now", a.now)); err != nil {
				return err
			}
			if err := a.tx.Row(ctx, "job_id", engine.Args{"owner": j.Owner, "name": j.Name}, &j.ID); err != nil {
				return err
			}
			known[j.FullName()] = j
		}
		list = append(list, pending{j, old})
	}
	for _, t := range list {
		if err := a.job(ctx, t.job, t.old, known); err != nil {
			return err
		}
	}
	return nil
}

// twice refuses to make a job that the same manifest has made for another login: both would run. It is made all the same
// where the file names its owner.
func (a *applier) twice(jobs map[string]Job) func(j Job, asked string, known bool) error {
	owners := map[string]string{} // by the jobs' names
	for _, key := range slices.Sorted(maps.Keys(jobs)) {
		if j := jobs[key]; a.o.Manifest != "" && j.Manifest == a.o.Manifest {
			owners[j.Name] = j.Owner
		}
	}
	return func(j Job, asked string, known bool) error {
		owner, there := owners[j.Name]
		if known || asked != "" || !there || a.o.CreateOnly {
			return nil
		}
		return &FieldError{"job " + j.Name, "owner", fmt.Sprintf("the manifest %q has this job already, for the login %s; a second job for %s would run beside it; "+
			"apply as %[2]s, or add owner: %[2]s to change the existing job, or owner: %[3]s to create a second one", a.o.Manifest, owner, a.login)}
	}
}

// start resolves the start schedule of a job that is made, or whose start has changed; as long as it is the same, so is
// what it was resolved to.
func (a *applier) start(j *Job, old Job) (err error) {
	switch {
	case j.Start == "":
		return nil
	case old.ID != 0 && j.Start == old.Start && j.StartZone == old.StartZone:
		j.NotBefore = old.NotBefore
	case a.o.Start == nil:
		return nil
	default:
		if j.NotBefore, err = a.o.Start(j.Start, j.StartZone, a.now); err != nil {
			return &FieldError{"job " + j.FullName(), "start", err.Error()}
		}
	}
	return j.ValidatePolicies() // not_after may lie before it
}

func (a *applier) job(ctx context.Context, j, old Job, known map[string]Job) error {
	if j.After != "" {
		other, err := find(known, j.After, j.Owner)
		if done, gone := find(a.done.jobs, j.After, j.Owner); err != nil && gone == nil { // what is done keeps its followers
			other, err = done, nil
		}
		if err != nil {
			return &FieldError{"job " + j.FullName(), "after", err.Error()}
		}
		j.After = other.FullName()
		if other.ID == j.ID {
			return &FieldError{"job " + j.FullName(), "after", "a job cannot run after itself"}
		}
		j.afterID = other.ID
		if err := circle(known, j); err != nil {
			return err
		}
	} else {
		j.afterID = 0
	}
	isNew := old.ID == 0
	if !isNew && old.fault == "" && same(old, j) && old.afterID == j.afterID && !old.lostLink { // its predecessor may be another of the same name
		return nil
	}
	if !isNew || j.afterID != 0 {
		if _, err := a.tx.Exec(ctx, "update_job", jobArgs(&j).With("now", a.now)); err != nil {
			return err
		}
	}
	if isNew || old.fault != "" || !same(struct{ Steps []Step }{old.Steps}, struct{ Steps []Step }{j.Steps}) {
		if err := a.steps(ctx, j); err != nil {
			return err
		}
	}
	if err := a.links(ctx, j, old); err != nil {
		return err
	}
	known[j.FullName()] = j
	if isNew {
		return a.record(ctx, "job", j.FullName(), "create", j.ID, nil, j)
	}
	return a.record(ctx, "job", j.FullName(), "change", j.ID, old, j)
}

// circle refuses a job that would run after itself by way of others.
func circle(known map[string]Job, j Job) error {
	byID := map[int64]Job{}
	for _, k := range known {
		byID[k.ID] = k
	}
	for next, path := byID[j.afterID], j.Name; next.ID != 0; next = byID[next.afterID] {
		path += " after " + next.Name
		if next.ID == j.ID {
			return &FieldError{"job " + j.FullName(), "after", "the jobs run after each other in a circle: " + path}
		}
	}
	return nil
}

func (a *applier) steps(ctx context.Context, j Job) error {
	if _, err := a.tx.Exec(ctx, "delete_steps", engine.Args{"job": j.ID}); err != nil {
		return err
	}
	for i := range j.Steps {
		if _, err := a.tx.Exec(ctx, "insert_step", stepArgs(j.ID, i+1, &j.Steps[i])); err != nil {
			return err
		}
	}
	return nil
}

// links brings the job's schedules about: those it shares by name, and its own.
func (a *applier) links(ctx context.Context, j, old Job) error {
	if old.lostLink {
		for _, st := range []string{"delete_lost_links", "touch_job"} {
			if _, err := a.tx.Exec(ctx, st, engine.Args{"job": j.ID, "id": j.ID}); err != nil {
				return err
			}
		}
	}
	for _, name := range j.Schedules {
		if slices.Contains(old.Schedules, name) {
			continue
		}
		var id int64
		if err := a.tx.Row(ctx, "schedule_id", engine.Args{"name": name}, &id); err != nil {
			return &FieldError{"job " + j.FullName(), "schedule", fmt.Sprintf("there is no schedule %q; `dbjobs schedule list` shows them", name)}
		}
		if _, err := a.tx.Exec(ctx, "insert_link", engine.Args{"now": a.now, "job": j.ID, "schedule": id}); err != nil {
			return err
		}
	}
	for _, name := range old.Schedules {
		if slices.Contains(j.Schedules, name) {
			continue
		}
		var id int64
		if err := a.tx.Row(ctx, "schedule_id", engine.Args{"name": name}, &id); err != nil {
			return err
		}
		if err := a.unlink(ctx, j.ID, id); err != nil {
			return err
		}
	}
	return a.own(ctx, j, old)
}

// unlink takes a link away, and says so in the job's row: a link that is gone has no row that could differ.
func (a *applier) unlink(ctx context.Context, job, schedule int64) error {
	if _, err := a.tx.Exec(ctx, "delete_link", engine.Args{"job": job, "schedule": schedule}); err != nil {
		return err
	}
	_, err := a.tx.Exec(ctx, "touch_job", engine.Args{"id": job})
	return err
}

func (a *applier) own(ctx context.Context, j, old Job) error {
	switch {
	case j.Own == nil && old.Own == nil:
		return nil
	case j.Own == nil:
		if err := a.unlink(ctx, j.ID, old.Own.ID); err != nil {
			return err
		}
		_, err := a.tx.Exec(ctx, "delete_schedule", engine.Args{"id": old.Own.ID})
		return err
	case old.Own != nil:
		c := *j.Own
		c.ID = old.Own.ID
		_, err := a.tx.Exec(ctx, "update_schedule", scheduleArgs(c, j.ID, a))
		return err
	}
	c := *j.Own
	c.Name = ""
	if _, err := a.tx.Exec(ctx, "insert_schedule", scheduleArgs(c, j.ID, a)); err != nil {
		return err
	}
	if err := a.tx.Row(ctx, "own_schedule_id", engine.Args{"job": j.ID}, &c.ID); err != nil {
		return err
	}
	_, err := a.tx.Exec(ctx, "insert_link", engine.Args{"now": a.now, "job": j.ID, "schedule": c.ID})
	return err
}

// find looks a job up by owner/name, or by a name that only one owner has (the given one first).
func find(known map[string]Job, name, owner string) (Job, error) {
	if j, ok := known[name]; ok {
		return j, nil
	}
	if j, ok := known[strings.TrimPrefix(owner+"/"+name, "/")]; ok {
		return j, nil
	}
	var found []string
	for key, j := range known {
		if j.Name == name {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 1:
		return known[found[0]], nil
	case 0:
		return Job{}, fmt.Errorf("job %q: %w; `dbjobs job list` shows them", name, ErrNotFound)
	}
	return Job{}, fmt.Errorf("job %q: several owners have a job with this name: %s", name, strings.Join(found, ", "))
}
