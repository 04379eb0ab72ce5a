package decide_test

import (
	"maps"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/decide/model"
)

func (d *decisions) close(i int, days model.Calendar) {
	c := days.Define(i)
	d.days[c.Name] = &c
}

// rule is a schedule as a decision reads it, with its calendar.
func (d *decisions) rule(id int64, c store.Schedule, linked, changed time.Time) store.Rule {
	r := store.Rule{ScheduleID: id, Linked: true, LinkedAt: linked, NewInput: ruleInput(&c), Schedule: c, ChangedAt: changed, Calendar: d.days[c.Calendar]}
	if r.Calendar != nil {
		r.NewInput += "\x1f" + r.Calendar.Version()
	}
	return r
}

// closed is a change of a calendar. One by a command has changed the schedules that name it.
func (d *decisions) closed(now time.Time, m model.Change) {
	was := d.days[model.CalendarName(m.Calendar)].Version()
	d.close(m.Calendar, m.Closed)
	if name := model.CalendarName(m.Calendar); !m.SQL && d.days[name].Version() != was {
		for i := range d.shared {
			if d.shared[i].Calendar == name {
				d.at[i] = now
			}
		}
		for _, b := range d.cases {
			if b.own.Calendar == name {
				b.ownAt = now
			}
		}
	}
}

// skip does what the commands do with the plan of the job.
func (d *decisions) skip(now time.Time, b *casebook, m model.Change) {
	v := store.JobStatus{Job: b.c.Job, Parked: b.c.Plan.Parked, RunsMade: b.c.Plan.RunsMade, DecidedThrough: b.c.Plan.DecidedThrough}
	d.hold(now, b, &v)
	list := d.definitions(b)
	id := int64(0)
	if m.Shared >= 0 {
		id = int64(m.Shared) + 1
	}
	if _, linked := list[id]; id > 0 && !linked || v.Disabled && m.What == "skip" {
		return
	}
	var come []store.Skip
	for _, k := range b.c.Plan.SkipList() {
		if k.At.After(now) {
			v.Skips = append(v.Skips, k)
		} else {
			come = append(come, k)
		}
	}
	if m.What == "unskip" {
		v.Skips = slices.DeleteFunc(v.Skips, func(k store.Skip) bool { return id == 0 || k.ScheduleID == id })
		b.c.Plan.SetSkips(append(come, v.Skips...))
		return
	}
	n, err := decide.NewNominal(&v.Job, slices.Collect(maps.Values(list)))
	if err != nil {
		return // it does not parse
	}
	more, err := n.Skip(now, &v, id, m.Count)
	if err != nil {
		d.t.Fatal(err)
	}
	b.c.Plan.SetSkips(append(come, append(v.Skips, more...)...))
}

// hold sets the pauses that a list of jobs shows.
func (d *decisions) hold(now time.Time, b *casebook, v *store.JobStatus) {
	var whole, one *store.Pause
	held := map[int64]bool{}
	outlasts := func(p, other *store.Pause) bool {
		return !other.Until.IsZero() && (p.Until.IsZero() || p.Until.After(other.Until))
	}
	for i := range d.pauses {
		switch p := &d.pauses[i]; {
		case !p.Holds(now) || !b.covered(p):
		case p.Scope == "schedule":
			v.SchedulePauses = append(v.SchedulePauses, *p)
			if held[p.SubjectID] = true; one == nil || outlasts(one, p) {
				one = p
			}
		case whole == nil || outlasts(p, whole):
			whole = p
		}
	}
	if v.Paused = whole; whole == nil && b.job.Own == nil && len(held) == len(b.links) {
		v.Paused = one
	}
}
