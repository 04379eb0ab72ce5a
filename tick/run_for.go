package tick

import (
	"context"
	"errors"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

const (
	shortest = 10 * time.Millisecond // the shortest wait of RunFor
	// staysDue is the wait if something stays due, such as a job that only another host can run. Asking
	// again without a wait would keep the database busy for nothing.
	staysDue = time.Second
	// lookEach is the longest sleep of RunFor, unless an alarm comes for what changes in the meantime.
	lookEach = time.Minute
	// nearMost is for how long RunFor goes on with an Alarm, after what the alarm was for, where one thing after another is near. Without
	// an end, its process would stay, and that of each safety trigger beside it.
	nearMost = 5 * time.Minute
)

// least is the working time that a budget must still have for another pass to begin.
func least(budget time.Duration) time.Duration { return min(budget/10, 500*time.Millisecond) }

// LongestLead is for how long RunFor begins passes with this budget. So with an earlier alarm, no pass would begin when what it is
// for is due.
func LongestLead(budget time.Duration) time.Duration { return budget - margin(budget) - least(budget) }

// RunFor runs a pass, and then another pass each time something becomes due, for a length of time. So
// one trigger a minute can serve schedules that are finer than a minute. RunFor returns at once if
// nothing more is due within the length. A pass that finds nothing to do sends only the probe and its
// record. If ctx ends during a sleep, RunFor returns without an error. While it sleeps, the file of an SQLite database is
// closed, and may be replaced.
//
// A length of more than a minute takes the place of a trigger of each minute. RunFor then lasts for the length, and runs a pass each
// minute at least: requests and edits wait no longer, and the trigger is not silent. With an Alarm this is not needed, since the
// alarm starts what comes next. RunFor then waits only for what comes so soon that an alarm for it would be too late: see near.
//
// Such a RunFor also outlasts the error of a pass: the next one comes within a minute, and the error is returned in the end; of
// several ones, the last. But it ends at once where its first pass meets no database, and where the database is not the one that
// the settings name, or its schema does not fit.
//
// No pass begins after the length is over, but runs that execute at that time continue, as in a single
// pass. Otherwise a job that takes longer than the length would be stopped each time, and be lost. A
// budget bounds the passes and the runs: no further pass begins if too little of the budget is left. The
// limit counts over all passes, and the report is the sum of their reports.
func (t *Tick) RunFor(ctx context.Context, length time.Duration) (Report, error) {
	return t.monitored(ctx, func(t *Tick) (Report, error) { return t.runFor(ctx, length) })
}

func (t *Tick) runFor(ctx context.Context, length time.Duration) (Report, error) {
	began, most := t.Now(), length
	if t.Alarm != nil {
		most = max(length, t.within()) + nearMost
	}
	if t.Budget > 0 {
		most = min(most, LongestLead(t.Budget))
	}
	end := began.Add(most)
	stays := t.Alarm == nil && end.Sub(began) > lookEach
	var total Report
	var failed error
	var tried time.Time
	var untold time.Duration
	for {
		pass := *t
		if t.Budget > 0 && total.Passes > 0 {
			pass.whole, pass.Budget = t.Budget, t.Budget-t.Now().Sub(began)
		}
		pass.early = total.early
		if t.Limit > 0 {
			if pass.Limit = t.Limit - total.Started; pass.Limit == 0 {
				pass.Limit = -1
			}
		}
		pass.tried, pass.skew, pass.untold = tried, total.skew, untold
		r, err := pass.run(ctx)
		tried, untold = t.Now(), r.untold
		total.join(r)
		if err != nil {
			if failed = err; !stays || !total.outlasts(err) || ctx.Err() != nil {
				return total, err
			}
			r = Report{} // what it found may be only a part
		}
		var wait time.Duration
		if t.Alarm != nil {
			wait = t.near(ctx, &r, began.Add(length), end)
		} else {
			wait = r.rest(t.Now(), end, stays)
		}
		if wait <= 0 {
			return total, failed
		}
		t.logRest(wait, r.due, err)
		t.Store.Rest()
		if over := t.sleep(ctx, wait); !over || !t.Now().Before(end) {
			return total, failed
		}
	}
}

// logRest says that RunFor sleeps, and, since more than one pass may fail, why the one before it has failed.
func (t *Tick) logRest(wait time.Duration, due time.Time, failed error) {
	switch {
	case t.Log == nil:
	case failed != nil:
		t.Log.Warn("the pass has failed; another one follows", "after", wait, "error", failed)
	default:
		t.Log.Debug("sleeps", "for", wait, "due", due)
	}
}

// outlasts reports whether passes go on after one of them has failed. The newest answer was that of the database that the settings
// name, and its schema fits: otherwise, another process with other settings, or a newer one, is needed.
func (r *Report) outlasts(err error) bool { return r.meant && !errors.Is(err, store.ErrSchema) }

// near is how long RunFor with an Alarm sleeps after the pass of this report; 0: no further pass comes, and an alarm is set.
//
// It waits for what comes next, within its length or so soon that an alarm for it, which rings earlier by the lead, would be too
// late. This time counts from now: where a run has ended, the next one may be near, too. What was due before the pass began, and
// stays due, is no reason to wait, nor is what is due in a freeze: the next look at it comes after a while, and the database may
// sleep until then: see again.
func (t *Tick) near(ctx context.Context, r *Report, until, end time.Time) time.Duration {
	next := r.comes()
	if r.MoreDue && !r.Frozen && !r.due.After(r.StartedAt) {
		var newest time.Time
		if next, newest, _ = t.beyond(ctx, r.NextRun); newest.After(r.StartedAt) { // without an answer, the alarm is for all of it
			next = newest
		}
	}
	now := t.Now()
	if soon := now.Add(t.within()); soon.After(until) {
		until = soon
	}
	at := next.Add(r.skew) // by the host's clock
	if next.IsZero() || !at.Before(until) || !at.Before(end) {
		return 0
	}
	return max(at.Sub(now), shortest)
}

// within is how far ahead something is due for which an alarm that is set now would ring too late. Without a lead, runs
// start as late as the platform rings, so its distance does not count.
func (t *Tick) within() time.Duration {
	least := wakeNear
	if a, far := t.Alarm.(FarAlarm); far && t.Lead > 0 {
		least = max(least, a.Least())
	}
	return t.Lead + least
}

// rest is how long RunFor without an Alarm sleeps after the pass of this report; 0: no further pass comes. stays says that RunFor lasts until the end,
// and that each sleep is bounded.
func (r *Report) rest(now, end time.Time, stays bool) time.Duration {
	wait := end.Sub(now)
	switch due := !r.wake.IsZero() && r.wake.Before(end); {
	case !due && !stays:
		return 0
	case !due:
	case !r.wake.After(now) && !r.due.After(r.StartedAt): // it was already due before the pass began
		wait = min(wait, staysDue)
	default:
		wait = min(wait, max(r.wake.Sub(now), shortest))
	}
	if stays {
		wait = min(wait, lookEach)
	}
	return wait
}

// sleep sleeps for a duration. It reports whether the duration was over before the context was.
func (t *Tick) sleep(ctx context.Context, d time.Duration) bool {
	if t.Sleep != nil {
		t.Sleep(ctx, d)
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
