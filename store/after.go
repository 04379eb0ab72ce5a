package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// After names a job after whose runs another job runs, and the ends of those runs that count.
type After struct {
	Job string `json:"job"` // owner/name, or a name of the same owner
	On  string `json:"on"`  // success (default), failure or end
	id  int64  // of the job that Job names
	out bool   // the login sees no row of that job
}

// The ends of a run after which another job may run.
const (
	OnSuccess = "success"
	OnFailure = "failure" // it failed, or was lost
	OnEnd     = "end"     // any end, also that of a cancelled run
)

// Ends returns the words that After.On may be.
func Ends() []string { return []string{OnSuccess, OnFailure, OnEnd} }

// String returns the job, and the ends that count unless only success does.
func (f After) String() string {
	if cmp.Or(f.On, OnSuccess) == OnSuccess {
		return f.Job
	}
	return f.On + " of " + f.Job
}

// AfterText names all jobs after which a job runs.
func AfterText(list []After) string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].String()
	}
	return strings.Join(names, " and ")
}

var errItself = errors.New("a job cannot run after itself")

// checkAfter refuses a list that no job can run after.
func checkAfter(j *Job, list []After) error {
	for i, f := range list {
		if f.Job == j.Name || f.Job == j.FullName() {
			return errItself
		}
		if err := cmp.Or(notEmpty(f.Job), CheckHook(f.Job), oneOf(f.On, Ends()...)); err != nil {
			return err
		}
		if slices.ContainsFunc(list[:i], func(o After) bool { return o.Job == f.Job }) {
			return fmt.Errorf("names job %s twice", f.Job)
		}
	}
	return nil
}

// Follower is a job that runs after ends of the runs of another job.
type Follower struct {
	JobID    int64
	Queue    string
	Priority int
	On       string
	Of       int  // how many jobs it runs after
	UsedUp   bool // it has made as many runs as max_runs allows
}

// Follows reports whether the job runs after a run that has ended in this state.
func (f *Follower) Follows(state string) bool {
	switch f.On {
	case OnSuccess:
		return state == Succeeded
	case OnFailure:
		return state == Failed || state == Lost
	case OnEnd:
		return true
	}
	return false // written by plain SQL where the table's check is gone
}

// readFollowers reads which jobs run after these jobs. It leaves out a job that runs after itself by way of other
// jobs: no pass would end.
func (s *Store) readFollowers(ctx context.Context, tx *engine.Tx, ids []int64, byJob map[int64]*Snapshot) error {
	type pair struct {
		Follower
		of int64
	}
	var pairs []pair
	var followers []int64
	var f pair
	err := tx.Query(ctx, "batch_followers", engine.Args{"ids": ids}, engine.Reads(&f.of, &f.JobID, &f.Queue, &f.Priority, &f.On, &f.Of, &f.UsedUp).Each(func(fault string) {
		if fault == "" { // otherwise the follower's own decision reports what is wrong with it
			pairs, followers = append(pairs, f), append(followers, f.JobID)
		}
	}))
	if err != nil || len(followers) == 0 {
		return err
	}
	astray := map[int64]bool{}
	err = s.eachAfter(ctx, tx, followers, func(job int64, a after) {
		astray[job] = astray[job] || a.circle || a.lost
	})
	for _, f := range pairs {
		if c := byJob[f.of]; c != nil && !astray[f.JobID] {
			c.Followers = append(c.Followers, f.Follower)
		}
	}
	return err
}

// readAfter reads after which jobs the jobs run, where that may have changed. It also reads whether one of them runs
// after itself, or after a job whose row is gone.
func (s *Store) readAfter(ctx context.Context, tx *engine.Tx, n Need, byJob map[int64]*Snapshot) error {
	var look []int64
	for id, c := range byJob {
		if c.follows && (n == Check || n == LinkChanged || c.Stale || c.Plan.Parked != "") {
			look = append(look, id)
		}
	}
	if len(look) == 0 {
		return nil
	}
	slices.Sort(look)
	return s.eachAfter(ctx, tx, look, func(job int64, a after) {
		c := byJob[job]
		if c.Circle, c.AfterLost = c.Circle || a.circle, c.AfterLost || a.lost; a.circle {
			return
		}
		c.Job.After = append(c.Job.After, After{Job: strconv.FormatInt(a.id, 10), On: OnSuccess, id: a.id})
		c.AfterChanged = c.AfterChanged || a.unseen
	})
}

// after is a row of the statement circles.
type after struct {
	id     int64
	circle bool // the job runs after itself
	lost   bool // the other job's row is gone
	unseen bool // no decision has seen this
}

func (s *Store) eachAfter(ctx context.Context, tx *engine.Tx, ids []int64, fn func(job int64, a after)) error {
	var job int64
	var a after
	return tx.Query(ctx, "circles", engine.Args{"ids": ids}, engine.Scan(func() { fn(job, a) }, &job, &a.id, &a.circle, &a.lost, &a.unseen))
}

// writeAfter marks as seen after which jobs the jobs of the batch run. A row that a session is editing, or has added
// since the rows were read, stays unmarked, so the next pass reads it again.
func (w *writer) writeAfter(ctx context.Context) error {
	if len(w.after) == 0 {
		return nil
	}
	free := make(map[int64]int, len(w.after)) // negative: fewer rows were locked than read, so another session has one of them
	ids := make([]int64, 0, len(w.after))
	for id, n := range w.after {
		ids, free[id] = append(ids, id), -n
	}
	slices.Sort(ids)
	var job, other int64
	if err := w.tx.Query(ctx, "lock_stale_after", engine.Args{"ids": ids}, engine.Scan(func() { free[job]++ }, &job, &other)); err != nil {
		return err
	}
	return w.exec(ctx, "mark_after", slices.DeleteFunc(ids, func(id int64) bool { return free[id] != 0 }))
}
