package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

const instant = time.Microsecond // the smallest step of time that is stored

// Shared has what definitions use but do not define.
type Shared struct {
	Schedules map[string]store.Schedule
	Calendars map[string]*store.Calendar // also those of Schedules
	Groups    []store.Group
}

// Of makes an input from definitions that are not in a database, as if they were created just before an instant.
func Of(d store.Definitions, shared Shared, at time.Time) (Input, error) {
	in := Input{Groups: withGroups(d.Groups, shared.Groups)}
	at = at.Add(-instant)
	schedules := map[string]store.Schedule{}
	maps.Copy(schedules, shared.Schedules)
	for _, s := range d.Schedules {
		s.CreatedAt = at
		schedules[s.Name] = s
	}
	calendars := shared.calendarsWith(d)
	ids := map[string]int64{}
	for i := range d.Jobs {
		j := Job{Job: d.Jobs[i], AsPlanned: d.Jobs[i].Disabled}
		j.ID, j.CreatedAt = int64(i)+1, at
		j.Normalize()
		add := func(id int64, s store.Schedule) {
			if s.CreatedAt.IsZero() {
				s.CreatedAt = at
			}
			s.ID = id
			j.Rules = append(j.Rules, store.Rule{ScheduleID: id, Linked: true, LinkedAt: at, NewInput: newInput, Schedule: s, ChangedAt: at, Calendar: calendars[s.Calendar]})
		}
		for _, name := range j.Schedules {
			s, ok := schedules[name]
			if !ok {
				return in, fmt.Errorf("job %s: schedule: there is no schedule %q", j.FullName(), name)
			}
			if ids[name] == 0 {
				ids[name] = int64(len(ids)) + 1
			}
			add(ids[name], s)
		}
		if j.Own != nil {
			add(int64(len(d.Schedules)+len(shared.Schedules)+1)+j.ID, *j.Own)
		}
		slices.SortFunc(j.Rules, func(x, y store.Rule) int { return cmp.Compare(x.ScheduleID, y.ScheduleID) })
		in.Jobs = append(in.Jobs, j)
	}
	return in, nil
}

// calendarsWith returns the calendars by name, with those of definitions.
func (s Shared) calendarsWith(d store.Definitions) map[string]*store.Calendar {
	calendars := map[string]*store.Calendar{}
	maps.Copy(calendars, s.Calendars)
	for i := range d.Calendars {
		calendars[d.Calendars[i].Name] = &d.Calendars[i]
	}
	return calendars
}

// Refused returns the rules of definitions, as Of makes them, that apply would refuse because they have no time: each is
// a *store.FieldError, and they are joined.
func Refused(d store.Definitions, shared Shared, at time.Time) error {
	var refused []error
	calendars := shared.calendarsWith(d)
	examine := func(subject string, j store.Job, s store.Schedule) {
		if s.CreatedAt = (time.Time{}); !s.Past && s.Calendar == "" {
			return
		}
		if _, err := decide.First(j, s, calendars[s.Calendar], at.Add(-instant)); err != nil {
			refused = append(refused, &store.FieldError{Subject: subject, Field: "rule", Problem: err.Error()})
		}
	}
	for i := range d.Schedules {
		examine("schedule "+d.Schedules[i].Name, store.Job{}, d.Schedules[i])
	}
	for i := range d.Jobs {
		if j := &d.Jobs[i]; j.Own != nil {
			examine("job "+j.FullName(), *j, *j.Own)
		}
	}
	return errors.Join(refused...)
}

// mostPauses bounds the pauses that are read.
const mostPauses = 100_000

