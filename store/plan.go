package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Plan is what deciding keeps of a job: one narrow row, whose lock is the right to decide for the job.
type Plan struct {
	JobID            int64
	Version          int64
	NextRun          time.Time // when the job needs a decision; zero: nothing is to come
	DecidedThrough   time.Time // every nominal time up to here has a run or lies in a gap; zero: never decided
	Parked           string    // why the job is parked
	LastScheduledFor time.Time // the newest nominal time that became a run
	LastRunID        string
	LastState        string
	LastFinishedAt   time.Time
	LastSuccessAt    time.Time
	LastError        string
	Streak           int
	Cycles           int64
	RunsMade         int64
	StartupIDs       string    // that it ran for, the newest first: KnowsStartup, AddStartup
	RepeatFrom       time.Time // what repeat_after counts from; zero: nothing has been decided yet
	owner            string    // of the job when it was planned; empty on SQLite
}

// startups is how many start-up identities a plan remembers: of hosts that tick one database in turn.
const startups = 32

// KnowsStartup reports whether the job has had its run for the start-up.
func (l *Plan) KnowsStartup(id string) bool { return strings.Contains(l.StartupIDs, "\n"+id+"\n") }

// AddStartup remembers that it has, and forgets the oldest of too many.
func (l *Plan) AddStartup(id string) {
	known := strings.Split(strings.Trim(l.StartupIDs, "\n"), "\n")
	known = append([]string{id}, known[:min(len(known), startups-1)]...)
	l.StartupIDs = "\n" + strings.Trim(strings.Join(known, "\n"), "\n") + "\n"
}

// Rule is a schedule as a job's plan knows it and as its definition stands now.
type Rule struct {
	ScheduleID int64
	// As planned: empty for a link that the plan has not seen.
	Input, Text, Ends string
	// As it stands: Linked is false where the link is gone. The rest is read only where the job may not stand as it
	// was planned.
	Linked      bool
	LinkedAt    time.Time // zero: by plain SQL, which does not say
	LinkPlanned bool      // the link's own mark
	NewInput    string
	Schedule    Schedule
	ChangedAt   time.Time // of the schedule, by a command
	Lost        bool      // the link is there, and the schedule is not
	bare        bool      // the job's own schedule, without a link
}

// Changed reports whether the plan was made from another text, or from none.
func (r *Rule) Changed() bool { return r.Linked && r.Input != r.NewInput }

// Snapshot is all that a decision for one job is made from.
type Snapshot struct {
	Plan    Plan
	Job     Job // with Removed set where the definition is history; ID zero where the row is gone
	Stale   bool
	Planned PlannedPolicies // with Stale
	// ChangedAt is when a command changed the job last.
	ChangedAt time.Time
	Group     *GroupLoad // of the job's group; nil: it has none
	Rules     []Rule
	Runs      []Run // not settled yet, oldest first
	// Followers are the jobs that run after this one.
	Followers []Follower
	Pauses    []Pause
	// StepAttempts are those of steps that have their own, by position; looked up where a run is to be tried again.
	StepAttempts map[int]Attempts
	Circle       bool // the job runs after itself, by way of others; looked up where that may have changed
	AfterLost    bool // the row of the job that it runs after is gone; likewise
	Recalled     bool // its plan was deleted, and is made again from what is on record
	// Mistake says what no run of the job's steps could do; looked up where the definition may be new, and after a failure.
	Mistake string
	// Fault says what of the definition cannot be read, and PlanFault what of the plan; with either the job is parked.
	Fault, PlanFault string
	input            string
}

// UntilNext reports whether a step is tried until the next occurrence.
func (c *Snapshot) UntilNext(step int) bool {
	if own, ok := c.StepAttempts[step]; ok {
		return own == 0
	}
	return *c.Job.Retry.Attempts == 0
}

// name is the job's full name, or its id where that is not known.
func (c *Snapshot) name() string {
	if c.Job.Name == "" {
		return fmt.Sprintf("with the id %d", c.Plan.JobID)
	}
	return c.Job.FullName()
}

// Follower is a job that runs when a run of another has succeeded.
type Follower struct {
	JobID    int64
	Queue    string
	Priority int
}

// Decision is what follows: all of it is written in the transaction that advances the plan, or nothing.
type Decision struct {
	Plan      Plan
	Made      []Run       // new runs; ids are given when they are written
	Updates   []RunUpdate // runs let go, recovered or settled
	Gaps      []Gap
	Retention []Retention // what stays of the history, where runs were settled
	// Cancel are runs in other hands that are to be stopped; their holders look for that.
	Cancel []string
	// Pause pauses the job from now on, for this reason.
	Pause string
	// Remove removes the job, for this reason.
	Remove   string
	Events   []Event // that hooks follow; each has one
	Rules    []Rule  // with Replan: what the plan is made from now, as Text, Ends and Input
	UnderWay int     // runs of the job that are under way after this
	Park     bool    // of the plan, only its error and its next run are written: the rest of it cannot be read
	Replan   bool    // the rules are written anew and the definitions are marked as planned
}

