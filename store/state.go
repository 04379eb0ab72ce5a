package store

import (
	"slices"
	"time"
)

// The states of a job.
const (
	JobRunning  = "running"  // a run is being executed
	JobAborted  = "aborted"  // disabled by `job abort`
	JobDisabled = "disabled" // nothing is decided for it
	JobPaused   = "paused"   // by itself, or by its schedules, a tag, its owner, or a freeze
	JobParked   = "parked"   // its definition cannot be used; no decision is made for it until the definition is repaired
	JobResumed  = "resumed"  // its pause was ended, and no run has ended since
	JobSleeping = "sleeping" // waits for its next time, or has a run that may not go yet
	JobFinished = "finished" // it has no time to come
	JobEnabled  = "enabled"  // it runs on request, or no decision was made for it yet
)

// JobFailing is not a state: it says that a run of a job failed or was lost, and none has succeeded since. A filter accepts
// it like a state.
const JobFailing = "failing"

// JobStates are the states that a JobFilter accepts.
var JobStates = []string{JobEnabled, JobSleeping, JobRunning, JobFailing, JobParked, JobPaused, JobResumed, JobDisabled, JobAborted, JobFinished}

// Failing reports whether a run of the job has failed or was lost, and none has succeeded since, and that counts as trouble.
func (v *JobStatus) Failing() bool { return v.Streak > 0 && v.counts() }

// CountsAsParked reports whether the job is parked, whatever state covers that, and counts as trouble.
func (v *JobStatus) CountsAsParked() bool { return v.Parked != "" && v.counts() }

// PausedItself reports whether dbjobs has paused the job because of its runs, and that counts as trouble: also if a run that was under
// way has succeeded since. It is so for the jobs that Store.PausedItself counts.
func (v *JobStatus) PausedItself() bool { return v.itself && v.counts() }

// counts reports whether trouble of the job counts: nobody has disabled it, even while its last run is still under way, and nobody has
// paused it, whatever other pauses hold it. @troubles (store/engine/shared.go) says the same to the statements that count.
func (v *JobStatus) counts() bool { return !v.Disabled && !v.known }

// Rests reports whether the job has no time to come until somebody does something: it is disabled, parked, or paused without an end.
func (v *JobStatus) Rests() bool {
	return v.Disabled || v.Parked != "" || v.Paused != nil && v.Paused.Until.IsZero()
}

// derive finds the state from the facts. If several states fit, the first of the list counts. The view dbjobs.v_jobs
// (store/engine/sql/views) does the same for SQL users; nothing else sets a state.
//
// A time in a freeze is overdue from the end of the freeze on, thaw: before, no pass decides.
func (v *JobStatus) derive(now, thaw time.Time, pauses, left []Pause) {
	v.Hold(pauses)
	v.passSkips(now)
	ends := v.Own != nil || len(v.Schedules) > 0 || v.RepeatAfter > 0
	if v.Stale && !ends { // what gave it the next time of its plan is gone
		v.NextRun = time.Time{}
	}
	if !v.NextRun.IsZero() && v.NextRun.Before(now) {
		if v.due = v.NextRun; thaw.After(v.due) {
			v.due = thaw
		}
		v.Overdue = Duration(now.Sub(v.due).Truncate(time.Millisecond))
	}
	switch {
	case v.RunsRunning > 0:
		v.State = JobRunning
	case v.Unreadable != "":
		if v.State = JobParked; v.Parked == "" {
			v.Parked = "its rows cannot be read: " + v.Unreadable
		}
	case v.Disabled && v.lastAction == "abort":
		v.State = JobAborted
	case v.Disabled:
		v.State = JobDisabled
	case v.Paused != nil:
		v.State = JobPaused
	case v.Parked != "":
		v.State = JobParked
	case v.lastAction == "resume" && v.lastActionAt.After(v.LastFinished):
		v.State = JobResumed
	case v.RunsOpen > 0 || !v.NextRun.IsZero():
		v.State = JobSleeping
	case ends && !v.Stale && !v.DecidedThrough.IsZero() && len(v.After) == 0 && !v.OnStartup:
		v.State = JobFinished
	default:
		v.State = JobEnabled
	}
	v.left = nil
	if at := slices.IndexFunc(left, func(p Pause) bool { return p.Until.Equal(v.NextRun) && v.heldBy(p) }); at >= 0 && !v.NextRun.IsZero() {
		v.left = &left[at]
	}
	if v.Disabled || v.Paused != nil || v.left != nil { // the plan's next time is that of a decision, not of a run
		v.NextRun, v.Overdue = time.Time{}, 0
	}
	if v.Parked != "" { // ticks decide for it, and wait for the repair
		v.Overdue = 0
	}
	if v.Stale = v.Stale && (ends || v.OnStartup) && !v.Disabled; v.Stale {
		v.NextRun = time.Time{}
	}
}

