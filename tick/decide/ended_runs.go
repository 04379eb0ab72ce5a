package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// settle counts the runs that have ended, in the order of their ends. It keeps the other runs as active.
func (d *decision) settle() {
	var ended []store.Run
	d.active = make([]openRun, 0, len(d.snapshot.Runs))
	for i := range d.snapshot.Runs {
		r := d.snapshot.Runs[i]
		if r.Fault != "" && d.setAsideUnreadable(&r) {
			continue
		}
		if r.Ended() {
			ended = append(ended, r)
		} else {
			d.active = append(d.active, openRun{r, &d.snapshot.Runs[i]})
		}
	}
	slices.SortStableFunc(ended, func(x, y store.Run) int { return x.FinishedAt.Compare(y.FinishedAt) })
	for _, r := range ended {
		d.settleRun(r, r.State)
	}
}

// setAsideUnreadable excludes a run that cannot be read from the decision. While a holder has the run,
// the run takes up room; otherwise it ends as failed. It returns false for a run that has ended: such a
// run is settled like the others.
func (d *decision) setAsideUnreadable(r *store.Run) bool {
	if r.Ended() {
		return false
	}
	if r.State == store.Running && (r.HolderAlive || d.now.Before(r.LeaseUntil.Add(d.pass.Heartbeat))) {
		d.unreadable++
		return true
	}
	if d.settleRecorded(r) {
		return true
	}
	was := r.State
	r.State, r.HeldBy, r.FinishedAt, r.Error = store.Failed, "", d.now, "its row cannot be read: "+r.Fault
	d.settleRun(*r, was)
	return true
}

// settleRun counts an ended run in the plan. was is the state in which the run was read.
func (d *decision) settleRun(r store.Run, was string) {
	if r.FinishedAt.IsZero() { // a worker has ended the run by plain SQL, without a time
		r.FinishedAt = d.now
	}
	r.SettledAt = d.now
	d.number(&r)
	p := &d.plan
	again := retriedByHand(p, &r)
	p.LastRunID, p.LastState, p.LastFinishedAt = r.ID, r.State, r.FinishedAt
	switch r.State {
	case store.Succeeded:
		if p.Streak > 0 {
			d.raiseOfRun(store.EventRecovered, &r)
		}
		p.LastSuccessAt, p.Streak = r.FinishedAt, 0
	case store.Failed, store.Lost:
		p.LastError = r.Error
		if !again {
			p.Streak++
		}
		d.raiseOfRun(r.State, &r)
		d.onError(&r)
	}
	d.makeFollowers(&r)
	p.Cycles++
	keep := time.Duration(d.job().Keep.Age)
	if keep == 0 { // the definition is gone
		keep = 90 * 24 * time.Hour
	}
	d.settled = append(d.settled, r)
	d.updates = append(d.updates, store.RunUpdate{Run: r, From: was, LeaseRead: leaseRead(&r, was),
		ExpiresAt: r.FinishedAt.Add(keep)})
}

// retriedByHand reports whether an end follows a failure of the same run, with no end of another run between them. Such
// an end takes the place of the failure, which the plan has counted.
func retriedByHand(p *store.Plan, r *store.Run) bool {
	return p.LastRunID == r.ID && (p.LastState == store.Failed || p.LastState == store.Lost)
}

// makeFollowers makes a run of each job that runs after such an end, with the same data interval and
// arguments. The decision of the following job queues that run. For a job that runs after several jobs,
// only the end is noted. Nothing follows the run of a hook: if a job with that same hook followed, the
// two would call each other for ever.
func (d *decision) makeFollowers(run *store.Run) {
	if run.Event() != "" {
		return
	}
	for _, f := range d.snapshot.Followers {
		if !f.Follows(run.State) {
			continue
		}
		if f.Of > 1 {
			d.ends = append(d.ends, store.End{JobID: f.JobID, AfterID: d.plan.JobID, RunID: run.ID, Meets: run.Meets()})
			continue
		}
		if f.UsedUp {
			continue
		}
		d.followers = append(d.followers, store.Run{JobID: f.JobID, Occurrence: store.OccurrenceAfter(run),
			State: store.Waiting, Queue: f.Queue, Priority: f.Priority, ReadyAt: d.now,
			IntervalStart: run.IntervalStart, IntervalEnd: run.IntervalEnd, Args: run.Args})
	}
}

// meet is for a job that runs after several jobs. It makes a run for each interval for which all of these
// have ended. A job that is disabled or gone, or whose max_runs are used up, gets no run for such an interval, also
// not later.
func (d *decision) meet() {
	for _, m := range d.snapshot.Met {
		d.met = append(d.met, m.Meets)
		if m.Followed || d.gone() || d.job().Disabled || d.usedUp() {
			continue
		}
		r := d.newRun(store.OccurrenceAll(m.Meets))
		r.IntervalStart, r.IntervalEnd, r.Args = m.Start, m.End, m.Args
		d.made = append(d.made, r)
	}
}

