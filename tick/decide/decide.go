package decide

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// instant is the smallest step of time that is stored: the next time after t is t plus instant.
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
	d := &decision{now: now, snapshot: c, pass: p, plan: c.Plan}
	d.readPauses()
	d.plan.Parked = ""
	d.othersJob = !p.may(d.job())
	d.settle()
	d.recoverExpired()
	d.readStart()
	d.readRules()
	d.addRepetition()
	d.checkDefinition()
	if d.plan.Parked == "" {
		d.occurrences()
	}
	d.meet()
	if d.plan.Parked != "" && d.changed {
		d.skipAllDue(store.Edited) // once the job is repaired, nothing is due from before the change
	}
	d.admit()
	d.advanceRepetition()
	d.plan.KeepSkips(d.plan.DecidedThrough)
	d.next()
	d.followSkips()
	d.raiseOfPlan()
	return store.Decision{
		Plan: d.plan, Made: append(d.made, d.followers...), Updates: d.updates, Gaps: d.gaps, Events: d.events, Ends: d.ends, Met: d.met,
		Retention: d.retention(), Cancel: d.cancel, Pause: d.pauseReason, Remove: d.removeWhenDone(),
		UnderWay: d.countUnderWay(), Rules: d.planRules, Replan: d.replan, Start: d.startFound(),
	}
}

// checkDefinition parks a job whose definition cannot be used as it is now.
func (d *decision) checkDefinition() {
	c := d.snapshot
	if d.gone() {
		return
	}
	if c.Stale || c.AfterChanged || d.changed || c.Plan.Parked != "" { // an edit by plain SQL was not checked
		if err := cmp.Or(d.job().ValidatePolicies(), d.job().ValidateTimes(d.links())); err != nil {
			d.park("%v", err)
		}
	}
	if c.Mistake != "" {
		d.retryElsewhere = true // the repair of a step does not mark the job as changed
		d.park("%s; apply the file that has the job, or repair the row of that step", c.Mistake)
	}
	if c.Circle && d.plan.Parked == "" {
		d.retryElsewhere = true // the repair may be a change of another job
		d.park("job %s: after: the jobs run after each other in a circle; change after in one of them", d.job().FullName())
	}
	if c.AfterLost && d.plan.Parked == "" {
		d.retryElsewhere = true
		d.park("job %s: after: the row of a job that it runs after was deleted; change after, or apply the file that has that job", d.job().FullName())
	}
	if g := c.Group; g != nil && g.MaxRunning == 0 {
		d.retryElsewhere = true // the repair is a change of the group
		d.park("job %s: group: there is no group %q; add it to a manifest: groups: {%s: 1}", d.job().FullName(), g.Name, g.Name)
	}
}

// decision is a decision in the making.
type decision struct {
	now      time.Time
	snapshot *store.Snapshot
	pass     *Pass
	plan     store.Plan

	rules     []activeRule // the rules that the job has now; they give the nominal times
	planRules []store.Rule // the rules that the plan will have
	replan    bool         // planRules are to be written
	changed   bool         // a rule is new, has another text, or is gone
	start     time.Time    // the not_before that this decision has found from the start schedule; zero: it did not look
	// retryElsewhere is set if the job is parked for a cause outside its definition. The job
	// stays due, so that each pass tries again.
	retryElsewhere bool
	// othersJob is set if this host cannot run the job, because it logs in as somebody other
	// than the job's owner. Nominal times are left to the ticks of the owner: if these ticks are
	// down, the job's policies apply to the outage. Every host handles changes and settles runs.
	othersJob   bool
	active      []openRun     // runs that have not ended, oldest first
	unreadable  int           // running runs that cannot be read
	made        []store.Run   // new runs of the job
	followers   []store.Run   // new runs of jobs that run after this one
	ends        []store.End   // for jobs that run after several jobs, of which this is one
	met         []string      // the intervals of Snapshot.Met that are done
	pauses      []store.Pause // that are about the job as it is now
	left        []store.Pause // that were about the job as it was planned, and no longer are
	pauseReason string        // why this decision pauses the job; empty: it does not
	cancel      []string      // ids of running runs that their holders are to stop
	updates     []store.RunUpdate
	gaps        []store.Gap
	settled     []store.Run // runs that this decision settles, until countEnds has counted them
	events      []store.Event
	missed      times          // nominal times that lie in a gap because no pass came in time
	counted     map[int64]bool // the times that missed has counted
	late        times          // nominal times of the runs that are late
	repeatTime  time.Time      // the nominal time by repeat_after; the last element of rules gives it
}

// parkUnreadable parks a job whose rows cannot be read. It decides nothing and guesses nothing: its runs
// stay as they are. The job is tried again after store.Recheck.
func parkUnreadable(now time.Time, c *store.Snapshot) store.Decision {
	plan := c.Plan
	plan.Parked = "its rows cannot be read: " + c.Fault
	if c.PlanFault != "" {
		plan.Parked = "its plan cannot be read: " + c.PlanFault
	}
	if plan.Parked != c.Plan.Parked || !plan.NextRun.After(now) {
		plan.NextRun = now.Add(store.Recheck)
	}
	return store.Decision{Plan: plan, Park: true, UnderWay: c.UnderWay()}
}

// openRun is a run that had not ended when it was read, as this decision changes it.
type openRun struct {
	store.Run
	read *store.Run // the run of the snapshot
}

// anyOpen reports whether something is true of one of the open runs.
func (d *decision) anyOpen(is func(*store.Run) bool) bool {
	for i := range d.active {
		if is(&d.active[i].Run) {
			return true
		}
	}
	return false
}

func (d *decision) job() *store.Job { return &d.snapshot.Job }

// gone reports whether the job was removed or its row was deleted. No run of such a job starts any more.
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

// park keeps the job from being planned until the cause is gone. The first reason is kept. Nominal
// times that are not decided yet stay undecided.
func (d *decision) park(format string, a ...any) {
	if d.plan.Parked == "" {
		d.plan.Parked = fmt.Sprintf(format, a...)
	}
}

// next finds when the job needs a decision again. Runs are not considered: each run wakes its job on its own.
func (d *decision) next() {
	d.plan.NextRun = d.pauseEnds()
	if d.plan.Parked != "" && !d.retryElsewhere || d.gone() || d.job().Disabled {
		return
	}
	if d.retryElsewhere && !d.snapshot.Plan.NextRun.IsZero() { // it stays due
		d.plan.NextRun = d.snapshot.Plan.NextRun
		return
	}
	if d.usedUp() {
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
