package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// AlterOptions say how a definition is changed in place.
type AlterOptions struct {
	DryRun bool // only report the changes: a login that may read is enough
	// Start resolves a start schedule, as in ApplyOptions.
	Start func(rule, zone string, after time.Time) (time.Time, error)
	// First refuses rules, as in ApplyOptions.
	First  func(Job, Schedule, *Calendar, time.Time) (time.Time, error)
	Author // for the change log
}

func (o *AlterOptions) apply() ApplyOptions {
	return ApplyOptions{DryRun: o.DryRun, Start: o.Start, First: o.First, Author: o.Author}
}

// AlteredJob is a job before and after a change in place.
type AlteredJob struct {
	Before  JobStatus
	After   Job
	Changes []Change // none: the job is as it was before
}

// AlterJob changes a job in place. edit makes the new job from the job as it is at that moment, so a change that
// another command or plain SQL has just made is not lost. edit may be called more than once. The name, the owner and
// the manifest stay the same. The next apply of the manifest may change the job back.
func (s *Store) AlterJob(ctx context.Context, name string, o AlterOptions, edit func(Job) (Job, error)) (r AlteredJob, err error) {
	r.Changes, err = s.inTurn(ctx, o.apply(), func(a *applier) error {
		if r.Before, err = a.lockJob(ctx, name); err != nil {
			return err
		}
		list := []JobStatus{r.Before}
		if err := s.deriveAll(ctx, a.tx, list); err != nil {
			return err
		}
		r.Before = list[0]
		was := &r.Before.Job
		if r.After, err = edit(*was); err != nil {
			return err
		}
		if r.After.Own != nil {
			r.After.Own.madeAs(was.Own)
		}
		r.After.ID, r.After.Owner, r.After.Name, r.After.CreatedAt = was.ID, was.Owner, was.Name, was.CreatedAt
		r.After, err = a.rewrite(ctx, was, r.After)
		return err
	})
	return r, err
}

// lockJob reads a job that is to be changed, and keeps other sessions from changing its row until the transaction
// ends. A decision passes over a locked row. So this lock is the last one that the transaction takes: see
// tick/doc.go.
func (a *applier) lockJob(ctx context.Context, name string) (JobStatus, error) {
	v, err := a.s.findJob(ctx, a.tx, name)
	if err != nil || a.dry.on {
		return v, err
	}
	return a.lockFound(ctx, v)
}

// lockFound is lockJob for a job that has been read.
func (a *applier) lockFound(ctx context.Context, v JobStatus) (JobStatus, error) {
	if err := a.lock(ctx, "lock_jobs", v.ID); err != nil {
		return v, err
	}
	return a.s.jobByID(ctx, a.tx, v.ID, v.FullName()) // as it is now that no session can change it
}

func (a *applier) lock(ctx context.Context, statement string, ids ...int64) error {
	return a.tx.Query(ctx, statement, engine.Args{"ids": ids}, func(*sql.Rows) error { return nil })
}

// rewrite writes a job that exists already, with the same checks as apply. The job stays with its manifest. rewrite
// returns the job as it was written.
func (a *applier) rewrite(ctx context.Context, was *Job, j Job) (Job, error) {
	if err := a.rewriteAll(ctx, was.Manifest, []Job{j}); err != nil {
		return j, err
	}
	j.Manifest = was.Manifest
	j.Normalize()
	err := a.start(&j, was)
	return j, err
}

// rewriteEach writes changed jobs that definitions has read.
func (a *applier) rewriteEach(ctx context.Context, jobs []Job) error {
	byManifest := map[string][]Job{}
	for _, j := range jobs {
		if j.Start != "" { // not_before was computed from start; nobody wrote both
			j.NotBefore = time.Time{}
		}
		byManifest[j.Manifest] = append(byManifest[j.Manifest], j)
	}
	for _, manifest := range slices.Sorted(maps.Keys(byManifest)) {
		if err := a.rewriteAll(ctx, manifest, byManifest[manifest]); err != nil {
			return err
		}
	}
	return nil
}

// rewriteAll is rewrite for jobs of one manifest.
func (a *applier) rewriteAll(ctx context.Context, manifest string, jobs []Job) error {
	var err error
	if a.groups, err = a.s.groups(ctx, a.tx); err != nil {
		return err
	}
	if err := a.allCalendars(ctx, Definitions{Jobs: jobs}); err != nil {
		return err
	}
	a.o.Manifest = manifest
	if err := a.find(ctx, jobs); err != nil {
		return err
	}
	if err := a.findDone(ctx, jobs); err != nil {
		return err
	}
	return a.jobs(ctx, jobs)
}
