package tick

import (
	"cmp"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Report is what one pass did. It is the JSON of `dbjobs tick --json`, and its table is made from it.
type Report struct {
	Name      string         `json:"name"`
	Database  string         `json:"database"`
	StartedAt time.Time      `json:"started_at"` // by the database's clock
	DryRun    bool           `json:"dry_run,omitempty"`
	Frozen    bool           `json:"frozen,omitempty"` // everything is paused: nothing was decided or taken
	Decided   int            `json:"decided"`          // jobs for which the pass has decided
	Made      int            `json:"made"`             // runs made
	Gaps      map[string]int `json:"gaps,omitempty"`   // gaps recorded or extended, by reason
	Started   int            `json:"started"`          // runs delivered here
	Succeeded int            `json:"succeeded"`
	Failed    int            `json:"failed"`              // runs that failed for good, or were lost
	Cancelled int            `json:"cancelled,omitempty"` // runs stopped, on request or because they were replaced
	Waiting   int            `json:"waiting"`             // runs that wait for a retry
	Pruned    int            `json:"pruned,omitempty"`    // old runs deleted
	Outdated  int            `json:"outdated,omitempty"`  // ends that were refused, because this process no longer held the run
	Runs      []Ended        `json:"runs,omitempty"`      // the first runs that ended or wait for a retry, in that order: see Report.name
	MoreRuns  int            `json:"more_runs,omitempty"` // those that are not among Runs
	Due       []Coming       `json:"due,omitempty"`       // in a dry run: the jobs for which a pass would decide
	// In a dry run: when the freeze ends (zero: that is open), whether a run of the queue of ticks may be taken, and since when the
	// first of these runs is ready (zero: that is unknown).
	FrozenUntil time.Time `json:"frozen_until,omitzero"`
	Queued      bool      `json:"queued,omitempty"`
	QueuedSince time.Time `json:"queued_since,omitzero"`

	NextRun    time.Time       `json:"next_run,omitzero"`  // when something needs a decision next; never before the end of the pass
	MoreDue    bool            `json:"more_due,omitempty"` // something is already due: it became due during the pass, or the pass has left it
	CutShort   string          `json:"cut_short,omitempty"`
	Unrecorded string          `json:"unrecorded,omitempty"` // why the pass could not be recorded
	TooLong    []store.TooLong `json:"too_long,omitempty"`   // jobs with a queued run whose timeout never fits the budget
	Passes     int             `json:"passes,omitempty"`     // in RunFor: how many passes the report sums up

	// ByDecision counts those of Failed and Cancelled that were not executed here, such as a run that was lost.
	ByDecision Unexecuted `json:"by_decision,omitzero"`

	Lost      int       `json:"lost,omitempty"`        // runs whose last delivery never reported back
	OldestDue time.Time `json:"oldest_due,omitzero"`   // the oldest due time of a job that is not parked when the pass began, or the end of a freeze after it; in RunFor: of the pass that came latest
	Paused    int       `json:"paused_jobs,omitempty"` // jobs that are paused now; only where Tick.Gauges asks
	// OldestQueued is the instant since which the oldest queued run of any queue is ready, or the end of a freeze after it. It is
	// read only if Tick.Gauges asks.
	OldestQueued time.Time `json:"oldest_queued,omitzero"`

	// DueAt is when OldestDue was read, and LookedAt is when the pass has looked last at what is due next, by the database's clock.
	// Figures count up to these instants: a pass may take hours.
	DueAt    time.Time `json:"-"`
	LookedAt time.Time `json:"-"`

	// The states of jobs when the pass ended, whether the pass decided for them or not: the number of jobs
	// in each state, and the first of these jobs. Removed and disabled jobs do not count, nor do those that
	// somebody has paused. States is false where they, or figures beside them, were not read: in a worker, in a dry run,
	// which only counts the jobs, after an error, and where the budget, or the time for the report, has ended before.
	States      bool            `json:"-"`
	Unseen      bool            `json:"-"`                // a tick had no time to read them: CutShort says why
	ParkedJobs  int             `json:"parked_jobs"`      // jobs whose definition cannot be used
	FailingJobs int             `json:"failing_jobs"`     // jobs of which a run has failed or was lost, and none has succeeded since
	Parked      []store.Parked  `json:"parked,omitempty"` // jobs that this pass has parked come first
	Failing     []store.Failing `json:"failing,omitempty"`
	// Remind says that the states and TooLong are to be shown even if the pass was quiet: the pass has parked a job, or has found a new
	// run that never fits the budget, or it is the first pass of an hour.
	Remind bool `json:"-"`
	// SilentSince is the time of the pass before, if the trigger came regularly and was then silent for longer than Tick.Late;
	// SilentUntil is that of the pass that has found this, which may be a later one of RunFor.
	SilentSince time.Time `json:"silent_since,omitzero"`
	SilentUntil time.Time `json:"silent_until,omitzero"`
	// UnheardEvents counts the events whose hooks could not be run; Unheard has the first of them.
	UnheardEvents int             `json:"unheard_events,omitempty"`
	Unheard       []store.Unheard `json:"unheard,omitempty"`
	// UntoldSignals counts the signals of heartbeats that no service took; Untold has the first of them.
	UntoldSignals int      `json:"untold_signals,omitempty"`
	Untold        []Untold `json:"untold,omitempty"`
	// Unserved are jobs of other logins that have been due for more than five minutes: no tick seems to
	// log in as their owner.
	Unserved []store.Unserved `json:"unserved,omitempty"`

	// Ahead counts the jobs that were decided while the database's clock was ahead. They sleep, the last of
	// them until AheadUntil, or until Store.Replan is called.
	Ahead      int       `json:"ahead_jobs,omitempty"`
	AheadUntil time.Time `json:"ahead_until,omitzero"`
	// AheadUnknown says that these jobs could not be counted in time, and what to do; Ahead is zero then.
	AheadUnknown string `json:"ahead_unknown,omitempty"`

	// LockedJobs counts the jobs that were skipped because other sessions have locked their rows; Locked has
	// the first of them. LockHolders names these sessions, as far as the engine knows them.
	LockedJobs  int      `json:"locked_jobs,omitempty"`
	Locked      []Locked `json:"locked,omitempty"`
	LockHolders string   `json:"lock_holders,omitempty"`

	// Warning says, once a day, what is wrong with the settings of the database, and what to do.
	Warning string `json:"warning,omitempty"`

	// WakeAt is when the alarm that this pass has set starts the next pass, by the host's clock; zero: no alarm was set.
	WakeAt time.Time `json:"wake_at,omitzero"`

	late        time.Duration // in RunFor: Late of the pass that came latest, of those that were in no freeze
	well, wrong int           // runs for which name was called, by Ended.Wrong

	due  time.Time // like NextRun; if MoreDue: since when, which lies in the past
	wake time.Time // NextRun by the host's clock; if MoreDue, it may lie in the past
	// early says that a program was stopped for the end of the budget. So runs without a timeout wait for another budget.
	early bool
	meant bool // the database is the one that the settings name
	// untold is the longest time without a pass that the record of this pass does not end; zero: there is none, or it is unknown.
	untold time.Duration
	skew   time.Duration // by how much the host's clock is ahead of the database's
	// These fields decide about the alarm, beside skew: when a freeze ends, since when each thing has waited that the last probe
	// found left to do, beside what is due (zero: that is unknown), whether the database is the one that the settings name,
	// with a clock that is right, and whether it was refused because of its clock or its schema.
	frozenUntil time.Time
	left        []time.Time
	mayWake     bool
	mended      bool
}

// UnservedJobs counts the jobs of Unserved.
func (r *Report) UnservedJobs() (n int) {
	for _, u := range r.Unserved {
		n += u.Jobs
	}
	return n
}

// Late is how long the oldest due time had been due when the pass began; in RunFor, when that pass began that came latest. In a
// freeze it is zero, as QueuedFor is: what waits then waits on purpose.
func (r *Report) Late() time.Duration {
	if r.Frozen || r.OldestDue.IsZero() {
		return 0
	}
	return r.DueAt.Sub(r.OldestDue)
}

// QueuedFor is how long the oldest queued run has been ready at the end of the pass.
func (r *Report) QueuedFor() time.Duration {
	if r.Frozen || r.OldestQueued.IsZero() {
		return 0
	}
	return max(0, r.LookedAt.Sub(r.OldestQueued))
}

// NextIn is how long after the end of the pass something needs a decision next, if NextRun is known.
func (r *Report) NextIn() time.Duration {
	if r.MoreDue {
		return 0
	}
	return max(0, r.NextRun.Sub(r.LookedAt))
}

// named is how many jobs of a state, locked jobs, events and signals a report names.
const named = 10

// Ended is a run that this pass has executed or ended.
type Ended struct {
	ID           string    `json:"id"`
	Job          string    `json:"job"`              // owner/name
	Number       int64     `json:"number,omitempty"` // within the job
	Occurrence   string    `json:"occurrence"`
	ScheduledFor time.Time `json:"scheduled_for,omitzero"`
	State        string    `json:"state"`
	Step         int       `json:"step"`
	Error        string    `json:"error,omitempty"`
}

// Unexecuted counts the runs that a pass has ended without executing them.
type Unexecuted struct {
	Failed    int `json:"failed,omitempty"`
	Cancelled int `json:"cancelled,omitempty"`
}

// Wrong reports whether the run has failed or was lost. One that waits for another attempt has not failed yet.
func (e *Ended) Wrong() bool {
	return e.State != store.Succeeded && e.State != store.Waiting && e.State != store.Cancelled
}

// Untold is a signal of a heartbeat that no service took.
type Untold struct {
	Job   string `json:"job,omitempty"` // owner/name; empty: the heartbeat is that of the pass itself
	Error string `json:"error"`
}

// AddUntold adds an untold signal.
func (r *Report) AddUntold(u Untold) { r.addUntold(1, []Untold{u}) }

func (r *Report) addUntold(n int, first []Untold) {
	r.UntoldSignals += n
	r.Untold = append(r.Untold, first[:min(len(first), named-len(r.Untold))]...)
}

// Coming is a job that needs a decision.
type Coming struct {
	Job  string    `json:"job"`
	Need string    `json:"need"` // why: due, job changed, ...
	Due  time.Time `json:"due,omitzero"`
}

// join adds the report of a later pass.
func (r *Report) join(next Report) {
	if r.Passes++; r.Passes == 1 {
		*r = next
		r.Passes, r.late = 1, next.Late()
		return
	}
	if next.StartedAt.IsZero() { // the budget ended before the database answered: earlier facts still hold
		r.CutShort = next.CutShort
		return
	}
	r.Decided, r.Made, r.Started = r.Decided+next.Decided, r.Made+next.Made, r.Started+next.Started
	r.Succeeded, r.Failed, r.Waiting = r.Succeeded+next.Succeeded, r.Failed+next.Failed, r.Waiting+next.Waiting
	r.Lost, r.Cancelled, r.Pruned, r.Outdated = r.Lost+next.Lost, r.Cancelled+next.Cancelled, r.Pruned+next.Pruned, r.Outdated+next.Outdated
	r.ByDecision = Unexecuted{r.ByDecision.Failed + next.ByDecision.Failed, r.ByDecision.Cancelled + next.ByDecision.Cancelled}
	r.Warning = cmp.Or(r.Warning, next.Warning)
	if r.SilentSince.IsZero() {
		r.SilentSince, r.SilentUntil = next.SilentSince, next.SilentUntil
	}
	r.addGaps(next.Gaps)
	r.MoreRuns += next.MoreRuns
	for i := range next.Runs {
		r.name(next.Runs[i])
	}
	r.addUnheard(next.UnheardEvents, next.Unheard)
	r.addUntold(next.UntoldSignals, next.Untold)
	if late := next.Late(); r.late == 0 || late > r.late {
		r.OldestDue, r.DueAt, r.late = next.OldestDue, next.DueAt, late
	}
	r.LookedAt = next.LookedAt
	r.MoreDue, r.due, r.early = next.MoreDue, next.due, r.early || next.early
	r.skew, r.frozenUntil, r.left, r.mayWake, r.meant = next.skew, next.frozenUntil, next.left, next.mayWake, next.meant
	r.mended = next.mended
	r.Frozen, r.NextRun, r.CutShort, r.TooLong, r.wake = next.Frozen, next.NextRun, next.CutShort, next.TooLong, next.wake
	r.Paused, r.Ahead, r.AheadUntil, r.OldestQueued = next.Paused, next.Ahead, next.AheadUntil, next.OldestQueued
	r.AheadUnknown = next.AheadUnknown
	r.Unserved, r.Remind = next.Unserved, r.Remind || next.Remind
	r.Unseen = next.Unseen
	r.States, r.ParkedJobs, r.FailingJobs, r.Parked, r.Failing = next.States, next.ParkedJobs, next.FailingJobs, next.Parked, next.Failing
	r.LockedJobs, r.Locked, r.LockHolders, r.Unrecorded = next.LockedJobs, next.Locked, next.LockHolders, next.Unrecorded
}

// add adds the figures of a batch.
func (r *Report) add(b store.Batch) {
	r.Decided += b.Decided
	r.Made += b.Made
	for i := range b.Ended {
		r.endUnexecuted(&b.Ended[i])
	}
	r.addGaps(b.Gaps)
	r.addParked(b.Parked)
	r.addUnheard(len(b.Unheard), b.Unheard)
}

func (r *Report) addUnheard(n int, first []store.Unheard) {
	r.UnheardEvents += n
	r.Unheard = append(r.Unheard, first[:min(len(first), named-len(r.Unheard))]...)
}

// addParked names each job only once, even if it was parked several times.
func (r *Report) addParked(parked []store.Parked) {
	for _, p := range parked {
		same := func(q store.Parked) bool { return p.Job == q.Job }
		if len(r.Parked) < named && !slices.ContainsFunc(r.Parked, same) {
			r.Parked = append(r.Parked, p)
		}
	}
}

func (r *Report) addGaps(gaps map[string]int) {
	for reason, n := range gaps {
		if r.Gaps == nil {
			r.Gaps = map[string]int{}
		}
		r.Gaps[reason] += n
	}
}

// progress calls Tick.Progress with how far the pass is.
func (p *pass) progress() {
	if tell, r := p.t.Progress, &p.report; tell != nil {
		tell(r.Decided, r.Started, r.Succeeded+r.Failed+r.Cancelled+r.Waiting-r.ByDecision.Failed-r.ByDecision.Cancelled)
	}
}

// endUnexecuted adds the end of a run that this pass has not executed.
func (r *Report) endUnexecuted(e *store.EndedRun) {
	if r.end(&e.Run, e.Job); e.Run.State == store.Cancelled {
		r.ByDecision.Cancelled++
	} else {
		r.ByDecision.Failed++
	}
}

// end adds the end of a run.
func (r *Report) end(run *store.Run, job string) {
	switch run.State {
	case store.Succeeded:
		r.Succeeded++
	case store.Waiting:
		r.Waiting++
	case store.Cancelled:
		r.Cancelled++
	case store.Lost:
		r.Failed++
		r.Lost++
	default:
		r.Failed++
	}
	r.name(Ended{ID: run.ID, Job: job, Number: run.Number, Occurrence: run.Occurrence, ScheduledFor: run.ScheduledFor, State: run.State, Step: run.Step, Error: run.Error})
}

// NamedRuns is how many of the runs that failed a report names, and how many of the others. A pass may end a million runs: it
// must not keep all of them in memory, nor answer with more than a platform takes. AWS Lambda takes 6 MB.
const NamedRuns = 500

// name adds a run to those that the report names, or counts it.
func (r *Report) name(e Ended) {
	n := &r.well
	if e.Wrong() {
		n = &r.wrong
	}
	if *n++; *n > NamedRuns {
		r.MoreRuns++
		return
	}
	r.Runs = append(r.Runs, e)
}
