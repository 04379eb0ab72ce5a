package model

import (
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// decide judges the nominal times that are due by now, one after the other. It reports whether it had
// a reason to decide.
func (t *tale) decide(now time.Time) bool {
	p := &t.policy
	changed := t.decidedEver && !SamePolicies(&t.planned, p) || t.cut
	boots := p.OnStartup && t.n.startup != "" && !t.booted[t.n.startup]
	wake := boots || t.woken || changed || t.ready(now) || !t.wakeAt.IsZero() && !t.wakeAt.After(now)
	edited := false
	for i, l := range t.links {
		edited = edited || l.gone || l.known == nil || l.known.String() != t.rule(i).String()
	}
	if wake = wake || edited || !t.decidedEver; !wake && (t.asleep || !t.due(now)) {
		return false
	}
	t.decidedAt = now
	t.settle(now)
	t.recoverExpired(now)
	last := t.through
	if !t.decidedEver {
		last = t.n.s.Start
	}
	openFrom := later(last, t.openFrom(now, last))
	since, edited := t.eras(now, last, openFrom)
	switch t.stuck = t.parked(); {
	case t.stuck:
		t.through = last
		if edited {
			t.skipAllDue(now, last, since)
		}
	default:
		upTo := now
		if t.decidedEver && !edited && (!changed || sameTimes(&t.planned, p) && !t.spent()) {
			upTo = openFrom
		}
		t.owe(now, last, upTo, since, changed)
		if boots { // a start while the job is disabled is over when somebody enables the job
			t.booted[t.n.startup] = true
		}
		if boots && !p.Disabled && !t.spent() {
			t.numbers++
			t.runs = append(t.runs, &store.Run{Number: t.numbers, Occurrence: "start:" + t.n.startup, State: store.Waiting, ReadyAt: now, CreatedAt: now})
		}
	}
	t.admit(now, changed)
	t.forget()
	t.sleep(now)
	t.woken, t.paused = t.paused, false // if this decision has paused the job, the next tick handles that change
	t.cut, t.decidedEver, t.planned = false, true, t.policy
	return true
}

// due reports whether a nominal time has come since the last decision. If none has come, there is no new decision.
func (t *tale) due(now time.Time) bool {
	for i := range t.links {
		if slices.ContainsFunc(t.rule(i).Within(t.n.s.Span, Window{t.decidedAt, now}), func(at time.Time) bool { return t.valid(at, now, now) }) {
			return true
		}
	}
	return false
}

// parked reports whether one of the rules does not parse. Nothing is decided until that rule is repaired.
func (t *tale) parked() bool {
	for i := range t.links {
		if t.definition(i).rule.broken {
			return true
		}
	}
	return false
}

// skipAllDue notes the times that the other rules owe, when the job is parked. No time from before the
// edit runs after it.
func (t *tale) skipAllDue(now, last time.Time, since map[int]time.Time) {
	for i, from := range since {
		rule := t.rule(i)
		for _, at := range rule.Within(t.n.s.Span, Window{from, now}) {
			if t.valid(at, now, last) {
				t.lapse(i, rule, at, store.Edited)
			}
		}
	}
	t.through = now
}

// owe judges the nominal times up to an instant.
func (t *tale) owe(now, last, upTo time.Time, since map[int]time.Time, changed bool) {
	p := &t.policy
	// The times that the schedules name. Several schedules may name the same time.
	var times []time.Time
	named := map[time.Time][]int{}
	sleptUntil, why := time.Time{}, ""
	switch {
	case p.Disabled:
		sleptUntil, why = now, store.Disabled
	case t.decidedEver && t.planned.Disabled:
		sleptUntil, why = t.changeOf(now, last), store.Disabled
	case t.decidedEver && changed && t.planned.MaxRuns > 0 && t.numbers >= t.planned.MaxRuns:
		sleptUntil, why = t.changeOf(now, last), store.Edited
	}
	for i, from := range since {
		rule := t.rule(i)
		for _, at := range rule.Within(t.n.s.Span, Window{from, upTo}) {
			switch reason := t.held(i, at, now, last); {
			case !t.valid(at, now, last):
			case !at.After(sleptUntil):
				t.lapse(i, rule, at, why)
			case reason != "":
				t.note(i, rule, at, reason)
			case t.skipped(at, i):
				t.note(i, rule, at, store.Skipped)
			default:
				if named[at] == nil {
					times = append(times, at)
				}
				named[at] = append(named[at], i)
			}
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	if !p.Disabled {
		t.judge(now, times, named)
	}
	t.through = upTo
}

// eras notes what old rules still owed. It returns from when on each of the job's rules counts, and
// whether any of them has changed. Without a change, times after openFrom stay open.
func (t *tale) eras(now, last, openFrom time.Time) (counts map[int]time.Time, edited bool) {
	counts = map[int]time.Time{}
	for i, l := range t.links {
		def, rule := t.definition(i), t.rule(i)
		from := last
		switch {
		case l.known == nil:
			from = earlier(now, later(l.linkedAt, def.changedAt))
		case l.gone:
			from = now
		case l.known.String() != rule.String():
			if from = now; def.changedAt.After(last) {
				from = earlier(now, def.changedAt)
			}
		}
		since, more, same := time.Time{}, false, false
		if l.known != nil && !l.gone {
			since, more, same = t.stillDue(*l.known, rule, now, Window{last, from}, openFrom)
		}
		if same {
			from, edited = since, edited || more
		} else if edited = edited || l.known == nil || l.gone || l.known.String() != rule.String(); l.known != nil && (l.gone || l.known.String() != rule.String()) {
			for _, at := range l.known.Within(t.n.s.Span, Window{last, from}) {
				if t.valid(at, now, last) {
					t.lapse(i, *l.known, at, store.Edited)
				}
			}
		}
		if l.gone {
			delete(t.links, i)
			continue
		}
		counts[i] = from
		l.known = &rule
	}
	return counts, edited
}

// stillDue reports whether a rule with a calendar names all times again that the rule before it named
// in a window, and no others after the first of them: same. more reports whether it names some before
// that, which would stay open.
func (t *tale) stillDue(was, is Rule, now time.Time, w Window, openFrom time.Time) (since time.Time, more, same bool) {
	if is.calendar == 0 || was.broken || is.broken {
		return w.From, false, false
	}
	of := func(r Rule, part Window) []time.Time {
		return slices.DeleteFunc(slices.Clone(r.Within(t.n.s.Span, part)), func(at time.Time) bool { return !t.valid(at, now, w.From) })
	}
	due := of(was, w)
	if since = w.To; len(due) > 0 {
		since = due[0].Add(-time.Microsecond)
	}
	same = len(due) < 100 && slices.EqualFunc(due, of(is, Window{since, w.To}), time.Time.Equal)
	return since, len(of(is, Window{openFrom, since})) > 0, same
}

// valid reports whether a nominal time belongs to the job by the policies that there were at that time.
func (t *tale) valid(at, now, last time.Time) bool {
	p := t.policyOf(at, now, last)
	return (p.NotBefore.IsZero() || !at.Before(p.NotBefore)) && (p.NotAfter.IsZero() || !at.After(p.NotAfter))
}

// policyOf returns the policies that there were at a nominal time.
func (t *tale) policyOf(at, now, last time.Time) *store.Job {
	if t.decidedEver && !SamePolicies(&t.planned, &t.policy) && !at.After(t.changeOf(now, last)) {
		return &t.planned
	}
	return &t.policy
}

// changeOf returns the time from which the last change of the policies counts.
func (t *tale) changeOf(now, last time.Time) time.Time {
	if t.policyAt.After(last) {
		return earlier(now, t.policyAt)
	}
	return now
}

func (t *tale) note(schedule int, rule Rule, at time.Time, reason string) {
	t.decided = append(t.decided, Skipped{schedule, rule, at, reason})
}

func (t *tale) pausesNow() []*interval {
	return slices.DeleteFunc(slices.Clone(t.n.pauses), func(p *interval) bool { return !p.covers(t, &t.policy) })
}

// held reports whether a nominal time of a schedule lies in a pause.
func (t *tale) held(schedule int, at, now, last time.Time) string {
	for _, p := range t.n.pauses {
		if p.covers(t, t.policyOf(at, now, last)) && !p.Missed && (p.Scope != "schedule" || p.Shared == schedule) && !at.Before(p.since) && at.Before(p.end(now.Add(1))) {
			return store.Paused
		}
	}
	return ""
}

// judge makes runs of the nominal times that nothing holds back, or notes why it makes none.
func (t *tale) judge(now time.Time, times []time.Time, named map[time.Time][]int) {
	p := &t.policy
	most := 1
	if p.Missed == "all" {
		most = p.MissedLimit
	}
	runs := slices.Clone(times[max(0, len(times)-most):])
	for len(runs) > 0 {
		age := now.Sub(runs[0])
		if (p.MissedWithin == 0 || age <= time.Duration(p.MissedWithin)) && (p.Missed != "skip" || age <= time.Duration(p.MissedGrace+p.Jitter)) {
			break
		}
		runs = runs[1:]
	}
	if t.spent() {
		runs = times
	}
	reasons := map[time.Time]string{}
	for _, at := range times[:len(times)-len(runs)] {
		reasons[at] = store.Missed
	}
	for _, r := range t.runs { // those that are tried until the next occurrence, which comes now, or came while they ran
		came := slices.ContainsFunc(t.runs, func(x *store.Run) bool { return !x.Ended() && x.ScheduledFor.After(r.StartedAt) })
		if *p.Retry.Attempts == 0 && r.State == store.Waiting && !r.StartedAt.IsZero() && r.CancelAt.IsZero() && (came || len(runs) > 0 && !t.spent()) {
			r.State, r.HeldBy, r.FinishedAt = store.Failed, "", now
		}
	}
	left := len(runs)
	if p.MaxRuns > 0 {
		left = int(min(int64(left), max(0, p.MaxRuns-t.numbers)))
	}
	for _, at := range runs[:len(runs)-left] {
		reasons[at] = store.OverLimit
	}
	runs = runs[len(runs)-left:]
	if t.overlaps(now) {
		for _, at := range runs {
			reasons[at] = store.Overlap
		}
		runs = nil
	}
	for at, reason := range reasons {
		for _, i := range named[at] {
			t.note(i, t.rule(i), at, reason)
		}
	}
	if len(runs) > 0 && p.Overlap == "replace" {
		begins := t.begins(now)
		for _, r := range t.runs {
			switch {
			case r.ScheduledFor.IsZero() || r.Ended():
			case r == begins && !t.names(r.ScheduledFor, runs[len(runs)-1]):
			case r.State == store.Running:
				r.CancelAt = now
			default:
				r.State, r.HeldBy, r.FinishedAt = store.Cancelled, "", now
			}
		}
	}
	for _, at := range runs {
		t.makeRun(now, at)
	}
}

func (t *tale) overlaps(now time.Time) bool {
	begins := t.begins(now)
	for _, r := range t.runs {
		if r.State == store.Waiting && !r.CancelAt.IsZero() || t.setAside(r, now) {
			continue
		}
		waits := r.State == store.Waiting && r.Fence == 0 && !r.ScheduledFor.IsZero() && r != begins
		if t.policy.Overlap == "skip" && !r.Ended() || t.policy.Overlap == "wait" && waits {
			return true
		}
	}
	return false
}

// begins returns the run that nothing but its jitter has held back, if it is the next one to begin: the jitter is over.
func (t *tale) begins(now time.Time) (first *store.Run) {
	for _, r := range t.runs {
		switch {
		case r.State == store.Queued || r.State == store.Running || r.State == store.Waiting && !r.StartedAt.IsZero():
			return nil
		case first != nil || r.Ended() || r.ReadyAt.After(now) || !r.CancelAt.IsZero() || t.stays(r, now):
		case r.ScheduledFor.IsZero() || r.HeldBy != "" || r.Fence > 0:
			return nil
		default:
			first = r
		}
	}
	return first
}

// names reports whether a rule names a time between two others.
func (t *tale) names(from, to time.Time) bool {
	for i := range t.links {
		if len(t.rule(i).Within(t.n.s.Span, Window{from, to.Add(-1)})) > 0 {
			return true
		}
	}
	return false
}

func (t *tale) makeRun(now, at time.Time) {
	start, spread := t.lastFor, time.Duration(t.policy.Jitter)
	named := store.Job{Owner: t.n.s.Owner, Name: t.job.Name()}
	var before time.Time
	for i := range t.links {
		times := t.rule(i).times(t.n.s.Span)
		if k := after(times, at.Add(-1)); k > 0 {
			before = later(before, times[k-1])
		}
		if k := after(times, at); k < len(times) {
			spread = min(spread, times[k].Sub(at))
		}
	}
	if start.IsZero() {
		start = before
	}
	t.numbers++
	t.lastFor = at
	t.runs = append(t.runs, &store.Run{Number: t.numbers, Occurrence: "at:" + at.Format("2006-01-02T15:04:05.000000Z"), State: store.Waiting, CreatedAt: now,
		ScheduledFor: at, IntervalStart: start, IntervalEnd: at, ReadyAt: later(now, at.Add(decide.Jitter(named.FullName(), at, spread)))})
}

// openFrom returns the time from which nominal times stay open. While pauses hold all schedules, the times in
// the pauses stay open, so that somebody can ask for them later. If the job is disabled or has made all of its
// runs, the times since the last decision stay open: no run can come of them.
func (t *tale) openFrom(now, last time.Time) time.Time {
	if t.policy.Disabled || t.spent() {
		return last
	}
	first := now
	for i, l := range t.links {
		if l.gone {
			continue
		}
		p := t.holds(now, i)
		if p == nil {
			return now
		}
		first = earlier(first, p.since.Add(-time.Microsecond))
	}
	return first
}

// spent reports whether the job has made as many runs as max_runs allows.
func (t *tale) spent() bool { return t.policy.MaxRuns > 0 && t.numbers >= t.policy.MaxRuns }

// sleep notes whether the job is asleep, which it is if it has no further nominal time, and when a pause will wake it.
func (t *tale) sleep(now time.Time) {
	p := &t.policy
	next := false
	for i := range t.links {
		next = next || slices.ContainsFunc(t.rule(i).Within(t.n.s.Span, Window{now, t.n.s.Span.To}), func(at time.Time) bool { return t.valid(at, now, now) })
	}
	t.asleep = p.Disabled || t.parked() || !next || t.spent()
	t.wakeAt = time.Time{}
	for _, q := range t.pausesNow() {
		if !q.since.After(now) && q.end(now.Add(1)).After(now) && !q.Until.IsZero() && (t.wakeAt.IsZero() || q.Until.Before(t.wakeAt)) {
			t.wakeAt = q.Until
		}
	}
}
