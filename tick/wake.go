package tick

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Alarm starts the trigger once more at an instant, so that nothing has to start it each minute.
//
// Alarms only add to each other: none replaces another one, and one that was set for nothing makes a pass that finds
// nothing. So passes and commands that run at the same time need no lock and no order: each sees to it that there is an
// alarm for what it knows, and the one that knows less cannot take away what the other one has set.
type Alarm interface {
	// Set sees to it that the trigger starts at an instant of this host's clock, or as soon after it as the platform can,
	// but not before. To set the same instant again sets nothing. It returns when the trigger will start.
	Set(ctx context.Context, at time.Time) (rings time.Time, err error)
}

const (
	// wakeNear is for what an alarm would come too late: what is due within it, the pass waits for.
	wakeNear = 5 * time.Second
	// wakeHorizon is how far ahead alarms are set. Platforms bound it, at 30 days or so, and a pass of the safety trigger
	// comes before.
	wakeHorizon = 7 * 24 * time.Hour
	// What is due and stays due, such as a run that this host cannot start, is looked at again after as long as it has been
	// due, between these two. A trigger of each minute would look each minute; this lets a database sleep.
	againLeast = time.Minute
	againMost  = time.Hour
	// wakeBeats is after how many looks for cancels a pass that still executes sets an alarm: see armMidway.
	wakeBeats     = 4
	alarmPatience = 10 * time.Second // with the platform; less where the budget has less left
)

// RingAt is when an alarm is to ring for what a probe has found, by the host's clock, which says now; zero: for nothing.
// It is for commands that have changed what is due.
func (t *Tick) RingAt(probe *store.Probe) time.Time {
	var r Report
	r.next(probe, t.Now())
	if r.mayWake = true; !r.Frozen && (r.left || r.MoreDue) { // there may be plans to make: no pass has seen them
		return t.Now()
	}
	return t.wakeAt(&r, nil)
}

// arm sets the alarm for what is next. The failure is that of the passes.
//
// Crash window: between the COMMIT of the last decision and the answer to this request, nothing starts a pass for what is next.
// A pass that executed for more than some seconds has set an alarm before, see armMidway. Otherwise the platform tries the
// start again, since it got no answer, or else the safety trigger comes. An alarm that is set twice, because the answer was
// lost or because two passes set it, is one where the platform knows it by its name; elsewhere the second pass finds that
// the first one has decided everything. One that is lost or late delays what is due until another alarm, or the safety
// trigger: the pass that comes then decides by each job's policies, as after any trigger that was late.
func (t *Tick) arm(ctx context.Context, r *Report, began time.Time, failure error) error {
	if t.Alarm == nil || t.DryRun {
		return nil
	}
	at := t.wakeAt(r, failure)
	if at.IsZero() {
		return nil
	}
	patience := alarmPatience
	if t.Budget > 0 {
		patience = min(max(t.Budget-t.Now().Sub(began), leastPatience), patience)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	rings, err := t.Alarm.Set(ctx, at)
	if err != nil {
		return fmt.Errorf("the pass is over, but the alarm for the next one, at %s, could not be set: %w", at.UTC().Format(time.RFC3339), err)
	}
	r.WakeAt = rings
	return nil
}

// armMidway sets an alarm while runs still execute: for what becomes due beside them, and for the end of their leases, so
// that another pass comes and recovers them if this process dies. That pass finds what is next after it, and so on.
func (p *pass) armMidway(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, alarmPatience)
	defer cancel()
	probe, err := p.t.Store.Probe(ctx, p.t.Name, OwnQueue)
	if err == nil {
		r := Report{mayWake: true}
		if r.next(probe, p.t.Now()); r.Frozen {
			return
		}
		r.left = false // this pass is at it
		if at := p.t.wakeAt(&r, nil); !at.IsZero() {
			_, err = p.t.Alarm.Set(ctx, at)
		}
	}
	if err != nil && ctx.Err() == nil { // the end of the pass sets one, too
		p.log.Warn("no alarm could be set while runs execute: what becomes due meanwhile waits for their end, or for the safety trigger", "error", err)
	}
}

// wakeAt is when the next pass is needed, by the host's clock, less the lead; zero: at no time that is known.
func (t *Tick) wakeAt(r *Report, failure error) time.Time {
	now := t.Now()
	var at time.Time
	switch {
	case errors.Is(failure, store.ErrUnreachable):
		return now.Add(againLeast)
	case !r.mayWake:
		return at
	case r.Frozen:
		at = r.frozenUntil
	case r.MoreDue || r.left:
		return now.Add(r.again())
	default:
		at = r.due
	}
	if at.IsZero() {
		return at
	}
	// Alarms are rung by a clock like the host's. Where the database's tells nearly the same, its instant stays as it is, so
	// that all who set an alarm for it name the same one.
	if r.skew.Abs() >= time.Second {
		at = at.Add(r.skew)
	}
	if at = at.Add(-t.Lead); at.After(now.Add(wakeHorizon)) {
		return time.Time{}
	}
	return at
}

// again is how long to wait with what is due already. A pass that got on with it, or in which it became due, is followed by
// the next one at once.
func (r *Report) again() time.Duration {
	since := r.OldestQueued
	if r.MoreDue {
		since = r.due
	}
	switch {
	case r.Decided+r.Started > 0 || since.After(r.StartedAt):
		return 0
	case since.IsZero():
		return againLeast
	}
	return min(max(r.StartedAt.Sub(since), againLeast), againMost)
}

// next notes what a probe says of the next pass.
func (r *Report) next(probe *store.Probe, now time.Time) {
	due := probe.NextWake
	r.due, r.NextRun, r.wake, r.MoreDue = due, due, time.Time{}, false
	r.skew = now.Sub(probe.Now)
	r.Frozen, r.frozenUntil, r.left = probe.Frozen, probe.FrozenUntil, probe.Unfinished()
	if !due.IsZero() {
		if r.MoreDue = !due.After(probe.Now); r.MoreDue {
			r.NextRun = probe.Now
		}
		r.wake = now.Add(due.Sub(probe.Now))
	}
}
