package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// instant is the finest step of time that is kept: the next time after t is t plus instant.
const instant = time.Microsecond

// Job makes the decision for one job at an instant. It is the only place where the program decides
// what happens with a job's nominal times and runs.
//
//	ended runs ─────> facts of the plan
//	expired leases ─> delivered again, or lost
//	nominal times since the last decision ─> runs, or gaps with a reason
//	waiting runs ───> queued, as far as overlap and pauses allow
func Job(now time.Time, c *store.Snapshot, p *Pass) store.Decision {
	if c.Fault != "" || c.PlanFault != "" {
		return parkUnreadable(now, c)
	}
	d := &decision{now: now, snapshot: c, pass: p, plan: c.Plan, pauses: slices.Clip(c.Pauses)}
	d.plan.Parked = ""
	d.othersJob = !p.may(d.job())
	d.settle()
	d.recoverExpired()
	d.readStart()
	d.readRules()
	d.addRepetition()
	if !d.gone() && (c.Stale || d.changed || c.Plan.Parked != "") { // plain SQL checks nothing
		if err := cmp.Or(d.job().ValidatePolicies(), d.job().ValidateTimes(d.links())); err != nil {
			d.park("%v", err)
		}
	}
	if d.snapshot.Mistake != "" && !d.gone() {
		d.retryElsewhere = true // the repair of a step leaves no mark at the job
		d.park("%s; apply the file that has the job, or repair the row of that step", d.snapshot.Mistake)
	}
	if d.snapshot.Circle && d.plan.Parked == "" && !d.gone() {
		d.retryElsewhere = true // the repair may be a change of another job
		d.park("job %s: after: the jobs run after each other in a circle; change after in one of them", d.job().FullName())
	}
	if d.snapshot.AfterLost && d.plan.Parked == "" && !d.gone() {
		d.retryElsewhere = true
		d.park("job %s: after: the row of the job that it runs after was deleted; change after, or apply the file that has that job", d.job().FullName())
	}
	if g := d.snapshot.Group; g != nil && g.MaxRunning == 0 && !d.gone() {
		d.retryElsewhere = true // the repair is a change of the group
		d.park("job %s: group: there is no group %q; add it to a manifest: groups: {%s: 1}", d.job().FullName(), g.Name, g.Name)
	}
	if d.plan.Parked == "" {
		d.occurrences()
	}
	if d.plan.Parked != "" && d.changed {
		d.skipAllDue(store.Edited) // once the job is repaired, nothing is due from before the change
	}
	d.admit()
	d.advanceRepetition()
	d.next()
	return store.Decision{
		Plan: d.plan, Made: append(d.made, d.followers...), Updates: d.updates, Gaps: d.gaps,
		Retention: d.retention(), Cancel: d.cancel, Pause: d.pauseReason, Remove: d.removeWhenDone(),
		UnderWay: d.countUnderWay(), Rules: d.planRules, Replan: d.replan,
	}
}

// decision is a decision in the making.
type decision struct {
	now      time.Time
	snapshot *store.Snapshot
	pass     *Pass
	plan     store.Plan

	rules     []activeRule // the rules that the job has now, to find nominal times with
	planRules []store.Rule // the rules that the plan will have
	replan    bool         // planRules are written
	changed   bool         // a rule is new, has another text, or is gone
	// retryElsewhere is set where the job is parked for a cause outside its definition. The job
	// stays due, so that each pass tries again.
	retryElsewhere bool
	// othersJob is set where this host cannot run the job, because it logs in as somebody other
	// than the job's owner. Nominal times are left to the ticks of the owner: if those are down,
	// the job's policies judge the outage. Every host settles changes and runs.
	othersJob   bool
	active      []store.Run // runs that have not ended, oldest first, as this decision changes them
	statesRead  []string    // the states that active had when they were read
	unreadable  int         // running runs that cannot be read
	made        []store.Run // new runs of the job
	followers   []store.Run // new runs of jobs that run after this one
	pauses      []store.Pause
	pauseReason string   // why this decision pauses the job; empty: it does not
	cancel      []string // ids of running runs that their holders are to stop
	updates     []store.RunUpdate
	gaps        []store.Gap
	settled     []store.Run // runs that this decision settles, until countEnds has counted them
	repeatTime  time.Time   // the nominal time by repeat_after; the last of rules names it
}

