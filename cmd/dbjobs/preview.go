package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// preview has jobs and schedules as they are now, and as they will be.
type preview struct {
	now       time.Time
	jobs      map[string]*store.JobStatus   // as they are, by full name
	users     map[string][]*store.JobStatus // of shared schedules
	observers map[string][]*store.JobStatus // of calendars
	rules     map[int64][]store.Rule        // as they are
	to        map[string]store.Job          // in the file, by name
	schedules map[string]store.Schedule     // as they are to be
	calendars map[string]*store.Calendar    // as they are to be
	pauses    store.Held                    // in force
	old       map[string]*store.Calendar    // as they are: those whose days change; only by beforeDays
}

func newPreview(ctx context.Context, s *store.Store, m *manifest.Manifest) (*preview, error) {
	p := &preview{jobs: map[string]*store.JobStatus{}, users: map[string][]*store.JobStatus{}, observers: map[string][]*store.JobStatus{},
		to: map[string]store.Job{}, schedules: map[string]store.Schedule{}}
	list, err := s.Jobs(ctx, store.JobFilter{})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(list))
	for i := range list {
		v := &list[i]
		ids[i], p.jobs[v.FullName()] = v.ID, v
		for _, name := range v.Schedules {
			p.users[name] = append(p.users[name], v)
		}
	}
	if p.rules, _, err = s.RulesOfJobs(ctx, ids); err != nil {
		return nil, err
	}
	for i := range list {
		for _, r := range p.rules[list[i].ID] {
			if name := r.Schedule.Calendar; name != "" {
				p.observers[name] = append(p.observers[name], &list[i])
			}
		}
	}
	if p.now, err = s.Now(ctx); err != nil {
		return nil, err
	}
	for _, j := range m.Jobs {
		p.to[j.Name] = j
	}
	there, err := s.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	for _, sc := range there {
		p.schedules[sc.Name] = sc
	}
	for _, sc := range m.Schedules {
		if sc.CreatedAt.IsZero() { // see readWorld
			sc.CreatedAt = p.now
		}
		sc.ID = p.schedules[sc.Name].ID
		p.schedules[sc.Name] = sc
	}
	if p.pauses, err = s.HeldPauses(ctx, ids); err != nil {
		return nil, err
	}
	p.calendars, err = s.KnownCalendars(ctx, p.definitions(m.Calendars))
	return p, err
}

// newJobPreview makes the preview of one job, as it is now and as it will be.
func newJobPreview(ctx context.Context, s *store.Store, is *store.JobStatus, to *store.Job) (*preview, error) {
	p := &preview{jobs: map[string]*store.JobStatus{is.FullName(): is}, to: map[string]store.Job{to.Name: *to}}
	list, faults, err := s.RulesOfJobs(ctx, []int64{is.ID})
	if err != nil {
		return nil, err
	}
	if faults[is.ID] == "" {
		p.rules = list
	}
	if p.now, err = s.Now(ctx); err != nil {
		return nil, err
	}
	if p.schedules, err = s.KnownSchedules(ctx, slices.Concat(is.Schedules, to.Schedules)); err != nil {
		return nil, err
	}
	if p.pauses, err = s.HeldPauses(ctx, []int64{is.ID}); err != nil {
		return nil, err
	}
	p.calendars, err = s.KnownCalendars(ctx, p.definitions(nil))
	return p, err
}

// definitions returns the schedules and the jobs of the preview, which may name calendars, together with these
// calendars.
func (p *preview) definitions(calendars []store.Calendar) store.Definitions {
	d := store.Definitions{Calendars: calendars, Schedules: slices.Collect(maps.Values(p.schedules)), Jobs: slices.Collect(maps.Values(p.to))}
	for _, v := range p.jobs {
		d.Jobs = append(d.Jobs, v.Job)
	}
	return d
}

