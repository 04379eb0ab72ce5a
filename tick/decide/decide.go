// Package decide says what happens with the nominal times and the runs of a job. It is pure: what it returns follows from
// its arguments alone. It reads no clock and does no I/O; package store reads what a decision needs, under the lock of the
// job's plan, and writes what it says in the same transaction.
package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// instant is the finest step of time: the first time after t is t plus instant.
const instant = time.Microsecond

// Job is the one place where it is decided what happens with a job's nominal times and runs. It is a pure function
// of what was read under the lock of the job's plan: no clock, no I/O, no order of a map.
//
//	ended runs ─────> facts of the plan         nominal times since the last decision ─> runs, or gaps with a reason
//	expired leases ─> delivered again, lost    waiting runs ─> queued, as far as overlap and pauses allow
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
	if !d.gone() && (c.Stale || d.changed || c.Plan.Parked != "") { // a row may have come by plain SQL
		if err := cmp.Or(d.job().ValidatePolicies(), d.job().ValidateTimes(d.links())); err != nil {
			d.park("%v", err)
		}
	}
	if d.snapshot.Mistake != "" && !d.gone() {
		d.retryElsewhere = true // it may be mended without a trace at the job
		d.park("%s; apply the file that has the job, or repair the row of that step", d.snapshot.Mistake)
	}
	if d.snapshot.Circle && d.plan.Parked == "" && !d.gone() {
		d.retryElsewhere = true // the way out may be a change of another job
		d.park("job %s: after: the jobs run after each other in a circle; change after in one of them", d.job().FullName())
	}
	if d.snapshot.AfterLost && d.plan.Parked == "" && !d.gone() {
		d.retryElsewhere = true
		d.park("job %s: after: the row of the job that it runs after was deleted; change after, or apply the file that has that job", d.job().FullName())
	}
	if g := d.snapshot.Group; g != nil && g.MaxRunning == 0 && !d.gone() {
		d.retryElsewhere = true // it is looked at again without a change of the job
		d.park("job %s: group: there is no group %q; add it to a manifest: groups: {%s: 1}", d.job().FullName(), g.Name, g.Name)
	}
	if d.plan.Parked == "" {
		d.occurrences()
	}
	if d.plan.Parked != "" && d.changed { // what is owed up to the change is on record, and nothing fires back from it
		d.skipAllDue(store.Edited)
	}
	d.admit()
	d.advanceRepetition()
	d.next()
	return store.Decision{Plan: d.plan, Made: append(d.made, d.followers...), Updates: d.updates, Gaps: d.gaps, Retention: d.retention(),
		Cancel: d.cancel, Pause: d.pauseReason, Remove: d.removeWhenDone(), UnderWay: d.countUnderWay(), Rules: d.planRules, Replan: d.replan}
}

type decision struct {
	now      time.Time
	snapshot *store.Snapshot
	pass     *Pass
	plan     store.Plan

	rules     []activeRule // the rules that the job has now
	planRules []store.Rule // and as the plan is to know them
	replan    bool
	changed   bool // a rule is new, another one, or gone
	// retryElsewhere: parked for what this host lacks, or for what is not the job's own; looked at again at each nominal time, on
	// whatever host.
	retryElsewhere bool
	// othersJob: only another login runs it. Its nominal times are left to the ticks of that one, so that an outage of theirs is
	// judged by the job's policies. What was changed, and runs that end or wait no longer, are looked after by whoever comes.
	othersJob   bool
	active      []store.Run // not ended, as this decision leaves them; oldest first
	statesRead  []string    // their states as they were read
	unreadable  int         // runs in other hands that cannot be read
	made        []store.Run
	followers   []store.Run // of jobs that run after this one
	pauses      []store.Pause
	pauseReason string // why this decision pauses the job
	cancel      []string
	updates     []store.RunUpdate
	gaps        []store.Gap
	settled     []store.Run // settled by this decision, for repeat_after
	repeatTime  time.Time   // the nominal time that repeat_after gives, which the last of the live rules names
}

// parkUnreadable parks a job of which something cannot be read: nothing can be decided, and nothing is guessed. It is looked at
// again after a while.
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

// gone: the definition is history, and nothing of it starts any more.
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

// park keeps the job from being planned until its definition changes. What is still to be decided stays so.
func (d *decision) park(format string, a ...any) {
	if d.plan.Parked == "" {
		d.plan.Parked = fmt.Sprintf(format, a...)
	}
}

// settle takes ended runs into the facts of the plan, by their end.
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

// setAsideUnreadable takes a run that cannot be read out of what is decided: it only takes up room while a holder has it, else it is
// ended as failed. One that has ended already is settled as it is.
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

