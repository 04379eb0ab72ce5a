package decide

import (
	"fmt"
	"slices"

	"github.com/dbjobs/dbjobs/store"
)

// removeWhenDone says why the job is to be removed; empty: the job stays. A job whose last run did not
// succeed stays, so that people can look at it and try again.
func (d *decision) removeWhenDone() string {
	j := d.job()
	if !j.RemoveDone || d.gone() || j.Disabled || d.plan.Parked != "" || !d.plan.NextRun.IsZero() || d.plan.LastState != store.Succeeded || len(d.made) > 0 {
		return ""
	}
	open := func(r *store.Run) bool { return !r.Ended() }
	holds := func(p store.Pause) bool { return p.Holds(d.now) }
	if d.anyOpen(open) || d.snapshot.Queue.Runs > 0 || slices.ContainsFunc(d.pauses, holds) {
		return ""
	}
	return fmt.Sprintf("remove_when_done: the job has no further run, and run %s succeeded", d.plan.LastRunID)
}