// rename lets a renamed definition be found by its new name, too.
func (p *preview) rename(ch store.Change) {
	for _, f := range ch.Fields {
		if f.Field != "name" {
			continue
		}
		if ch.Kind == "schedule" {
			was, is := p.schedules[f.Before], p.schedules[ch.Subject]
			is.ID, was.ID = was.ID, 0 // another schedule may have the old name now
			p.schedules[f.Before], p.schedules[ch.Subject] = was, is
			renamePauses(p.pauses.Wide(), f.Before, ch.Subject)
			p.users[ch.Subject] = p.users[f.Before]
			for _, v := range p.users[ch.Subject] {
				v.Schedules = slices.Clone(v.Schedules)
				for i, name := range v.Schedules {
					if name == f.Before {
						v.Schedules[i] = ch.Subject
					}
				}
				for i := range p.rules[v.ID] {
					if is := &p.rules[v.ID][i]; is.Schedule.Name == f.Before && is.Text != "" { // else ~ has other values by the new name
						is.Schedule.Name = ch.Subject
					}
				}
			}
			continue
		}
		owner := strings.TrimSuffix(ch.Subject, ch.PlainSubject())
		if is := p.jobs[owner+f.Before]; is != nil {
			p.jobs[ch.Subject] = is
		}
	}
}

// times returns the times of a job as it is now, and as it will be. If the file has a job with the name inFile,
// the job will be as it is there.
func (p *preview) times(full, inFile string) report.Times {
	t := report.Times{Job: full, Before: []time.Time{}, After: []time.Time{}}
	will := store.JobStatus{}
	was := &store.Job{}
	if is := p.jobs[full]; is != nil {
		was, will = &is.Job, *is
		t.Before = append(t.Before, p.next(*is, p.rules[is.ID], was)...)
	}
	if j, ok := p.to[inFile]; ok {
		j.ID, j.CreatedAt = will.ID, will.CreatedAt
		if j.Owner = will.Owner; j.CreatedAt.IsZero() {
			j.CreatedAt, j.Owner = p.now, strings.TrimSuffix(strings.TrimSuffix(full, inFile), "/")
		}
		decide.KeepStart(&j, &will.Job, p.now)
		will.Job, will.Parked = j, ""
	}
	if will.Own != nil {
		own := *will.Own
		own.CreatedAt = p.now
		for _, r := range p.rules[will.ID] {
			if r.Schedule.Name == "" { // the job has a rule of its own already: a new text, or other days, count from when that was made
				own.CreatedAt = r.Schedule.CreatedAt
			}
		}
		will.Own = &own
	}
	will.Hold(p.pauses.OfJob(will.ID))
	t.After = append(t.After, p.next(will, p.rulesOf(&will.Job, p.rules[will.ID]), was)...)
	return t
}

// rulesOf returns the rules of a job as it will be. Rules that do not change are taken from the plan. The others have the ids of
// their schedules, by which pauses know them.
func (p *preview) rulesOf(j *store.Job, planned []store.Rule) (list []store.Rule) {
	add := func(name string, s store.Schedule) {
		for _, r := range planned {
			if is := r.Schedule; is.Name == name && is.Rule == s.Rule && is.Zone == s.Zone && is.Nonexistent == s.Nonexistent && is.Ambiguous == s.Ambiguous && p.sameHolidays(&r, &s) {
				list = append(list, r)
				return
			}
		}
		list = append(list, store.Rule{ScheduleID: s.ID, Linked: true, Schedule: s, Calendar: p.calendars[s.Calendar]})
	}
	if j.Own != nil {
		add("", *j.Own)
	}
	for _, name := range j.Schedules {
		add(name, p.schedules[name])
	}
	return list
}

// sameHolidays reports whether a schedule uses the calendar that it was planned with. Without a calendar, on_holiday says
// nothing, and rules of the plan have one all the same.
func (p *preview) sameHolidays(r *store.Rule, s *store.Schedule) bool {
	will := p.calendars[s.Calendar]
	if r.Schedule.Calendar != s.Calendar || s.Calendar != "" && r.Schedule.OnHoliday != s.OnHoliday || (r.Calendar == nil) != (will == nil) {
		return false
	}
	return will == nil || r.Calendar.Version() == will.Version()
}

// next returns the next times of a job. was is the job in the database.
func (p *preview) next(v store.JobStatus, list []store.Rule, was *store.Job) []time.Time {
	const shown = 3
	if v.RepeatAfter > 0 {
		v.NextRun = decide.NextRepeat(&v, was, p.now)
	}
	n, err := decide.NewNominal(&v.Job, list)
	if err != nil {
		return nil
	}
	return n.Forecast(p.now, &v, shown).Next
}
