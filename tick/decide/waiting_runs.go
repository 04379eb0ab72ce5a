package decide

import (
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// admit queues waiting runs, the oldest first. A run that was delivered before keeps its place, even
// while it waits for its next attempt. Runs that one decision makes are queued in their order. After a
// change of the job, queued runs that nobody has taken need a place anew: it may have less room, or
// another group. So do runs that were given back: during that change their holder had them.
func (d *decision) admit() {
	room := d.capacity() - d.unreadable - d.snapshot.Queue.Runs
	for i := range d.active { // a run that is cancelled or held makes room, at any position in the list
		r := &d.active[i].Run
		if r.Number == 0 { // a run that was requested since the last decision
			if r.Predecessor() != "" && d.usedUp() && !d.gone() && !r.Ended() { // several runs of the other job have ended together
				r.State, r.HeldBy, r.FinishedAt, r.Error = store.Cancelled, "", d.now, "max_runs is used up"
			}
			d.number(r)
		}
		d.cancelOrHold(r)
		if (d.snapshot.Stale && r.State == store.Queued || givenBack(r)) && !r.Begun() {
			r.State = store.Waiting
		}
		if !r.Ended() && (r.State != store.Waiting || r.Begun()) {
			room--
		}
	}
	nextHasCome := d.nextHasCome()
	place := func(r *store.Run) {
		first := !r.Begun()
		switch {
		case r.State != store.Waiting || r.HeldBy == store.HeldByPause:
		case r.ReadyAt.After(d.now): // back-off or jitter: ready_at wakes the job
			r.HeldBy = ""
		case nextHasCome && d.untilNext(r): // the next pass of a host that can run the job ends this run
			if r.HeldBy = ""; d.othersJob {
				r.HeldBy = store.HeldByPredecessor
			}
		case first && room <= 0:
			r.HeldBy = store.HeldByPredecessor
		default:
			if first {
				room--
			} else {
				keepPlace(r)
			}
			r.State, r.HeldBy = store.Queued, ""
			if first && d.snapshot.Group != nil { // the run waits until Groups admits it
				r.State, r.HeldBy = store.Waiting, store.HeldByGroup
			}
		}
	}
	for i := range d.active {
		place(&d.active[i].Run)
		d.update(&d.active[i])
	}
	for i := range d.made {
		d.cancelOrHold(&d.made[i])
		place(&d.made[i])
	}
}

// keepPlace gives a run that was delivered before a place in its queue by its own age. By its back-off, or the loss of its holder,
// it would stand behind a whole backlog, and its timeout would go on meanwhile.
func keepPlace(r *store.Run) {
	if made := later(r.CreatedAt, r.ScheduledFor); made.Before(r.ReadyAt) {
		r.ReadyAt = made
	}
}

// number numbers a run that no decision has seen: one that was requested, or that plain SQL has inserted as queued, and that a
// worker may have ended since. The number of a run that cannot be read stays as it is.
func (d *decision) number(r *store.Run) {
	if r.Number == 0 && r.Fault == "" {
		d.plan.RunsMade++
		r.Number = d.plan.RunsMade
	}
}

// countUnderWay counts the runs that take up room in a group.
func (d *decision) countUnderWay() (n int) {
	n = d.unreadable + d.snapshot.Queue.Runs
	for i := range d.active {
		if d.active[i].UnderWay() {
			n++
		}
	}
	for i := range d.made {
		if d.made[i].UnderWay() {
			n++
		}
	}
	return n
}

// cancelOrHold cancels a run on request, or if the job is gone. While a pause applies, it holds back a
// run that has not begun; after the pause it releases that run. A run that nobody executes is in the queue of its job. Each run
// has the priority of its job, also while somebody has it: it may be given back, or wait for its next try.
func (d *decision) cancelOrHold(r *store.Run) {
	cancel := func(why string) {
		r.State, r.HeldBy, r.FinishedAt, r.Error = store.Cancelled, "", d.now, why
	}
	if was := &d.snapshot.Planned; was.Known && r.Priority == was.Priority && !d.gone() && !r.Ended() { // otherwise plain SQL has given the run its own
		r.Priority = d.job().Priority
	}
	switch {
	case r.State == store.Running || r.Ended():
		return
	case !r.CancelAt.IsZero():
		cancel("cancelled on request")
	case d.job().ID == 0:
		cancel("the row of its job was deleted")
	case d.gone():
		cancel("the job was removed")
	case d.othersRun(r):
		cancel("it was made before the job, for another one that had the same id")
	case r.Begun():
	case d.pauseHolds(r):
		r.State, r.HeldBy = store.Waiting, store.HeldByPause
	case r.HeldBy == store.HeldByPause:
		r.HeldBy = ""
	}
	if q := d.job().Queue; q != "" { // the job's queue has changed, or plain SQL has requested the run without naming it
		r.Queue = q
	}
}

// othersRun reports whether a run is one of a job whose row is gone, and whose id a new job has: ids begin anew when all rows of
// jobs were deleted, as by TRUNCATE. A run of a new job may be somewhat older than the job: a decision that finds a new follower
// makes its run at the instant at which the pass read the page.
func (d *decision) othersRun(r *store.Run) bool {
	made := d.job().CreatedAt
	return d.snapshot.Unseen && !made.After(d.now) && !r.CreatedAt.IsZero() && r.CreatedAt.Before(made.Add(-time.Minute))
}

// givenBack reports whether a queued run is one that its holder has given back, and at which no decision has looked since. No
// other queued run has a lease.
func givenBack(r *store.Run) bool { return r.State == store.Queued && !r.LeaseUntil.IsZero() }

// update records what the decision changes in a run. A run that waits for its group is always recorded,
// so that Groups sees it.
func (d *decision) update(r *openRun) {
	was := r.read
	if r.Ended() {
		d.settleRun(r.Run, was.State)
		return
	}
	// A run that was given back is updated once, even if nothing else changes.
	same := !givenBack(&r.Run) && r.State == was.State && r.HeldBy == was.HeldBy && r.Number == was.Number &&
		r.Queue == was.Queue && r.Priority == was.Priority
	if same && r.HeldBy != store.HeldByGroup {
		return
	}
	d.updates = append(d.updates, store.RunUpdate{Run: r.Run, From: was.State, Unchanged: same, LeaseRead: leaseRead(&r.Run, was.State)})
}

// leaseRead is the lease that a run must still have when it is taken away from its holder. If the holder
// has sent a heartbeat since the run was read, the run stays with its holder.
func leaseRead(r *store.Run, was string) time.Time {
	if was == store.Running {
		return r.LeaseUntil
	}
	return time.Time{}
}

// capacity is the number of runs of the job that may be under way at once.
func (d *decision) capacity() int {
	if d.job().Overlap == store.OverlapAllow {
		return d.job().MaxRunning
	}
	return 1
}
