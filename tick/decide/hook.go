package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// An event is raised in the decision that causes it: the event and the record of its cause are written
// together, or not at all. An event names its cause, so that no event has two runs.

// hook is the job that runs for an event: the hook of the job's definition, or else the hook of this host.
func (d *decision) hook(event string) string {
	name := cmp.Or(d.job().On.For(event), d.pass.On.For(event))
	if name == store.NoHook {
		return ""
	}
	return name
}

// raise asks for a run of the event's hook, if there is one. A job that is gone raises no events any more.
func (d *decision) raise(e store.Event) {
	j := d.job()
	if e.Hook = d.hook(e.Kind); e.Hook == "" || d.gone() {
		return
	}
	e.At, e.Job, e.Owner, e.Streak = d.now, j.Name, j.Owner, d.plan.Streak
	d.events = append(d.events, e)
}

// raiseOfRun raises an event of a run that has ended. The run of a hook raises none: a hook that fails
// would call hooks for ever. If a run was opened again and fails again, that is another event: its cause
// has another fence, or another end if the run was not delivered again.
func (d *decision) raiseOfRun(kind string, r *store.Run) {
	if r.Event() != "" {
		return
	}
	e := store.Event{Kind: kind, Cause: fmt.Sprintf("%s:%d:%s", r.ID, r.Fence, stamp(r.FinishedAt)), RunID: r.ID,
		ScheduledFor: r.ScheduledFor, Error: r.Error, Attempts: r.Attempts}
	if kind == store.EventPaused {
		e.Error = cmp.Or(d.pauseReason, d.pausedWithEnd(r))
	}
	d.raise(e)
}

// raiseOfPlan raises the events of the decision as a whole: one event for all nominal times that were
// missed, one for all runs that are late, and one if the job is newly parked.
func (d *decision) raiseOfPlan() {
	cause := func() string { return fmt.Sprintf("%d:%s", d.plan.JobID, stamp(d.now)) }
	if m := d.missed; m.count > 0 {
		d.raise(store.Event{Kind: store.EventMissed, Cause: cause(), ScheduledFor: m.first, Count: m.count})
	}
	if l := d.late; l.count > 0 {
		d.raise(store.Event{Kind: store.EventLate, Cause: cause(), ScheduledFor: l.first, Count: l.count})
	}
	if d.plan.Parked != "" && d.snapshot.Plan.Parked == "" {
		d.raise(store.Event{Kind: store.EventParked, Cause: cause(), Error: d.plan.Parked})
	}
}

// stamp formats an instant as a part of a cause.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// times describes several nominal times: the first one, and how many they are.
type times struct {
	first time.Time
	count int
}

func (t *times) add(nominal time.Time) {
	if t.count++; t.first.IsZero() || nominal.Before(t.first) {
		t.first = nominal
	}
}

// mostMissed bounds the nominal times that an event counts: after a year, a rule of each second
// has too many.
const mostMissed = 1000

// noteMissed counts the nominal times of a rule in a gap, if there is a hook for missed times. A time that several rules
// give is one nominal time of the job.
func (d *decision) noteMissed(l *activeRule, w window, reason string) {
	if reason != store.Missed || d.hook(store.EventMissed) == "" {
		return
	}
	if d.counted == nil {
		d.counted = map[int64]bool{}
	}
	t := l.next(d, w.from)
	for ; !t.IsZero() && !t.After(w.to) && d.missed.count < mostMissed; t = l.next(d, t) {
		if at := t.UnixMicro(); !d.counted[at] {
			d.counted[at] = true
			d.missed.add(t)
		}
	}
}

// noteLate notes a run that is made too long after its nominal time. A time in a pause that was resumed with what it missed counts
// from the end of that pause: until then, nobody wanted the run.
func (d *decision) noteLate(t time.Time) {
	late := d.pass.Late
	if late <= 0 || d.hook(store.EventLate) == "" || d.now.Sub(t) <= late {
		return
	}
	since := t
	for _, p := range slices.Concat(d.pauses, d.left) {
		if w := d.heldBy(&p); p.Missed && t.After(w.from) && !t.After(w.to) && d.given(t, &p) {
			since = later(since, p.Ends(d.now))
		}
	}
	if d.now.Sub(since) > late {
		d.late.add(t)
	}
}

// given reports whether a nominal time is one of those that a pause is about: of any schedule, or of the one that is paused.
func (d *decision) given(t time.Time, p *store.Pause) bool {
	return p.Scope != store.ScopeSchedule || slices.ContainsFunc(d.rules, func(l activeRule) bool {
		return l.ScheduleID == p.SubjectID && l.next(d, t.Add(-instant)).Equal(t)
	})
}
