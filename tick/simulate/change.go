package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// With returns the input after definitions have been applied just before an instant: definitions of the
// same name are replaced, the others stay. owner is the owner of the jobs that name no owner. As after apply, a job whose
// definition is the same goes on as before, and what was due before the instant is still to be decided.
func (in Input) With(d store.Definitions, shared Shared, owner string, at time.Time) (Input, error) {
	for i := range d.Jobs {
		d.Jobs[i].Owner = cmp.Or(d.Jobs[i].Owner, owner)
	}
	added, err := Of(d, shared, at)
	if err != nil {
		return in, err
	}
	at = at.Add(-instant)
	became := Input{Groups: withGroups(d.Groups, in.Groups), Pauses: in.Pauses}
	k := in.known()
	for i := range d.Schedules {
		k.made[d.Schedules[i].Name] = d.Schedules[i].CreatedAt
	}
	redefined := map[string]bool{}
	for i := range added.Jobs {
		j := &added.Jobs[i]
		redefined[j.FullName()] = true
		k.replace(j, at)
		became.Jobs = append(became.Jobs, *j)
	}
	for i := range in.Jobs {
		if j := in.Jobs[i]; !redefined[j.FullName()] {
			j.follow(d, shared, at)
			became.Jobs = append(became.Jobs, j)
		}
	}
	for i := range became.Jobs {
		j := &became.Jobs[i]
		if was, is := in.capOf(j.Group), became.capOf(j.Group); j.Group != "" && was != is {
			j.wake(is < was)
		}
	}
	slices.SortFunc(became.Jobs, func(x, y Job) int { return cmp.Compare(x.ID, y.ID) })
	return became, nil
}

// withGroups returns groups, and those others that have other names.
func withGroups(groups, others []store.Group) []store.Group {
	all := slices.Clone(groups)
	for _, g := range others {
		if !slices.ContainsFunc(groups, func(o store.Group) bool { return o.Name == g.Name }) {
			all = append(all, g)
		}
	}
	return all
}

// capOf returns how many runs a group may have at a time; 0: there is no such group.
func (in Input) capOf(group string) int {
	i := slices.IndexFunc(in.Groups, func(g store.Group) bool { return g.Name == group })
	if i < 0 {
		return 0
	}
	return in.Groups[i].MaxRunning
}

// wake lets the next pass look at the runs that wait for their group, or, if its cap is lowered, at those that nobody has taken.
func (j *Job) wake(lowered bool) {
	j.Open = slices.Clone(j.Open)
	for i := range j.Open {
		switch r := &j.Open[i]; {
		case lowered && r.State == store.Queued && !r.Begun():
			r.State = store.Waiting
		case !lowered && r.State == store.Waiting && r.HeldBy == store.HeldByGroup:
			r.HeldBy = ""
		}
	}
}

// known has what an input has, by names.
type known struct {
	last      int64 // the greatest id of a job or a schedule
	jobs      map[string]*Job
	schedules map[string]store.Rule
	made      map[string]time.Time // the schedules of a file that the database has already, also those that no job uses
	paused    map[string]int64     // the ids of schedules with a pause
}

func (in Input) known() *known {
	k := &known{jobs: map[string]*Job{}, schedules: map[string]store.Rule{}, made: map[string]time.Time{}, paused: map[string]int64{}}
	for i := range in.Jobs {
		j := &in.Jobs[i]
		k.jobs[j.FullName()], k.last = j, max(k.last, j.ID)
		for _, r := range j.Rules {
			k.last = max(k.last, r.ScheduleID)
			if r.Schedule.Name != "" {
				k.schedules[r.Schedule.Name] = r
			}
		}
	}
	for i := range in.Pauses {
		if p := &in.Pauses[i]; p.Scope == store.ScopeSchedule {
			k.paused[p.Subject], k.last = p.SubjectID, max(k.last, p.SubjectID)
		}
	}
	return k
}