// parkUnreadable parks a job whose rows cannot be read. It decides nothing and guesses nothing. The
// job is tried again after a while.
func parkUnreadable(now time.Time, c *store.Snapshot) store.Decision {
	plan := c.Plan
	plan.Parked = "its rows cannot be read: " + c.Fault
	if c.PlanFault != "" {
		plan.Parked = "its plan cannot be read: " + c.PlanFault
	}
	if plan.Parked != c.Plan.Parked || !plan.NextRun.After(now) {
		plan.NextRun = now.Add(store.Recheck)
	}
	return store.Decision{Plan: plan, Park: true}
}

func (d *decision) job() *store.Job { return &d.snapshot.Job }

// gone reports whether the job was removed or its row was deleted. Nothing of it starts any more.
func (d *decision) gone() bool { return d.job().ID == 0 || !d.job().Removed().IsZero() }

// links counts the job's schedules.
func (d *decision) links() (n int) {
	for i := range d.snapshot.Rules {
		if d.snapshot.Rules[i].Linked {
			n++
		}
	}
	return n
}

// park keeps the job from being planned until the cause is gone. The first reason counts. Nominal
// times that are not decided yet stay undecided.
func (d *decision) park(format string, a ...any) {
	if d.plan.Parked == "" {
		d.plan.Parked = fmt.Sprintf(format, a...)
	}
}

// settle counts runs that have ended, in the order of their ends. It keeps the others as active.
func (d *decision) settle() {
	var ended []store.Run
	for _, r := range d.snapshot.Runs {
		if r.Fault != "" && d.setAsideUnreadable(&r) {
			continue
		}
		if r.Ended() {
			ended = append(ended, r)
		} else {
			d.active, d.statesRead = append(d.active, r), append(d.statesRead, r.State)
		}
	}
	slices.SortStableFunc(ended, func(x, y store.Run) int { return x.FinishedAt.Compare(y.FinishedAt) })
	for _, r := range ended {
		d.settleRun(r, r.State)
	}
}

// setAsideUnreadable keeps a run that cannot be read out of the decision. While a holder has it, it
// takes up room; otherwise it ends as failed. It returns false for a run that has ended: that one
// is settled like others.
func (d *decision) setAsideUnreadable(r *store.Run) bool {
	if r.Ended() {
		return false
	}
	if r.State == store.Running && (r.HolderAlive || d.now.Before(r.LeaseUntil.Add(d.pass.Heartbeat))) {
		d.unreadable++
		return true
	}
	was := r.State
	r.State, r.HeldBy, r.FinishedAt, r.Error = store.Failed, "", d.now, "its row cannot be read: "+r.Fault
	d.settleRun(*r, was)
	return true
}

// settleRun counts an ended run in the plan. was is the state that was read.
func (d *decision) settleRun(r store.Run, was string) {
	if r.FinishedAt.IsZero() { // a worker ended the run by plain SQL and did not say when
		r.FinishedAt = d.now
	}
	r.SettledAt = d.now
	p := &d.plan
	p.LastRunID, p.LastState, p.LastFinishedAt = r.ID, r.State, r.FinishedAt
	switch r.State {
	case store.Succeeded:
		p.LastSuccessAt, p.Streak = r.FinishedAt, 0
		d.makeFollowers(&r)
	case store.Failed, store.Lost:
		p.LastError = r.Error
		p.Streak++
		d.onError(r.Occurrence)
	}
	p.Cycles++
	keep := time.Duration(d.job().Keep.Age)
	if keep == 0 { // the definition is gone
		keep = 90 * 24 * time.Hour
	}
	d.settled = append(d.settled, r)
	d.updates = append(d.updates, store.RunUpdate{Run: r, From: was, LeaseRead: leaseRead(&r, was),
		ExpiresAt: r.FinishedAt.Add(keep)})
}

