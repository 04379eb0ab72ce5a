package store

import "time"

// PassedOver is a job that got no decision, since another session has locked one of its rows.
type PassedOver struct {
	JobID  int64
	Due    time.Time // since when the job needs a decision; zero for a changed definition
	What   string    // what is locked; empty: the plan, since another session decides for the job
	Waited bool      // the decision waited for the lock until its time was over
}

// The other things that another session may have locked, besides the plan.
const (
	lockedRun  = "one of its runs"
	lockedLong = "something that its decision has to write"
)

// passOver records the jobs of a page that are not among the snapshots.
func (b *Batch) passOver(p *Page, snapshots []Snapshot, what string) {
	known := make(map[int64]bool, len(snapshots)+len(b.Passed))
	for i := range snapshots {
		known[snapshots[i].Plan.JobID] = true
	}
	for i := range b.Passed {
		known[b.Passed[i].JobID] = true
	}
	for i, id := range p.jobs {
		if !known[id] {
			b.Passed = append(b.Passed, PassedOver{id, p.due[i], what, what == lockedLong})
		}
	}
}

// passedOver is the result for a page that has to wait for a lock.
func passedOver(p *Page) Batch {
	b := newBatch(p.now)
	b.passOver(p, nil, lockedLong)
	return b
}
