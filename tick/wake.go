package tick

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Alarm starts the trigger once more at an instant, so that nothing has to start it each minute.
//
// No alarm replaces another one. An alarm that turns out to be needless starts a pass that finds nothing. So passes and
// commands that run at the same time need no lock and no order: each makes sure that there is an alarm for what it knows,
// and one that knows less cannot take away the alarm of another.
type Alarm interface {
	// Set makes sure that the trigger starts at an instant of this host's clock, or as soon after it as the platform can,
	// but not before. Setting the same instant again has no effect. Set returns when the trigger will start.
	Set(ctx context.Context, at time.Time) (rings time.Time, err error)
}

// FarAlarm is an Alarm of a platform that puts off alarms which are nearer than Least.
type FarAlarm interface {
	Alarm
	Least() time.Duration
}

const (
	// wakeNear is the time within which an alarm would come too late: for work that is due within it, the pass waits. See Tick.within.
	wakeNear = 5 * time.Second
	// wakeHorizon is how far ahead alarms are set. Platforms have a bound, at about 30 days, and the safety trigger starts a
	// pass before that.
	wakeHorizon = 7 * 24 * time.Hour
	// Work that stays due, such as a run that this host cannot start, is looked at again after a wait. The wait is about as
	// long as the work has been due, but between againLeast and againMost. A trigger of each minute would look each minute;
	// this wait lets a database sleep.
	againLeast = time.Minute
	againMost  = time.Hour
	// wakeBeats is the number of looks for cancels after which a pass that still executes sets an alarm: see armMidway.
	wakeBeats     = 4
	alarmPatience = 10 * time.Second // how long the platform may take to set an alarm; less if the budget has less left
	// stoppedPatience is how long it may take if the pass has to stop. The process ends soon then: see closing.
	stoppedPatience = 1500 * time.Millisecond
	beyondPatience  = time.Second // how long the database may take to tell what is due beside what stays due
)

// UnsetAlarmError says that nothing starts the trigger for what is due next, but the safety trigger.
type UnsetAlarmError struct {
	At  time.Time
	Err error
}

func (e *UnsetAlarmError) Error() string {
	return fmt.Sprintf("the pass is over, but the alarm for the next one, at %s, could not be set: %v", e.At.UTC().Format(time.RFC3339), e.Err)
}

func (e *UnsetAlarmError) Unwrap() error { return e.Err }

// RingAt is when an alarm has to start the trigger for what a probe has found, by the host's clock; zero: no alarm is needed.
// It is for commands that have changed what is due.
func (t *Tick) RingAt(probe *store.Probe) time.Time {
	var r Report
	if r.next(probe, t.Now()); r.isLeft() { // there may be plans to make that no pass has seen
		return t.Now()
	}
	return t.alarmFor(&r, r.comes())
}

// Unreached ends a pass that could not begin, because its database could not be opened. The next attempt comes as after a pass
// that has lost its database. It returns the failure, also if the alarm was set.
func (t *Tick) Unreached(ctx context.Context, failure error) (Report, error) {
	var r Report
	err := t.arm(ctx, &r, t.Now(), failure)
	return r, errors.Join(failure, err)
}

// arm sets the alarm for what is next. failure is the error of the passes.
//
// Crash window: between the COMMIT of the last decision and the answer to this request, nothing starts a pass for what is next.
// A pass that executed for more than a few seconds has already set an alarm, see armMidway. Otherwise the platform starts the
// trigger again, since it got no answer, or else the safety trigger comes. An alarm may be set twice, because the answer was
// lost or because two passes set it. Where the platform knows an alarm by its name, the two are one alarm; elsewhere the
// second pass finds that the first pass has decided everything. An alarm that is lost or late delays what is due until
// another alarm, or the safety trigger: the pass that comes then decides by each job's policies, as after any late trigger.
func (t *Tick) arm(ctx context.Context, r *Report, began time.Time, failure error) error {
	if t.Alarm == nil || t.DryRun {
		return nil
	}
	patience := alarmPatience
	if t.Budget > 0 {
		patience = min(max(t.Budget-t.Now().Sub(began), leastPatience), patience)
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stoppedPatience, cancel) })()
	at, _ := t.wakeAt(within, r, failure) // without an answer, the next look at what stays due finds the rest
	if at.IsZero() {
		return nil
	}
	rings, err := t.Alarm.Set(within, at)
	if err != nil {
		return &UnsetAlarmError{at, err}
	}
	r.WakeAt = rings
	return nil
}