// onError pauses the job after a failed run, if its policies say so. If the end of the run has already
// paused the job, onError only raises the event.
func (d *decision) onError(r *store.Run) {
	j := d.job()
	switch {
	case d.pauseReason != "" || d.gone():
		return
	case d.pausedWithEnd(r) != "":
		d.raiseOfRun(store.EventPaused, r)
		return
	case d.pausedByItself(): // another run has failed before and has paused the job
		return
	case j.OnError == store.OnErrorPause:
		d.pauseReason = fmt.Sprintf("run %s#%d failed, and on_error is pause", j.FullName(), r.Number)
	case j.PauseAfterFailures > 0 && d.plan.Streak >= j.PauseAfterFailures:
		d.pauseReason = "a run failed (pause_after_failures)"
		if d.plan.Streak > 1 {
			d.pauseReason = fmt.Sprintf("%d runs in a row failed (pause_after_failures)", d.plan.Streak)
		}
	default:
		return
	}
	d.pauses = append(d.pauses, store.Pause{Scope: store.ScopeJob, SubjectID: d.plan.JobID, Since: d.now})
	d.raiseOfRun(store.EventPaused, r)
}

// ownPause reports whether a pause is one of the job itself, because a run of it failed.
func (d *decision) ownPause(p *store.Pause) bool {
	return p.Scope == store.ScopeJob && p.SubjectID == d.plan.JobID && p.By == store.Itself
}

// pausedByItself reports whether the job is paused because of a run that failed.
func (d *decision) pausedByItself() bool {
	return slices.ContainsFunc(d.snapshot.Pauses, func(p store.Pause) bool { return d.ownPause(&p) && p.Holds(d.now) })
}

// pausedWithEnd is the reason for which the job was paused in the transaction that ended the run, such
// as after an atomic step that was not atomic; empty: the job was not paused there. Such a reason ends
// with the run's id.
func (d *decision) pausedWithEnd(r *store.Run) string {
	for i := range d.snapshot.Pauses {
		p := &d.snapshot.Pauses[i]
		if d.ownPause(p) && !p.Since.Before(r.FinishedAt) && strings.HasSuffix(p.Reason, " "+r.ID) {
			return p.Reason
		}
	}
	return ""
}

// retention says which runs of the job are kept. It is empty if no run was settled.
func (d *decision) retention() []store.Retention {
	if d.plan.Cycles == d.snapshot.Plan.Cycles || d.gone() {
		return nil
	}
	return []store.Retention{{JobID: d.plan.JobID, Below: d.history() - int64(d.job().Keep.Runs)}}
}

// history is the number of the newest run of the job, less one for each run that is open. A run has its number long before it ends,
// if many wait: what is still open must push nothing out of the history. Of runs that were left out, it is only known that they are
// newer than those that wait in turn and were read.
func (d *decision) history() int64 {
	through, open := d.plan.RunsMade, int64(d.unreadable+d.snapshot.Queue.Runs)
	count := func(r *store.Run) {
		switch {
		case r.Number == 0 || r.Ended():
		case d.snapshot.LeftOut:
			through = min(through, r.Number-1)
		default:
			open++
		}
	}
	for i := range d.active {
		count(&d.active[i].Run)
	}
	for i := range d.made {
		count(&d.made[i])
	}
	return through - open
}

// settleRecorded settles an expired run whose last step has recorded its success together with its effects. Only the record
// of the run's end is missing, so the run has succeeded, at the instant of the step's record.
func (d *decision) settleRecorded(r *store.Run) bool {
	if r.RecordedAt.IsZero() {
		return false
	}
	r.State, r.FinishedAt, r.Error = store.Succeeded, r.RecordedAt, ""
	d.settleRun(*r, store.Running)
	return true
}

// recoverExpired takes runs away from holders that sent no heartbeat in time. Such a run is delivered
// again; after max_deliveries such losses the run is lost, but if it is to be cancelled, it waits, and admit
// cancels it. A lease counts as expired one heartbeat after its end, so that a holder whose heartbeat is late
// keeps its run. After an outage, that heartbeat counts from the first pass: see store.Page.Back.
func (d *decision) recoverExpired() {
	active := d.active
	d.active = active[:0] // each run is read before another one takes its place
	for _, r := range active {
		if r.State != store.Running || r.HolderAlive || d.now.Before(r.LeaseUntil.Add(d.pass.Heartbeat)) {
			d.active = append(d.active, r)
			continue
		}
		if d.settleRecorded(&r.Run) {
			continue
		}
		r.Losses++
		r.Error = fmt.Sprintf("%s sent no heartbeat before its lease ended at %s", r.Holder, r.LeaseUntil.Format(time.RFC3339))
		if r.CancelAt.IsZero() && (r.Losses >= max(d.job().MaxDeliveries, 1) || d.gone()) {
			r.State, r.FinishedAt = store.Lost, d.now
			d.settleRun(r.Run, store.Running)
			continue
		}
		r.State, r.ReadyAt, r.HeldBy = store.Waiting, d.now, ""
		d.active = append(d.active, r)
	}
}
