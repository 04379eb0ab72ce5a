package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// firstRuns returns when the jobs that a change created run first. If there are more than most of them, it returns
// nothing.
func (w world) firstRuns(m *manifest.Manifest, changes []store.Change) []report.FirstRun {
	const most = 1000
	created := map[string]string{} // the full name, by the name in the file
	for _, ch := range changes {
		if ch.Kind == "job" && ch.Action == "create" {
			created[ch.PlainSubject()] = ch.Subject
		}
	}
	if len(created) > most {
		return nil
	}
	schedules := map[string]store.Schedule{}
	maps.Copy(schedules, m.Shared)
	for _, s := range m.Schedules {
		schedules[s.Name] = s
	}
	w.renamePauses(m.Definitions, changes)
	var list []report.FirstRun
	for _, j := range m.Jobs {
		if name := created[j.Name]; name != "" {
			list = append(list, w.firstRun(name, j, schedules))
		}
	}
	return list
}

// renamePauses gives the pauses of schedules that a change has renamed their new names: they were read before it.
func (w world) renamePauses(d store.Definitions, changes []store.Change) {
	made := map[string]bool{}
	for i := range changes {
		if ch := &changes[i]; ch.Kind == store.KindSchedule && ch.Action == "rename" {
			made[ch.Subject] = true
		}
	}
	for _, r := range d.RenamesInTurn() {
		if r.Kind != store.KindSchedule || !made[r.To] {
			continue
		}
		renamePauses(w.pauses, r.From, r.To)
	}
}

// renamePauses gives the pauses of a schedule its new name.
func renamePauses(list []store.Pause, from, to string) {
	for i := range list {
		if p := &list[i]; p.Scope == store.ScopeSchedule && p.Subject == from {
			p.Subject = to
		}
	}
}

// firstRun returns the first nominal time of a job, by all rules or by repeat_after, that no pause in force takes away, or the
// reason why there is none.
func (w world) firstRun(name string, j store.Job, schedules map[string]store.Schedule) report.FirstRun {
	now, first := w.now, report.FirstRun{Job: name}
	is := store.JobStatus{Job: j}
	is.Owner = strings.TrimSuffix(strings.TrimSuffix(name, j.Name), "/")
	is.Hold(w.pauses)
	rules := make([]store.Schedule, 0, 1+len(j.Schedules))
	if j.Own != nil {
		rules = append(rules, *j.Own)
	}
	for _, name := range j.Schedules {
		rules = append(rules, schedules[name])
	}
	held := holds(&is) // by a pause without an end
	if held != nil && !held.Until.IsZero() {
		held = nil
	}
	for _, s := range rules {
		after, by := pausedUntil(&is, s.Name, now)
		if by != nil {
			held = by
			continue
		}
		t, err := decide.FirstAfter(j, s, w.calendars[s.Calendar], now, after)
		if err == nil && !t.IsZero() && (first.At.IsZero() || t.Before(first.At)) {
			first.At, first.Zone = t, s.Zone
		}
	}
	var when []string
	if j.RepeatAfter > 0 {
		decide.KeepStart(&j, &store.Job{}, now)
		switch t, p := decide.NextRepeat(&store.JobStatus{Job: j}, &store.Job{}, now), holds(&is); {
		case !j.NotAfter.IsZero() && t.After(j.NotAfter):
		case p != nil && (p.Until.IsZero() || p.Until.After(t)): // the time in the pause becomes a gap, and the next one counts from there
			when = append(when, "after the pause of "+pausedSubject(p).String())
		case j.NotBefore.After(now):
			first.At, first.Zone = t, cmp.Or(j.StartZone, "UTC")
		default:
			when = append(when, "at the next tick")
		}
	}
	if len(j.After) > 0 {
		when = append(when, "after "+store.AfterText(j.After))
	}
	if j.OnStartup {
		when = append(when, "when a tick reports a start")
	}
	switch {
	case j.Disabled:
		first = report.FirstRun{Job: name, Why: "none, it is disabled"}
	case held != nil && first.At.IsZero() && (held.Scope != store.ScopeSchedule || len(when) == 0):
		first = report.FirstRun{Job: name, Why: fmt.Sprintf("none, the pause of %s holds it; `dbjobs %s` ends that", pausedSubject(held), endsPause(pausedSubject(held)))}
	case first.At.IsZero() && (len(rules) > 0 || j.RepeatAfter > 0) && len(when) == 0:
		first.Why = "none, its schedule has no time left"
	case first.At.IsZero():
		first.Why = cmp.Or(strings.Join(when, ", or "), "on request only")
	}
	return first
}

// pausedUntil returns the instant after which the times of one of a job's schedules count, or a pause without an end that takes
// all of them away. A time at the end of a pause is outside of it.
func pausedUntil(v *store.JobStatus, schedule string, now time.Time) (after time.Time, by *store.Pause) {
	list := v.SchedulePauses
	if p := holds(v); p != nil {
		list = append(slices.Clone(list), *p)
	}
	after = now
	for i := range list {
		p := &list[i]
		if p.Scope == store.ScopeSchedule && p.Subject != schedule {
			continue
		}
		if p.Until.IsZero() {
			return after, p
		}
		if end := p.Until.Add(-time.Microsecond); end.After(after) {
			after = end
		}
	}
	return after, nil
}

func pausedSubject(p *store.Pause) store.Subject {
	return store.Subject{Scope: p.Scope, Name: p.Subject}
}