func (d *decision) settleRun(r store.Run, was string) {
	if r.FinishedAt.IsZero() { // a worker that left it out
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
	d.updates = append(d.updates, store.RunUpdate{Run: r, From: was, LeaseRead: leaseRead(&r, was), ExpiresAt: r.FinishedAt.Add(keep)})
}

// makeFollowers makes a run of each job that runs after this one, for the same stretch of data. It is let go by that job's own
// decision.
func (d *decision) makeFollowers(run *store.Run) {
	for _, f := range d.snapshot.Followers {
		d.followers = append(d.followers, store.Run{JobID: f.JobID, Occurrence: "after:" + run.ID, State: store.Waiting, Queue: f.Queue, Priority: f.Priority, ReadyAt: d.now,
			IntervalStart: run.IntervalStart, IntervalEnd: run.IntervalEnd})
	}
}

// onError pauses the job where its policy wants that after a failed run.
func (d *decision) onError(occurrence string) {
	j := d.job()
	switch {
	case d.pauseReason != "" || d.gone():
		return
	case j.OnError == "pause":
		d.pauseReason = fmt.Sprintf("run %s failed, and on_error is pause", occurrence)
	case j.PauseAfterFailures > 0 && d.plan.Streak >= j.PauseAfterFailures:
		d.pauseReason = fmt.Sprintf("%d runs in a row failed (pause_after_failures)", d.plan.Streak)
	default:
		return
	}
	d.pauses = append(d.pauses, store.Pause{Scope: "job", SubjectID: d.plan.JobID, Since: d.now})
}

// retention tells what stays of the ledger, where runs were settled.
func (d *decision) retention() []store.Retention {
	if d.plan.Cycles == d.snapshot.Plan.Cycles || d.gone() {
		return nil
	}
	k := d.job().Keep
	return []store.Retention{{JobID: d.plan.JobID, Below: d.plan.RunsMade - int64(k.Runs), Since: d.now.Add(-time.Duration(k.Age))}}
}

// recoverExpired looks after runs whose holder has not reported in time: they are delivered again, or lost. A lease counts
// as expired one heartbeat after its end, so that a holder that is on the way is not overtaken.
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

// admit lets waiting runs go, oldest first. A run that was delivered before, back-off included, holds its place. Runs
// of one job that were made by the same decision wait in order.
func (d *decision) admit() {
	read := slices.Clone(d.active)
	room := d.capacity() - d.unreadable
	for i := range d.active { // what is stopped or held makes room, wherever it stands
		r := &d.active[i]
		if r.Number == 0 { // a request that came in beside us
			d.plan.RunsMade++
			r.Number = d.plan.RunsMade
		}
		if d.cancelOrHold(r); !r.Ended() && (r.State != store.Waiting || r.Begun()) {
			room--
		}
	}
	outlived := d.nextHasCome()
	place := func(r *store.Run) {
		first := !r.Begun()
		switch {
		case r.State != store.Waiting || r.HeldBy == "pause":
		case r.ReadyAt.After(d.now): // back-off, jitter: the run wakes the job by itself
			r.HeldBy = ""
		case outlived && d.untilNext(*r): // the next pass gives it up, which for a job of others is one of theirs
			if r.HeldBy = ""; d.othersJob {
				r.HeldBy = "predecessor"
			}
		case first && room <= 0:
			r.HeldBy = "predecessor"
		default:
			if first {
				room--
			}
			r.State, r.HeldBy = store.Queued, ""
			if first && d.snapshot.Group != nil { // and Groups lets it go
				r.State, r.HeldBy = store.Waiting, "group"
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

// countUnderWay counts the runs that take up room.
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

// cancelOrHold cancels a run that is not to go on, and holds one that has not begun where a pause says so.
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
		r.State, r.HeldBy = store.Waiting, "pause"
	case r.HeldBy == "pause":
		r.HeldBy = ""
	}
}

// update notes what a decision changed of a run.
func (d *decision) update(r *store.Run, before store.Run, was string) {
	if r.Ended() {
		d.settleRun(*r, was)
		return
	}
	same := r.State == was && r.HeldBy == before.HeldBy && r.Number == before.Number && r.Losses == before.Losses
	if same && r.HeldBy != "group" {
		return
	}
	d.updates = append(d.updates, store.RunUpdate{Run: *r, From: was, Unchanged: same, LeaseRead: leaseRead(r, was)})
}

// leaseRead guards a run that was taken from its holder: it stays there if the holder has reported meanwhile.
func leaseRead(r *store.Run, was string) time.Time {
	if was == store.Running {
		return r.LeaseUntil
	}
	return time.Time{}
}

// capacity is how many runs of the job may be under way at once.
func (d *decision) capacity() int {
	if d.job().Overlap == "allow" {
		return d.job().MaxRunning
	}
	return 1
}

// next finds when the job needs a decision again, apart from what its runs wake it for.
func (d *decision) next() {
	d.plan.NextRun = d.pauseEnds()
	if d.plan.Parked != "" && !d.retryElsewhere || d.gone() || d.job().Disabled {
		return
	}
	if d.retryElsewhere && !d.snapshot.Plan.NextRun.IsZero() { // another host may have what this one lacks: it stays due
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
	if d.plan.Parked != "" && !d.retryElsewhere { // a rule gave up just now
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