// makeFollowers makes a run of each job that runs after this one, with the same data interval. The
// decision of that job queues it.
func (d *decision) makeFollowers(run *store.Run) {
	for _, f := range d.snapshot.Followers {
		d.followers = append(d.followers, store.Run{JobID: f.JobID, Occurrence: store.OccurrenceAfter(run.ID),
			State: store.Waiting, Queue: f.Queue, Priority: f.Priority, ReadyAt: d.now,
			IntervalStart: run.IntervalStart, IntervalEnd: run.IntervalEnd})
	}
}

// onError pauses the job after a failed run, if its policies say so.
func (d *decision) onError(occurrence string) {
	j := d.job()
	switch {
	case d.pauseReason != "" || d.gone():
		return
	case j.OnError == store.OnErrorPause:
		d.pauseReason = fmt.Sprintf("run %s failed, and on_error is pause", occurrence)
	case j.PauseAfterFailures > 0 && d.plan.Streak >= j.PauseAfterFailures:
		d.pauseReason = fmt.Sprintf("%d runs in a row failed (pause_after_failures)", d.plan.Streak)
	default:
		return
	}
	d.pauses = append(d.pauses, store.Pause{Scope: store.ScopeJob, SubjectID: d.plan.JobID, Since: d.now})
}

// retention says which of the job's history is kept. It is empty where no run was settled.
func (d *decision) retention() []store.Retention {
	if d.plan.Cycles == d.snapshot.Plan.Cycles || d.gone() {
		return nil
	}
	k := d.job().Keep
	return []store.Retention{{JobID: d.plan.JobID, Below: d.plan.RunsMade - int64(k.Runs), Since: d.now.Add(-time.Duration(k.Age))}}
}

// recoverExpired takes runs from holders that did not report in time. Such a run is delivered
// again; after max_deliveries of these losses it is lost. A lease counts as expired one heartbeat
// after its end, so that a holder whose heartbeat is late keeps its run.
func (d *decision) recoverExpired() {
	active, was := d.active, d.statesRead
	d.active, d.statesRead = nil, nil
	for i, r := range active {
		if r.State != store.Running || r.HolderAlive || d.now.Before(r.LeaseUntil.Add(d.pass.Heartbeat)) {
			d.active, d.statesRead = append(d.active, r), append(d.statesRead, was[i])
			continue
		}
		r.Losses++
		r.Error = fmt.Sprintf("%s sent no heartbeat before its lease ended at %s", r.Holder, r.LeaseUntil.Format(time.RFC3339))
		if r.Losses >= max(d.job().MaxDeliveries, 1) || d.gone() {
			r.State, r.FinishedAt = store.Lost, d.now
			d.settleRun(r, store.Running)
			continue
		}
		r.State, r.ReadyAt, r.HeldBy = store.Waiting, d.now, ""
		d.active, d.statesRead = append(d.active, r), append(d.statesRead, store.Running)
	}
}

// admit queues waiting runs, the oldest first. A run that was delivered before keeps its place,
// also while it waits for its next attempt. Runs that one decision makes wait in their order.
func (d *decision) admit() {
	read := slices.Clone(d.active)
	room := d.capacity() - d.unreadable
	for i := range d.active { // a run that is cancelled or held makes room, wherever it stands
		r := &d.active[i]
		if r.Number == 0 { // a run that was requested since the last decision
			d.plan.RunsMade++
			r.Number = d.plan.RunsMade
		}
		if d.cancelOrHold(r); !r.Ended() && (r.State != store.Waiting || r.Begun()) {
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
		case nextHasCome && d.untilNext(*r): // the next pass of a host that can run the job ends it
			if r.HeldBy = ""; d.othersJob {
				r.HeldBy = store.HeldByPredecessor
			}
		case first && room <= 0:
			r.HeldBy = store.HeldByPredecessor
		default:
			if first {
				room--
			}
			r.State, r.HeldBy = store.Queued, ""
			if first && d.snapshot.Group != nil { // until Groups admits it
				r.State, r.HeldBy = store.Waiting, store.HeldByGroup
			}
		}
	}
	for i := range d.active {
		place(&d.active[i])
		d.update(&d.active[i], read[i], d.statesRead[i])
	}
	for i := range d.made {
		d.cancelOrHold(&d.made[i])
		place(&d.made[i])
	}
}