// armMidway sets an alarm while runs still execute: for what becomes due in the meantime, and for the end of the runs'
// leases, so that another pass comes and recovers the runs if this process dies. That pass sets the next alarm, and so on.
// It reports whether that was done. Only the first try that fails is a warning.
func (p *pass) armMidway(runs context.Context, first bool) (done bool) {
	ctx, cancel := context.WithTimeout(runs, alarmPatience)
	defer cancel()
	probe, err := p.t.Store.Probe(ctx, p.t.Name, OwnQueue)
	if err == nil {
		r := Report{mayWake: true, StartedAt: p.report.StartedAt}
		if r.next(probe, p.t.Now()); r.Frozen {
			return true
		}
		r.left = nil // this pass is working on it
		var at time.Time
		if at, err = p.t.wakeAt(ctx, &r, nil); !at.IsZero() && runs.Err() == nil {
			err = errors.Join(err, p.setMidway(runs, at))
		}
	}
	if err != nil && runs.Err() == nil { // the end of the pass also sets an alarm
		level := slog.LevelDebug
		if first {
			level = slog.LevelWarn
		}
		p.log.Log(runs, level, "no alarm could be set while runs execute: what becomes due meanwhile waits for their end, or for the safety trigger", "error", err)
	}
	return err == nil
}

// setMidway sets an alarm. If the last run ends meanwhile, it still has stoppedPatience: a program that sets alarms may be between its
// note of the alarm and the alarm itself.
func (p *pass) setMidway(runs context.Context, at time.Time) error {
	ctx, release := p.until(runs, p.last, closing)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, alarmPatience)
	defer cancel()
	defer context.AfterFunc(runs, func() { time.AfterFunc(stoppedPatience, cancel) })()
	_, err := p.t.Alarm.Set(ctx, at)
	return err
}

// wakeAt is when the next pass is needed, by the host's clock, minus the lead; zero: no such time is known. What is left is looked
// at again after a wait, and what is due sooner does not wait for that. The error says that the database did not tell what that
// is: the instant is then that of the look.
func (t *Tick) wakeAt(ctx context.Context, r *Report, failure error) (at time.Time, err error) {
	switch {
	case r.somebodyMends(failure):
		return together(t.Now(), againLeast), nil
	case !r.mayWake:
		return at, nil
	case !r.isLeft():
		return t.alarmFor(r, r.comes()), nil
	}
	next, since := r.due, r.left
	if r.MoreDue {
		next, since = time.Time{}, append(slices.Clone(r.left), r.due)
	}
	wait := r.again(since)
	if r.MoreDue && wait > 0 {
		var newest time.Time
		if next, newest, err = t.beyond(ctx, r.NextRun); newest.After(r.due) {
			wait = min(wait, r.againAfter(newest))
		}
	}
	look := together(t.Now(), wait)
	if at = t.alarmFor(r, next); at.IsZero() || look.Before(at) {
		at = look
	}
	return at, err
}

// beyond reads what is due beside what has been due for longest, at an instant at which something is due: when the next thing is
// due, and since when the newest one is.
func (t *Tick) beyond(ctx context.Context, now time.Time) (next, newest time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, beyondPatience)
	defer cancel()
	if next, err = t.Store.NextAfter(ctx, now); err == nil {
		newest, err = t.Store.NewestDue(ctx, now)
	}
	return next, newest, err
}