// replace gives a job the state of the job that it replaces, if there is one.
func (k *known) replace(j *Job, at time.Time) {
	was := k.jobs[j.FullName()]
	if k.last++; was == nil {
		j.ID = k.last
	} else {
		next := *was
		next.Job, next.Rules, next.AfterLost = j.Job, j.Rules, false // apply refuses a job that runs after one that is not there
		next.ID, next.CreatedAt = was.ID, was.CreatedAt
		*j = next
		j.changedFrom(was, at)
	}
	for i := range j.Rules {
		r := &j.Rules[i]
		var old *store.Rule
		if was != nil {
			old = was.ruleOf(r.Schedule.Name)
		}
		switch shared, ok := k.schedules[r.Schedule.Name]; {
		case old != nil:
			*r = with(*old, r.Schedule, r.Calendar, at)
			j.AsPlanned = j.AsPlanned && r.NewInput == old.NewInput
			continue
		case ok && r.Schedule.Name != "":
			r.ScheduleID, r.Schedule.CreatedAt = shared.ScheduleID, shared.Schedule.CreatedAt
		default:
			r.ScheduleID += k.last
			if id := k.paused[r.Schedule.Name]; id != 0 && r.Schedule.Name != "" { // its pause names it by its id
				r.ScheduleID = id
			}
			if t := k.made[r.Schedule.Name]; !t.IsZero() {
				r.Schedule.CreatedAt = t
			}
		}
		j.AsPlanned = false
	}
	slices.SortFunc(j.Rules, func(x, y store.Rule) int { return cmp.Compare(x.ScheduleID, y.ScheduleID) })
	if was != nil && len(j.Rules) < len(was.Rules) {
		j.AsPlanned = false
	}
}

// changedFrom compares the job with what it was.
func (j *Job) changedFrom(was *Job, at time.Time) {
	decide.KeepStart(&j.Job, &was.Job, at)
	if j.Alike(&was.Job) {
		return
	}
	if !was.Stale {
		j.Planned = was.PlannedAs()
	}
	j.Stale, j.AsPlanned, j.ChangedAt = true, false, at
}

// ruleOf returns the rule of a shared schedule, or of the job's own one, whose name is empty.
func (j *Job) ruleOf(schedule string) *store.Rule {
	i := slices.IndexFunc(j.Rules, func(r store.Rule) bool { return r.Linked && r.Schedule.Name == schedule })
	if i < 0 {
		return nil
	}
	return &j.Rules[i]
}

// newInput is the input of a rule that has changed.
const newInput = "new"

// with returns the rule after its schedule and calendar have become others.
func with(r store.Rule, s store.Schedule, days *store.Calendar, at time.Time) store.Rule {
	was, before := r.Schedule, r.Calendar
	was.Normalize()
	s.Normalize()
	s.ID, s.CreatedAt = was.ID, was.CreatedAt
	r.Schedule, r.Calendar = s, days
	same := s.Rule == was.Rule && s.Zone == was.Zone && s.Nonexistent == was.Nonexistent && s.Ambiguous == was.Ambiguous && s.Calendar == was.Calendar &&
		(s.Calendar == "" || s.OnHoliday == was.OnHoliday)
	if alike := before == nil && days == nil || before != nil && days != nil && before.Version() == days.Version(); !same || !alike {
		r.NewInput, r.ChangedAt = newInput, at
	}
	return r
}

// follow applies the changes of the job's schedules and calendars to the job.
func (j *Job) follow(d store.Definitions, shared Shared, at time.Time) {
	j.Rules = slices.Clone(j.Rules)
	for i := range j.Rules {
		r := &j.Rules[i]
		s, days := r.Schedule, r.Calendar
		if k := slices.IndexFunc(d.Schedules, func(x store.Schedule) bool { return x.Name != "" && x.Name == s.Name }); k >= 0 {
			if s = d.Schedules[k]; s.Calendar != r.Schedule.Calendar {
				days = shared.Calendars[s.Calendar]
			}
		}
		if k := slices.IndexFunc(d.Calendars, func(c store.Calendar) bool { return c.Name == s.Calendar }); k >= 0 {
			days = &d.Calendars[k]
		}
		became := with(*r, s, days, at)
		j.AsPlanned = j.AsPlanned && became.NewInput == r.NewInput
		*r = became
	}
}
