package decide

import (
	"fmt"

	"github.com/dbjobs/dbjobs/store"
)

// removeWhenDone tells why the job is to be removed; empty: it is not. What did not end well stays, for people to look at and to
// try again.
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
	return fmt.Sprintf("remove_when_done: no further run is to come, and run %s succeeded", d.plan.LastRunID)
}