// The states of a schedule.
const (
	ScheduleActive = "active"
	SchedulePaused = "paused"            // by itself, or by a freeze
	ScheduleParked = "parked"            // it cannot be used, and the jobs that use it are parked
	ScheduleUnseen = "not yet looked at" // no pass has seen it since it was made or changed
)

// ScheduleStatus is a shared schedule, with the pause that applies to it.
type ScheduleStatus struct {
	Schedule
	State  string    `json:"state"`
	Paused *Pause    `json:"paused,omitempty"` // the pause that ends last
	Parked string    `json:"parked,omitempty"` // why it cannot be used
	Users  []string  `json:"job_names"`        // owner/name of the first jobs that use it; Jobs is their number
	Next   time.Time `json:"next,omitzero"`    // its next nominal time, set by package tick; none while it is paused
	// Planned has, for each of Users, the rule of the schedule as its plan has it; empty: it has to be planned with the schedule.
	Planned []string `json:"-"`
}

// derive finds the state from the facts. calendar is the calendar that the schedule names, or nil. dbjobs.v_schedules
// (store/engine/sql/views) does the same.
func (c *ScheduleStatus) derive(pauses []Pause, calendar *Calendar) {
	for i := range pauses {
		p := &pauses[i]
		if p.Scope == ScopeAll || p.Scope == ScopeSchedule && p.Subject == c.Name {
			if c.Paused == nil || p.outlasts(c.Paused) {
				c.Paused = p
			}
		}
	}
	switch {
	case c.Calendar != "" && calendar == nil:
		c.Parked = "there is no calendar " + c.Calendar
	case !c.stale:
		c.Parked = c.parked
	}
	switch {
	case c.Paused != nil:
		c.State = SchedulePaused
	case c.Parked != "":
		c.State = ScheduleParked
	case c.stale:
		c.State = ScheduleUnseen
	default:
		c.State = ScheduleActive
	}
}

// Hold sets the pause that holds the job, and the pauses of its schedules. Of several pauses of the whole job, the one that
// ends last holds it. Otherwise, if each of the job's schedules is paused, the pause of a schedule that ends first does.
// One pause of somebody among them makes trouble of the job known.
func (v *JobStatus) Hold(pauses []Pause) {
	v.SchedulePauses, v.known, v.itself = nil, false, false
	c := Snapshot{Plan: Plan{JobID: v.ID}, Job: v.Job}
	var whole, one *Pause
	held := map[string]bool{}
	for i := range pauses {
		p := &pauses[i]
		switch {
		case p.Scope != ScopeSchedule && p.Covers(&c):
			v.known = v.known || p.Scope != ScopeAll && p.By != Itself
			v.itself = v.itself || p.Scope == ScopeJob && p.By == Itself
			if whole == nil || p.outlasts(whole) {
				whole = p
			}
		case p.Scope == ScopeSchedule && slices.Contains(v.Schedules, p.Subject):
			held[p.Subject] = true
			v.SchedulePauses = append(v.SchedulePauses, *p)
			if one == nil || one.outlasts(p) {
				one = p
			}
		}
	}
	v.Paused = whole
	if one != nil && v.Own == nil && len(held) == len(v.Schedules) {
		v.known = true
		if whole == nil {
			v.Paused = one
		}
	}
}

// heldBy reports whether a pause is about the job, or about one of its schedules.
func (v *JobStatus) heldBy(p Pause) bool {
	if p.Scope == ScopeSchedule {
		return slices.Contains(v.Schedules, p.Subject)
	}
	return p.Covers(&Snapshot{Plan: Plan{JobID: v.ID}, Job: v.Job})
}

// OverdueSince is the instant from which Overdue counts.
func (v *JobStatus) OverdueSince() time.Time { return v.due }

// LeftPause returns a pause of the job that somebody has ended, if no pass has seen that, and the plan still has the end of the
// pause in the place of the next run; nil: there is none.
func (v *JobStatus) LeftPause() *Pause { return v.left }

// outlasts reports whether one pause ends after another. A pause without an end lasts for ever.
func (p *Pause) outlasts(other *Pause) bool {
	return !other.Until.IsZero() && (p.Until.IsZero() || p.Until.After(other.Until))
}
