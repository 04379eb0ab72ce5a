package decide

import (
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// window is (from, to].
type window struct{ from, to time.Time }

func (w window) empty() bool { return !w.from.Before(w.to) }

// owed returns the windows in which the nominal times of a rule are due: the times are valid, and no
// pause holds them. The oldest window comes first. Windows in a pause become gaps.
func (d *decision) owed(l *activeRule) []window {
	free := d.validParts(window{l.from, d.upTo()})
	for _, p := range slices.Concat(d.pauses, d.left) {
		if p.Missed || p.Scope == store.ScopeSchedule && p.SubjectID != l.ScheduleID {
			continue
		}
		free = d.cut(l, free, d.heldBy(&p), store.Paused)
	}
	return d.withoutSkips(l, free)
}

// cut takes a part out of windows. The times in that part become gaps.
func (d *decision) cut(l *activeRule, from []window, part window, reason string) (rest []window) {
	for _, f := range from {
		out := window{later(f.from, part.from), earlier(f.to, part.to)}
		if out.empty() {
			rest = append(rest, f)
			continue
		}
		d.gap(l, out, reason)
		rest = append(rest, window{f.from, out.from}, window{out.to, f.to})
	}
	return slices.DeleteFunc(rest, window.empty)
}

// withoutSkips removes the times that somebody has decided to skip. These times become gaps.
func (d *decision) withoutSkips(l *activeRule, free []window) []window {
	if d.snapshot.Plan.Skips == "" {
		return free
	}
	for _, k := range d.snapshot.Plan.SkipList() {
		if k.Of(l.ScheduleID) {
			free = d.cut(l, free, window{k.At.Add(-instant), k.At}, store.Skipped)
		}
	}
	return free
}

// lapse makes gaps of the times in a window that a change of the definition ends. The times that somebody had decided to skip
// before that are skipped.
func (d *decision) lapse(l *activeRule, w window, reason string) {
	for _, rest := range d.withoutSkips(l, []window{w}) {
		d.gap(l, rest, reason)
	}
}

// validParts returns the parts of a window in which nominal times are valid by not_before and
// not_after. Up to the change of the policies, the old values count; after it, the new values.
func (d *decision) validParts(w window) []window {
	j, was := d.job(), &d.snapshot.Planned
	clamp := func(w window, notBefore, notAfter time.Time) window {
		if !notBefore.IsZero() {
			w.from = later(w.from, notBefore.Add(-instant))
		}
		if !notAfter.IsZero() {
			w.to = earlier(w.to, notAfter)
		}
		return w
	}
	parts := []window{clamp(w, j.NotBefore, j.NotAfter)}
	if was.Known && !(was.NotBefore.Equal(j.NotBefore) && was.NotAfter.Equal(j.NotAfter)) {
		change := d.policyChange()
		old := clamp(window{w.from, earlier(w.to, change)}, was.NotBefore, was.NotAfter)
		parts[0] = clamp(window{later(w.from, change), w.to}, j.NotBefore, j.NotAfter)
		if !old.empty() && !parts[0].empty() && old.to.Equal(parts[0].from) {
			parts[0].from = old.from
		} else {
			parts = []window{old, parts[0]}
		}
	}
	return slices.DeleteFunc(parts, window.empty)
}

// policyChange is the instant at which the job's policies changed. A command records that instant; a
// change by plain SQL counts from now.
func (d *decision) policyChange() time.Time {
	if t := d.snapshot.ChangedAt; t.After(d.snapshot.Plan.DecidedThrough) {
		return earlier(d.now, t)
	}
	return d.now
}
