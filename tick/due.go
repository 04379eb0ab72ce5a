package tick

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// live is a rule of the job, and the instant after which its nominal times are to be decided.
type live struct {
	store.Rule
	recurrence *rules.Rule
	from       time.Time
}

// A rule whose step budget cannot decide parks the job: nothing loops, and nothing is lost.
func (l *live) next(d *decision, after time.Time) time.Time {
	t, err := l.recurrence.Next(after)
	if err != nil {
		d.park("rule %s: %v", l.recurrence, err)
	}
	return t
}

func (l *live) prev(d *decision, before time.Time) time.Time {
	t, err := l.recurrence.Prev(before)
	if err != nil {
		d.park("rule %s: %v", l.recurrence, err)
	}
	return t
}

// window is (from, to].
type window struct{ from, to time.Time }

func (w window) empty() bool { return !w.from.Before(w.to) }

// readRules brings the rules as planned and as defined together. What an old rule still owed when it was changed or
// taken away is a gap; the new one counts from the change, never back from it.
func (d *decision) readRules(parse *parser) {
	through := d.plan.DecidedThrough
	if through.IsZero() {
		through = d.job().CreatedAt
	}
	d.replan = d.c.Stale
	for _, r := range d.c.Rules {
		changed := r.Changed() || !r.Linked
		from := through
		switch {
		case r.Input == "" && r.Linked && r.LinkedAt.IsZero(): // a link that was moved counts from where that is noticed
			from = d.now
		case r.Input == "":
			from = earlier(d.now, later(r.LinkedAt, r.ChangedAt)) // no tick has seen what it was before
		case changed && r.Linked && r.ChangedAt.After(through):
			from = earlier(d.now, r.ChangedAt)
		case changed:
			from = d.now // plain SQL: the change counts from where it is noticed
		}
		d.replan = d.replan || changed || !r.LinkPlanned
		d.changed = d.changed || changed
		if changed && r.Text != "" {
			if old, err := parse.planned(&r); err == nil {
				d.gap(&live{r, old, through}, window{through, from}, store.Edited)
			}
		}
		if !r.Linked {
			continue
		}
		d.addRule(parse, r, from, changed)
	}
}

// addRule parses a rule as it stands. One that does not parse parks the job, and is kept without a text.
func (d *decision) addRule(parse *parser, r store.Rule, from time.Time, changed bool) {
	var found *rules.Rule
	var err error
	if changed || r.Text == "" {
		r.Input, r.Text, r.Ends = r.NewInput, "", ""
		if found, err = parse.defined(&r.Schedule, d.job()); err == nil {
			r.Text, r.Ends = found.String(), found.Ends()
		}
	} else {
		found, err = parse.planned(&r)
	}
	d.kept = append(d.kept, r)
	if err != nil {
		what := "rule"
		if r.Schedule.Name != "" {
			what = "schedule " + r.Schedule.Name
		}
		d.park("%s: %v", what, err)
		return
	}
	d.live = append(d.live, live{r, found, from})
}

// owed are the stretches of a rule in which its nominal times are the job's and no pause holds them, oldest first;
// the paused stretches between become gaps.
func (d *decision) owed(l *live) []window {
	w := window{l.from, d.upTo()}
	if t := d.job().NotBefore; !t.IsZero() {
		w.from = later(w.from, t.Add(-instant))
	}
	if t := d.job().NotAfter; !t.IsZero() {
		w.to = earlier(w.to, t)
	}
	free := []window{w}
	for i := range d.pauses {
		p := &d.pauses[i]
		if p.Missed || p.Scope == store.ScopeSchedule && p.SubjectID != l.ScheduleID {
			continue
		}
		held := window{p.Since.Add(-instant), p.Ends(d.now.Add(instant)).Add(-instant)} // the end itself is free
		var rest []window
		for _, f := range free {
			paused := window{later(f.from, held.from), earlier(f.to, held.to)}
			if paused.empty() {
				rest = append(rest, f)
				continue
			}
			d.gap(l, paused, store.Paused)
			for _, part := range []window{{f.from, paused.from}, {paused.to, f.to}} {
				if !part.empty() {
					rest = append(rest, part)
				}
			}
		}
		free = rest
	}
	return slices.DeleteFunc(free, window.empty)
}

