package store

import (
	"time"
)

// The states of a run. A run is active until it is in one of the last four.
const (
	Waiting   = "waiting"   // for its time, an earlier run, its group, or the end of a pause
	Queued    = "queued"    // may be taken now
	Running   = "running"   // delivered under a lease
	Succeeded = "succeeded" // final, like those below
	Failed    = "failed"
	Cancelled = "cancelled"
	Lost      = "lost" // delivered as often as allowed, and no holder has ended it
)

// RunStates are the states of a run, in the order in which a run may have them.
var RunStates = []string{Waiting, Queued, Running, Succeeded, Failed, Cancelled, Lost}

// Run is the ledger row of an occurrence that is to be executed. The JSON has the same struct.
type Run struct {
	ID            string    `json:"id"`
	Owner         string    `json:"owner"`
	Job           string    `json:"job"`
	JobID         int64     `json:"job_id"`
	Number        int64     `json:"number,omitempty"`
	Occurrence    string    `json:"occurrence"`
	State         string    `json:"state"`
	HeldBy        string    `json:"held_by,omitempty"`
	Queue         string    `json:"queue"`
	Priority      int       `json:"priority"`
	ScheduledFor  time.Time `json:"scheduled_for,omitzero"`
	IntervalStart time.Time `json:"interval_start,omitzero"`
	IntervalEnd   time.Time `json:"interval_end,omitzero"`
	Args          string    `json:"args,omitempty"` // a JSON object
	ReadyAt       time.Time `json:"ready_at,omitzero"`
	Step          int       `json:"step"`
	Attempt       int       `json:"attempt"`
	Attempts      int       `json:"attempts"`
	Fence         int       `json:"fence"`
	Losses        int       `json:"losses"`
	LeaseUntil    time.Time `json:"lease_until,omitzero"`
	Holder        string    `json:"holder,omitempty"`
	CancelAt      time.Time `json:"cancel_at,omitzero"` // when a cancellation was requested
	CancelBy      string    `json:"cancel_by,omitempty"`
	CreatedAt     time.Time `json:"created_at,omitzero"`
	StartedAt     time.Time `json:"started_at,omitzero"`
	FinishedAt    time.Time `json:"finished_at,omitzero"`
	SettledAt     time.Time `json:"settled_at,omitzero"`
	Error         string    `json:"error,omitempty"`

	// RecordedAt is set if the lease has ended, and the last attempt has succeeded and recorded its success. Then its
	// effects are committed, and only the end of the run is missing. See Store.EndStepIn.
	RecordedAt time.Time `json:"-"`
	// HolderAlive is set where the lease has ended but the holder still lives: on SQLite, it holds
	// the lock of a file.
	HolderAlive bool `json:"-"`
	// Fault names the values of the row that cannot be read.
	Fault string `json:"unreadable,omitempty"`

	removed bool // its job was removed: see Label
}

// Begun reports whether the run was delivered since it was made, or since a retry opened it again. A run that has
// begun keeps its place, even while it waits for its next attempt.
func (r *Run) Begun() bool { return !r.StartedAt.IsZero() }

// UnderWay reports whether the run counts against the limits of its job and of its group.
func (r *Run) UnderWay() bool {
	return r.State == Queued || r.State == Running || r.State == Waiting && r.Begun()
}