// Read makes the input from a database. It only reads. now is the clock of the database. If from is now,
// the open runs continue, and times that are due are decided. Otherwise everything before from counts as
// decided, and no run is open.
func Read(ctx context.Context, s *store.Store, from, now time.Time) (Input, []string, error) {
	var in Input
	var left []string
	jobs, err := s.Jobs(ctx, store.JobFilter{})
	if err != nil {
		return in, nil, err
	}
	ids := store.IDs(jobs)
	list, faults, err := s.RulesToDecide(ctx, ids)
	if err != nil {
		return in, nil, err
	}
	planned, err := s.PlannedJobs(ctx, ids)
	if err != nil {
		return in, nil, err
	}
	lost, err := afterLost(ctx, s, jobs)
	if err != nil {
		return in, nil, err
	}
	if in.Groups, err = s.Groups(ctx); err != nil {
		return in, nil, err
	}
	pauses, err := s.Pauses(ctx, true, mostPauses)
	if err != nil {
		return in, nil, err
	}
	var open map[int64][]store.Run
	var ends map[int64][]store.WaitingEnd
	if from.Equal(now) {
		if ends, err = s.WaitingEnds(ctx); err != nil {
			return in, nil, err
		}
		if open, err = s.UnsettledRuns(ctx, ids); err != nil {
			return in, nil, err
		}
	}
	for i := range jobs {
		v := &jobs[i]
		if v.Unreadable != "" || faults[v.ID] != "" {
			left = append(left, v.FullName())
			continue
		}
		j := Job{Job: v.Job, Rules: list[v.ID], AfterLost: lost[v.ID], Open: open[v.ID], Ends: ends[v.ID], Plan: store.Plan{JobID: v.ID, NextRun: v.NextRun, DecidedThrough: v.DecidedThrough, Parked: v.Parked,
			LastScheduledFor: v.LastScheduled, LastState: v.LastState, LastFinishedAt: v.LastFinished, LastSuccessAt: v.LastSuccess, LastError: v.LastError,
			Streak: v.Streak, Cycles: v.Cycles, RunsMade: v.RunsMade}}
		if j.Tried, err = tried(ctx, s, j.Open); err != nil {
			return in, nil, err
		}
		j.Plan.SetSkips(v.OpenSkips)
		for _, k := range v.OpenSkips { // the plan wakes at a time that is skipped, too: it becomes a gap then
			if j.Plan.NextRun.IsZero() || k.At.Before(j.Plan.NextRun) {
				j.Plan.NextRun = k.At
			}
		}
		edited := slices.ContainsFunc(j.Rules, func(r store.Rule) bool { return r.Changed() || !r.Linked })
		if p, changed := planned[v.ID]; changed {
			j.Stale, j.Planned, j.ChangedAt = true, p.PlannedPolicies, p.ChangedAt
		}
		held := in.pause(pauses, &j)
		j.AsPlanned = !v.Stale && !j.Stale && !edited && !held && v.Parked == "" && !v.DecidedThrough.IsZero()
		if v.RepeatAfter > 0 {
			j.Plan.RepeatFrom = repeatsFrom(v, j.Open)
		}
		if !from.Equal(now) {
			j.beginAt(from, now, v)
		}
		in.Jobs = append(in.Jobs, j)
	}
	for i := range pauses { // a job that a file adds may be among those that are paused
		p := &pauses[i]
		if p.Scope != store.ScopeJob && p.Holds(now) && !slices.ContainsFunc(in.Pauses, func(o store.Pause) bool { return o.ID == p.ID }) {
			in.Pauses = append(in.Pauses, *p)
		}
	}
	slices.SortFunc(in.Pauses, func(x, y store.Pause) int { return cmp.Compare(x.ID, y.ID) })
	return in, left, nil
}