// countUnderWay counts the runs that take up room in a group.
func (d *decision) countUnderWay() (n int) {
	n = d.unreadable
	for _, list := range [2][]store.Run{d.active, d.made} {
		for i := range list {
			if list[i].UnderWay() {
				n++
			}
		}
	}
	return n
}

// cancelOrHold cancels a run on request, or if the job is gone. It holds a run that has not begun
// while a pause applies, and releases it afterwards.
func (d *decision) cancelOrHold(r *store.Run) {
	cancel := func(why string) {
		r.State, r.HeldBy, r.FinishedAt, r.Error = store.Cancelled, "", d.now, why
	}
	switch {
	case r.State == store.Running || r.Ended():
	case !r.CancelAt.IsZero():
		cancel("cancelled on request")
	case d.job().ID == 0:
		cancel("the row of its job was deleted")
	case d.gone():
		cancel("the job was removed")
	case r.Begun():
	case d.pauseHolds(r):
		r.State, r.HeldBy = store.Waiting, store.HeldByPause
	case r.HeldBy == store.HeldByPause:
		r.HeldBy = ""
	}
}

// update records what the decision changes of a run. A run that waits for its group is recorded in
// any case, so that Groups sees it. before and was are the run and its state as they were read.
func (d *decision) update(r *store.Run, before store.Run, was string) {
	if r.Ended() {
		d.settleRun(*r, was)
		return
	}
	same := r.State == was && r.HeldBy == before.HeldBy && r.Number == before.Number && r.Losses == before.Losses
	if same && r.HeldBy != store.HeldByGroup {
		return
	}
	d.updates = append(d.updates, store.RunUpdate{Run: *r, From: was, Unchanged: same, LeaseRead: leaseRead(r, was)})
}

// leaseRead is the lease that a run must still have when it is taken from its holder: if the holder
// has sent a heartbeat since it was read, the run stays with it.
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

// next finds when the job needs a decision again. Its runs wake the job by themselves.
func (d *decision) next() {
	d.plan.NextRun = d.pauseEnds()
	if d.plan.Parked != "" && !d.retryElsewhere || d.gone() || d.job().Disabled {
		return
	}
	if d.retryElsewhere && !d.snapshot.Plan.NextRun.IsZero() { // it stays due
		d.plan.NextRun = d.snapshot.Plan.NextRun
		return
	}
	if limit := d.job().MaxRuns; limit > 0 && d.plan.RunsMade >= limit {
		return
	}
	from := later(later(d.dueBy(), d.plan.DecidedThrough), d.job().NotBefore.Add(-instant))
	for i := range d.rules {
		l := &d.rules[i]
		t := l.next(d, from)
		if t.IsZero() || !d.job().NotAfter.IsZero() && t.After(d.job().NotAfter) {
			continue
		}
		if d.plan.NextRun.IsZero() || t.Before(d.plan.NextRun) {
			d.plan.NextRun = t
		}
	}
	if d.plan.Parked != "" && !d.retryElsewhere { // a rule failed just now
		d.plan.NextRun = d.pauseEnds()
	}
}

func later(x, y time.Time) time.Time {
	if y.After(x) {
		return y
	}
	return x
}

func earlier(x, y time.Time) time.Time {
	if y.Before(x) {
		return y
	}
	return x
}