// occurrences decides the nominal times up to now: each becomes a run, or lies in a gap.
func (d *decision) occurrences() {
	switch {
	case d.gone():
		d.pass(store.Edited)
		return
	case d.job().Disabled:
		d.pass(store.Disabled)
		return
	case d.c.WasDisabled:
		d.passUntilChange(store.Disabled)
	case d.c.Stale && d.c.Plan.NextRun.IsZero() && !d.c.Plan.DecidedThrough.IsZero() && d.c.Plan.Error == "":
		d.passUntilChange(store.Edited) // it was finished, and has come back
	}
	// Never back: a database's clock may jump, and two ticks' instants may come in the wrong order.
	d.plan.DecidedThrough = later(d.upTo(), d.c.Plan.DecidedThrough)
	owed := make([][]window, len(d.live))
	for i := range d.live {
		owed[i] = d.owed(&d.live[i])
	}
	due := d.due(owed)
	if len(due) > 0 && *d.job().Retry.Attempts == 0 {
		d.giveUp()
	}
	reason := d.refused(due)
	cut := d.now // up to here nothing became a run for being missed
	if len(due) > 0 {
		cut = due[0].Add(-instant)
	}
	for i := range d.live {
		for _, w := range owed[i] {
			d.gap(&d.live[i], window{w.from, earlier(w.to, cut)}, store.Missed)
			if reason != "" {
				d.gap(&d.live[i], window{later(w.from, cut), w.to}, reason)
			}
		}
	}
	if reason == "" {
		if len(due) > 0 && d.job().Overlap == "replace" {
			d.replace()
		}
		for _, t := range due {
			d.make(t)
		}
	}
	if id := d.startupID; id != "" && d.job().OnStartup && d.plan.StartupID != id {
		d.plan.StartupID = id
		d.plan.RunsMade++
		d.made = append(d.made, store.Run{JobID: d.plan.JobID, Number: d.plan.RunsMade, Occurrence: "start:" + id, State: store.Waiting,
			Queue: d.job().Queue, Priority: d.job().Priority, ReadyAt: d.now})
	}
	if d.plan.Error != "" { // a rule gave up half-way: nothing of this is written, and all of it decided later
		d.plan.DecidedThrough, d.gaps, d.made = d.c.Plan.DecidedThrough, nil, nil
	}
}

// passUntilChange lets go what was due before the definition changed: by a command, which says when, or by plain SQL,
// where the change counts from now. What came after is decided as usual.
func (d *decision) passUntilChange(reason string) {
	from := d.now
	if t := d.job().ChangedAt(); t.After(d.c.Plan.DecidedThrough) {
		from = earlier(d.now, t)
	}
	for i := range d.live {
		l := &d.live[i]
		d.gap(l, window{l.from, from}, reason)
		l.from = later(l.from, from)
	}
}

// pass lets all that is due go, for one reason.
func (d *decision) pass(reason string) {
	d.plan.DecidedThrough = later(d.now, d.c.Plan.DecidedThrough)
	for i := range d.live {
		d.gap(&d.live[i], window{d.live[i].from, d.now}, reason)
	}
}

// due are the nominal times that the policy for missed ones lets run, oldest first.
func (d *decision) due(owed [][]window) []time.Time {
	most := 1
	if d.job().Missed == "all" {
		most = d.job().MissedLimit
	}
	var found []time.Time
	for i := range d.live {
		found = append(found, d.newest(&d.live[i], owed[i], most)...)
	}
	slices.SortFunc(found, time.Time.Compare)
	found = slices.CompactFunc(found, time.Time.Equal) // two rules may name one instant
	found = found[max(0, len(found)-most):]
	tooOld := func(t time.Time) bool {
		age := d.now.Sub(t)
		if within := time.Duration(d.job().MissedWithin); within > 0 && age > within {
			return true
		}
		return d.job().Missed == "skip" && age > time.Duration(d.job().Grace+d.job().Jitter)
	}
	return slices.DeleteFunc(found, tooOld)
}