// afterLost returns which of the jobs run after a job whose row was deleted. What remove_when_done has removed has a row.
func afterLost(ctx context.Context, s *store.Store, jobs []store.JobStatus) (map[int64]bool, error) {
	here := make(map[string]bool, len(jobs))
	for i := range jobs {
		here[jobs[i].FullName()] = true
	}
	var names []store.Reference
	of := map[store.Reference][]int64{}
	for i := range jobs {
		v := &jobs[i]
		for _, a := range v.After {
			r, full := store.Reference{Kind: store.KindJob, Name: a.Job, Owner: v.Owner, Done: true}, a.Job
			if !strings.Contains(full, "/") { // a job of the same owner
				full = store.FullName(v.Owner, full)
			}
			if !here[full] {
				names, of[r] = append(names, r), append(of[r], v.ID)
			}
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	known, err := s.Known(ctx, names)
	if err != nil {
		return nil, err
	}
	lost := map[int64]bool{}
	for r, ids := range of {
		for _, id := range ids {
			lost[id] = lost[id] || known.Missing(r) != ""
		}
	}
	return lost, nil
}

// pause adds the pauses of which the next decision for a job has to know: those in force, and those that have ended since its
// last decision. It reports whether there are any.
func (in *Input) pause(pauses []store.Pause, j *Job) (held bool) {
	c := store.Snapshot{Plan: j.Plan, Job: j.Job, Planned: j.Planned, Rules: j.Rules}
	for i := range pauses {
		p := &pauses[i]
		if !p.Ends(forever).After(j.Plan.DecidedThrough) || !p.Covers(&c) {
			continue
		}
		if held = true; !slices.ContainsFunc(in.Pauses, func(o store.Pause) bool { return o.ID == p.ID }) {
			in.Pauses = append(in.Pauses, *p)
		}
	}
	return held
}

// tried reads when the attempts under way began, for runs whose step has been tried before.
func tried(ctx context.Context, s *store.Store, open []store.Run) (map[string]time.Time, error) {
	began := map[string]time.Time{}
	for i := range open {
		if r := &open[i]; r.State != store.Running || r.Attempt < 2 {
			continue
		}
		d, err := s.RunWithTries(ctx, open[i].ID, 1)
		if errors.Is(err, store.ErrNotFound) { // removed since
			continue
		} else if err != nil {
			return nil, err
		}
		for k := range d.Tries {
			began[d.ID] = d.Tries[k].StartedAt
		}
	}
	return began, nil
}

// repeatsFrom is the instant from which repeat_after counts, as in the plan. It is the nominal time of the
// run that no decision has counted yet, or the instant from which the next time was computed.
func repeatsFrom(v *store.JobStatus, open []store.Run) time.Time {
	for i := range open {
		if r := &open[i]; !r.Requested() {
			return r.ScheduledFor
		}
	}
	if !v.NextRun.IsZero() {
		return v.NextRun.Add(-time.Duration(v.RepeatAfter))
	}
	return v.LastFinished
}

// beginAt makes everything before an instant count as decided, also the edits that no pass has seen. The times from now to
// that instant count for max_runs.
func (j *Job) beginAt(t, now time.Time, v *store.JobStatus) {
	t = t.Add(-instant)
	if j.CreatedAt.After(t) {
		j.CreatedAt = t
	}
	j.AsPlanned, j.Stale, j.Planned, j.ChangedAt = j.Disabled, false, store.PlannedPolicies{}, t
	if j.Plan.NextRun = (time.Time{}); !j.Plan.DecidedThrough.IsZero() {
		j.Plan.DecidedThrough = t.Add(-instant) // an edit just before the beginning comes after it
	}
	if j.Plan.LastScheduledFor.After(t) {
		j.Plan.LastScheduledFor = time.Time{}
	}
	j.Rules = slices.DeleteFunc(j.Rules, func(r store.Rule) bool { return !r.Linked && !r.Lost })
	if n, err := decide.NewNominal(&v.Job, j.Rules); err == nil && v.MaxRuns > 0 { // else the simulation parks the job
		if made, err := n.Made(now, t, v); err == nil {
			j.Plan.RunsMade = made
		}
	}
	for i := range j.Rules {
		r := &j.Rules[i]
		if r.LinkedAt, r.ChangedAt = t, t; r.Changed() && !decide.Replan(r, &j.Job) {
			r.Input, r.Text, r.Ends = "", "", "" // the old rule owes no time
		}
	}
}

// Recent is the number of last runs of a job from which the duration of the next runs is estimated.
const Recent = 30

// SetTook sets the duration of the runs of each job, so that the given share of its recent runs, such as 0.5, took no
// longer. If a job has no recent runs, its runs take as long as assumed.
func (in *Input) SetTook(recent map[int64][]time.Duration, share float64, assumed time.Duration) {
	for i := range in.Jobs {
		j := &in.Jobs[i]
		list := slices.Sorted(slices.Values(recent[j.ID]))
		if j.Took = (Took{Length: store.Duration(assumed)}); len(list) > 0 {
			at := min(len(list)-1, int(share*float64(len(list))))
			j.Took = Took{store.Duration(list[at].Round(time.Millisecond)), len(list)}
		}
	}
}