// nothing reports whether a decision changes no more than the instant it was made at, which the next may as well begin from:
// several sessions that decide for the same ended run would only get in each other's way.
func (d *Decision) nothing(before *Plan) bool {
	after := d.Plan
	after.DecidedThrough = before.DecidedThrough
	return after == *before && !d.Replan && d.Pause == "" && d.Remove == "" && len(d.Made)+len(d.Updates)+len(d.Gaps)+len(d.Retention)+len(d.Cancel) == 0
}

// RunUpdate is a change of a run that a decision has read. It fails where somebody changed the run meanwhile.
type RunUpdate struct {
	Run       Run // as it shall be
	From      string
	Unchanged bool      // it waits for its group as before: nothing is to be written
	LeaseRead time.Time // guards against a heartbeat that came in between; zero: no matter
	ExpiresAt time.Time
}

// A Need is one of the ways in which a job comes to need a decision.
type Need int

// The needs, in the order in which a pass handles them: changes first, so that nothing is decided by an old rule.
const (
	JobChanged Need = iota
	LinkChanged
	ScheduleChanged
	PauseChanged
	RunWakes // a wait is over, a lease ends, a run has ended
	Due
	needs

	// Startup is a need that only a tick can know of, which is told a start-up identity.
	Startup = needs
	// Check looks for what was deleted by plain SQL and leaves no mark; see Probe.CheckDue.
	Check = needs + 1
)

// Needs are all of them.
func Needs() []Need {
	all := make([]Need, needs)
	for i := range all {
		all[i] = Need(i)
	}
	return all
}

// String is the need in words.
func (n Need) String() string {
	return [...]string{"job changed", "schedules of the job changed", "schedule changed", "pause changed", "run ended or waits no longer", "due", "start-up", "hourly check"}[n]
}

func (n Need) statement() string {
	return [...]string{"need_job", "need_link", "need_schedule", "need_pause", "need_run", "need_plan", "need_startup", "need_check"}[n]
}

// Page is a place in the list of a need. Paging by key leaves behind what other sessions hold locked, and does not
// walk again and again over index entries of rows that were advanced and cannot be vacuumed yet.
type Page struct {
	need  Need
	at    any // a time, or what the column holds instead
	id    any
	jobs  []int64
	due   []time.Time
	now   time.Time
	last  bool
	upTo  time.Time
	kinds *kinds
	wide  bool
	begun bool

	// Without are jobs that are left out: what they are decided from was refused before.
	Without map[int64]bool

	// refused is why the page's decisions are tried without their hooks.
	refused string

	// Waits is how often the decisions for the page may wait for locks; it is tried once in any case.
	Waits int

	// StartupID is the identity that the jobs of the need Startup have not run for yet.
	StartupID string
}

// Jobs is how many jobs the page has.
func (p *Page) Jobs() int { return len(p.jobs) }

// Each calls fn for each job of the page, with the time since when it is due (zero for a changed definition).
func (p *Page) Each(fn func(job int64, due time.Time)) {
	for i := range p.jobs {
		fn(p.jobs[i], p.due[i])
	}
}

// dueOf are the due times of some of its jobs.
func (p *Page) dueOf(jobs []int64) []time.Time {
	list := make([]time.Time, len(jobs))
	for i, id := range jobs {
		list[i] = p.due[slices.Index(p.jobs, id)]
	}
	return list
}

// NewPage is the beginning of a need, with due times no later than upTo: what becomes due while a pass is under way is
// for the next one, or a pass over schedules finer than its own length would never end.
//
// What changed is looked for as far as it was read before.
func NewPage(n Need, upTo time.Time, u *Unmarked) *Page {
	p := &Page{need: n, upTo: upTo, wide: u.wide, kinds: &kinds{jobs: map[string]*Job{}}, id: int64(0)}
	if n == RunWakes {
		p.id = engine.ID("00000000-0000-0000-0000-000000000000")
	}
	return p
}

// Next reads the next jobs, up to limit, that need a decision, without a lock: false when there is none.
func (s *Store) Next(ctx context.Context, p *Page, limit int) (bool, error) {
	p.jobs, p.due = nil, nil // a copy of the page may still be under way
	if p.last {
		return false, nil
	}
	if !p.begun {
		p.at, p.begun = engine.Earliest{}, true
	}
	seen, rows := make(map[int64]bool, limit), 0
	a := engine.Args{"now": s.now(), "at": p.at, "up_to": p.upTo, "startup": p.StartupID, "id": p.id, "limit": limit, "window": window, "wide": int64(math.MaxInt64)}
	if p.wide {
		a["wide"] = p.id
	}
	var job, id int64
	var run string
	var due engine.Moment
	key := any(&id)
	if p.need == RunWakes {
		key = &run
	}
	err := s.db.Query(ctx, p.need.statement(), a, engine.Reads(engine.At(&p.now), &job, &due, key).Each(func(string) error {
		if due.Set() {
			p.at = due.Raw
		}
		if p.id = id; p.need == RunWakes {
			p.id = engine.ID(run)
		}
		rows++
		if !seen[job] && !p.Without[job] {
			seen[job] = true
			p.jobs, p.due = append(p.jobs, job), append(p.due, due.Time)
		}
		return nil
	}))
	p.last = rows < limit
	return len(p.jobs) > 0 || err == nil && !p.last, err
}