// newest are at most so many of the rule's newest nominal times in the windows.
func (d *decision) newest(l *live, owed []window, most int) []time.Time {
	var found []time.Time
	for _, w := range slices.Backward(owed) {
		t := l.prev(d, w.to.Add(instant))
		for ; !t.IsZero() && t.After(w.from) && len(found) < most; t = l.prev(d, t) {
			found = append(found, t)
		}
	}
	return found
}

// refused tells why the due times do not become runs: the runs of one catch-up are judged together, against runs of
// earlier decisions. Empty: they do.
func (d *decision) refused(due []time.Time) string {
	if limit := d.job().MaxCycles; limit > 0 && d.plan.RunsMade+int64(len(due)) > limit {
		return store.OverLimit
	}
	waits := false
	active := 0
	for _, r := range d.active {
		waits = waits || r.State == store.Waiting && r.Fence == 0 && !r.Requested()
		if !final(r.State) {
			active++
		}
	}
	switch d.job().Overlap {
	case "wait":
		if waits {
			return store.Overlap
		}
	case "skip":
		if active > 0 {
			return store.Overlap
		}
	}
	return ""
}

// giveUp ends the runs that were tried until the next occurrence: it is here.
func (d *decision) giveUp() {
	for i := range d.active {
		if r := &d.active[i]; r.State == store.Waiting && r.Begun() {
			r.State, r.HeldBy, r.FinishedAt = store.Failed, "", d.now
		}
	}
}

// replace makes way for newer occurrences: what has not begun is cancelled, and whoever executes an older one is told.
func (d *decision) replace() {
	for i := range d.active {
		switch r := &d.active[i]; {
		case r.Requested(): // a request is never replaced
		case final(r.State):
		case r.State == store.Running:
			d.cancel = append(d.cancel, r.ID)
		default:
			r.State, r.HeldBy, r.FinishedAt, r.Error = store.Cancelled, "", d.now, "replaced by a newer occurrence"
		}
	}
}

// make makes the run of a nominal time.
func (d *decision) make(t time.Time) {
	j := d.job()
	start := d.plan.LastScheduledFor
	if start.IsZero() {
		for i := range d.live {
			start = later(start, d.live[i].prev(d, t))
		}
	}
	d.plan.RunsMade++
	d.plan.LastScheduledFor = t
	ready := later(d.now, t.Add(d.jitter(t)))
	d.made = append(d.made, store.Run{
		JobID: j.ID, Number: d.plan.RunsMade, Occurrence: "at:" + t.UTC().Format("2006-01-02T15:04:05.000000Z"),
		State: store.Waiting, Queue: j.Queue, Priority: j.Priority, ScheduledFor: t, IntervalStart: start, IntervalEnd: t, ReadyAt: ready,
	})
}

// jitter is the same for an occurrence always, and less than the time to the next.
func (d *decision) jitter(t time.Time) time.Duration {
	most := time.Duration(d.job().Jitter)
	if most == 0 {
		return 0
	}
	for i := range d.live {
		if n := d.live[i].next(d, t); !n.IsZero() {
			most = min(most, n.Sub(t))
		}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.job().FullName() + t.UTC().String())) // never fails
	return time.Duration(h.Sum64() % uint64(most)).Truncate(time.Millisecond)
}

// gap records that the rule's nominal times in the window do not run, if it has any there.
func (d *decision) gap(l *live, w window, reason string) {
	if w.empty() {
		return
	}
	if t := l.next(d, w.from); t.IsZero() || t.After(w.to) {
		return
	}
	d.gaps = append(d.gaps, store.Gap{JobID: d.plan.JobID, ScheduleID: l.ScheduleID, From: w.from, Through: w.to, Reason: reason, Rule: l.recurrence.String()})
}