// Attempt is one try of a step.
type Attempt struct {
	RunID      string    `json:"run_id"`
	Number     int       `json:"number"` // within the run
	Step       int       `json:"step"`
	StepName   string    `json:"step_name"`
	Attempt    int       `json:"attempt"` // of that step
	Fence      int       `json:"fence"`
	Holder     string    `json:"holder"`
	State      string    `json:"state"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	Rows       *int64    `json:"rows_affected,omitempty"`
	Error      string    `json:"error,omitempty"`
	Code       string    `json:"error_code,omitempty"`
	Line       int       `json:"error_line,omitempty"`
	Severity   string    `json:"error_severity,omitempty"`
	Detail     string    `json:"error_detail,omitempty"`
	Hint       string    `json:"error_hint,omitempty"`
	Output     string    `json:"output,omitempty"`     // what the step printed or answered
	Fault      string    `json:"unreadable,omitempty"` // the values of the row that cannot be read
}

// The reasons of gaps.
const (
	Missed    = "missed"
	Overlap   = "overlap"
	Paused    = "paused"
	Disabled  = "disabled"
	Edited    = "edited"
	OverLimit = "over-limit"
	Skipped   = "skipped" // somebody decided to skip the time before it came
)

// Gap stands for those nominal times of its rule in (From, Through] that have no run.
type Gap struct {
	JobID      int64     `json:"job_id"`
	ScheduleID int64     `json:"schedule_id"`
	From       time.Time `json:"from"`
	Through    time.Time `json:"through"`
	Reason     string    `json:"reason"`
	Rule       string    `json:"rule"` // RFC 5545 text, as it was then
	RecordedAt time.Time `json:"recorded_at,omitzero"`
	Fault      string    `json:"unreadable,omitempty"` // the values of the row that cannot be read
}

// JobStatus is a job with the facts of its plan: one row of job list, and the JSON of job show.
type JobStatus struct {
	Job
	Unreadable     string    `json:"unreadable,omitempty"` // the values of its rows that cannot be read
	State          string    `json:"state"`                // one of JobRunning and the others
	Paused         *Pause    `json:"paused,omitempty"`
	Parked         string    `json:"parked,omitempty"`  // why the job is parked
	NextRun        time.Time `json:"next_run,omitzero"` // by the current definition; zero while the job is paused or disabled
	Stale          bool      `json:"stale,omitempty"`   // the definition is newer than the plan
	Overdue        Duration  `json:"overdue,omitempty"` // how long ago NextRun was, if the trigger is late
	LastState      string    `json:"last_state,omitempty"`
	LastScheduled  time.Time `json:"last_scheduled_for,omitzero"`
	LastFinished   time.Time `json:"last_finished_at,omitzero"`
	LastSuccess    time.Time `json:"last_success_at,omitzero"`
	LastError      string    `json:"last_error,omitempty"`
	Streak         int       `json:"streak"`
	Cycles         int64     `json:"cycles"` // how often a run has ended: one that is retried ends again
	RunsMade       int64     `json:"runs_made"`
	RunsOpen       int       `json:"runs_open"`
	RunsRunning    int       `json:"runs_running"`
	DecidedThrough time.Time `json:"decided_through,omitzero"`
	Skips          []Skip    `json:"skips,omitempty"` // future nominal times that are not to run

	SchedulePauses []Pause `json:"-"` // the pauses of its schedules, each by itself
	OpenSkips      []Skip  `json:"-"` // Skips, and those of times that have come and are not decided yet

	RepeatFrom  time.Time `json:"-"` // repeat_after counts from here: see Plan
	LastNominal time.Time `json:"-"` // of the run that ended last; zero for a request
	LastStarted time.Time `json:"-"` // when that run was delivered for the first time

	lastAction   string // of the change log
	lastActionAt time.Time
	due          time.Time // from which Overdue counts
	left         *Pause    // see LeftPause
	known        bool      // somebody has paused the job, beside a freeze: its trouble is known
	itself       bool      // dbjobs has paused the job because of its runs
}

// Pause is an interval in which no run of its subject is made or taken.
type Pause struct {
	ID        int64     `json:"id"`
	Scope     string    `json:"scope"`
	SubjectID int64     `json:"subject_id,omitempty"`
	Subject   string    `json:"subject,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	By        string    `json:"paused_by"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until,omitzero"`
	UntilAs   string    `json:"-"` // how Until was given: as UntilLength, UntilDay, or else as an instant
	ResumedAt time.Time `json:"resumed_at,omitzero"`
	ResumedBy string    `json:"resumed_by,omitempty"`
	Missed    bool      `json:"missed,omitempty"`     // resumed so that the missed times run
	Fault     string    `json:"unreadable,omitempty"` // the values of the row that cannot be read
}

// Ends is the instant at which the pause ends or ended. It is forever for a pause that lasts until
// somebody resumes it.
func (p *Pause) Ends(forever time.Time) time.Time {
	switch {
	case p.ResumedAt.IsZero() && p.Until.IsZero():
		return forever
	case p.ResumedAt.IsZero() || !p.Until.IsZero() && p.Until.Before(p.ResumedAt):
		return p.Until
	}
	return p.ResumedAt
}

// Holds reports whether the pause is in force at t. It is also in force before it began: a pass
// that read the time and was then delayed must not queue a run that was paused meanwhile.
func (p *Pause) Holds(t time.Time) bool {
	return (p.ResumedAt.IsZero() || p.ResumedAt.After(t)) && (p.Until.IsZero() || p.Until.After(t))
}