// somebodyMends reports whether the database cannot be used for now, and may be soon. One without tables is no such case: the tables
// may be gone for good, and the alarms would never end.
func (r *Report) somebodyMends(failure error) bool {
	is := func(target error) bool { return errors.Is(failure, target) }
	return r.mended || is(store.ErrUnreachable) || is(store.ErrDenied) || !r.mayWake && (is(store.ErrReadOnly) || is(store.ErrLocked))
}

// alarmFor is the instant of the alarm for what is due at an instant of the database's clock; zero: it needs none. Alarms follow a
// clock like the host's. If the database's clock shows nearly the same, its instant is used unchanged, so that all passes and
// commands that set an alarm for it name the same instant.
func (t *Tick) alarmFor(r *Report, at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	if r.skew.Abs() >= time.Second {
		at = at.Add(r.skew)
	}
	if at = at.Add(-t.Lead); at.After(t.Now().Add(wakeHorizon)) {
		return time.Time{}
	}
	return at
}

// together is an instant after about a wait, and at least againLeast, on a grid as wide as the wait. So passes that wait for the
// same thing name the same alarm: those that the platform tries again after a failure, and those of the safety trigger. With
// alarms of their own, each of them would begin another chain of passes. No alarm is nearer than againLeast, since some platforms
// put a nearer one off, to an instant that is not on the grid. A wait of zero is over at once.
func together(now time.Time, wait time.Duration) time.Time {
	if wait == 0 {
		return now
	}
	at := now.Add(max(wait/2, againLeast))
	if down := at.Truncate(wait); down.Before(at) {
		return down.Add(wait)
	}
	return at
}

// again is how long to wait if work is already due: a minute, two, four, up to an hour. If the pass has made progress with it,
// or if the work became due during the pass, the next pass follows at once. A decision for a job that stays due, such as one
// whose group is missing, is no progress: only the end of the budget keeps a pass from deciding for all jobs that can be decided.
//
// Where several things are left, the next look is for the one that has been due for the shortest time.
func (r *Report) again(since []time.Time) time.Duration {
	if decides := r.Decided > 0 && (!r.MoreDue || r.CutShort != ""); r.Started > 0 || decides {
		return 0
	}
	wait := againMost
	for _, t := range since {
		wait = min(wait, r.againAfter(t))
	}
	return wait
}

// againAfter is again for what has been due since an instant; zero: it is unknown.
func (r *Report) againAfter(since time.Time) time.Duration {
	switch {
	case since.After(r.StartedAt):
		return 0
	case since.IsZero():
		return againLeast
	}
	wait := againLeast
	for wait < againMost && 2*wait <= r.StartedAt.Sub(since) {
		wait *= 2
	}
	return min(wait, againMost)
}

// next notes what a probe says about the next pass.
func (r *Report) next(probe *store.Probe, now time.Time) {
	due := probe.NextWake
	r.due, r.NextRun, r.wake, r.MoreDue = due, due, time.Time{}, false
	r.skew, r.LookedAt = now.Sub(probe.Now), probe.Now
	r.Frozen, r.frozenUntil, r.left = probe.Frozen, probe.FrozenUntil, nil
	if probe.Queued {
		r.left = append(r.left, probe.QueuedSince)
	}
	if probe.Undecided() {
		r.left = append(r.left, time.Time{})
	}
	if !due.IsZero() {
		if r.MoreDue = !due.After(probe.Now); r.MoreDue {
			r.NextRun, r.due = probe.Now, probe.DueSince
		}
		r.wake = now.Add(due.Sub(probe.Now))
	}
}

// isLeft reports whether the last probe found something to do that may be done now.
func (r *Report) isLeft() bool { return !r.Frozen && (len(r.left) > 0 || r.MoreDue) }

// comes is when something is due next if nothing is left: a freeze ends, or a time comes.
func (r *Report) comes() time.Time {
	if r.Frozen {
		return r.frozenUntil
	}
	return r.due
}
