package decide

import (
	"fmt"

	"github.com/dbjobs/dbjobs/store"
)

// removeWhenDone says why the job is to be removed; empty: the job stays. A job whose last run did not
// succeed stays, so that people can look at it and try again.
func (d *decision) removeWhenDone() string {
	j := d.job()
	if !j.RemoveDone || d.gone() || j.Disabled || d.plan.Parked != "" || !d.plan.NextRun.IsZero() || d.plan.LastState != store.Succeeded || len(d.made) > 0 {
		return ""
	}
	for i := range d.active {
		if !d.active[i].Ended() {
			return ""
		}
	}
	for i := range d.pauses {
		if d.pauses[i].Holds(d.now) {
			return ""
		}
	}
	return fmt.Sprintf("remove_when_done: the job has no further run, and run %s succeeded", d.plan.LastRunID)
}
