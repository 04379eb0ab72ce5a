package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Plan is the row that keeps the decisions about a job. A session that has locked this row has the right to decide
// for the job.
type Plan struct {
	JobID            int64
	Version          int64
	NextRun          time.Time // when the job needs a decision; zero: no nominal time is left
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
	StartupIDs       string    // starts of hosts that the job has run for, the newest first
	RepeatFrom       time.Time // the instant from which repeat_after counts; zero: not decided yet
	Skips            string    // future nominal times that are not to run: see Skip
	owner            string    // of the job when it was planned; empty on SQLite
}

// startups is the number of start identities that a plan remembers, for several hosts that tick one database in turn. For an older start,
// the run on record says that it was served.
const startups = 32

// KnowsStartup reports whether the job has had its run for the start with this identity.
func (l *Plan) KnowsStartup(id string) bool { return strings.Contains(l.StartupIDs, "\n"+id+"\n") }

// AddStartup records that the job has had its run for a start. It forgets the oldest starts where there are too many.
func (l *Plan) AddStartup(id string) {
	known := strings.Split(strings.Trim(l.StartupIDs, "\n"), "\n")
	known = append([]string{id}, known[:min(len(known), startups-1)]...)
	l.StartupIDs = "\n" + strings.Trim(strings.Join(known, "\n"), "\n") + "\n"
}

// Rule is a schedule of a job, as the plan knows it and as it is defined now.
type Rule struct {
	ScheduleID int64
	// From the plan. They are empty for a link that the plan does not know yet. Ends begins with the release of the zone database
	// by which the rule was read.
	Input, Text, Ends string
	PlannedAt         time.Time // the ChangedAt of the schedule as it was planned
	// From the definition. Linked is false where the link was deleted. The fields below it are read
	// only where the definition may differ from the plan.
	Linked      bool
	LinkedAt    time.Time // zero: plain SQL made the link and did not say when
	LinkPlanned bool      // the link is marked as planned
	NewInput    string
	Schedule    Schedule
	Calendar    *Calendar // the calendar that the schedule names; nil: it names none, or no calendar has that name
	ChangedAt   time.Time // when a command last changed the schedule
	Lost        bool      // the link is there, but the row of the schedule is not
	bare        bool      // the job's own schedule, which has no link
	otherDays   bool      // the calendar has other days than the schedule knows: see daysRead
}

// Changed reports whether the plan was made from another text than the definition has now.
func (r *Rule) Changed() bool { return r.Linked && r.Input != r.NewInput }

// Snapshot has everything from which a decision for one job is made.
type Snapshot struct {
	Plan    Plan
	Job     Job             // Removed is set for a removed job; ID is zero where the row was deleted
	Stale   bool            // the definition may differ from the plan
	Unseen  bool            // no decision has planned the job, as its row says
	Planned PlannedPolicies // read where Stale is set
	// ChangedAt is the instant at which a command last changed the job.
	ChangedAt time.Time
	Group     *GroupLoad // of the job's group; nil: it has none
	// Left is the group that the job was planned in, if an edit has taken the job out of it; nil: there is none. Its place is free.
	Left      *GroupLoad
	leftGroup string // the name of that group, as plan_input quotes it
	Rules     []Rule
	Runs      []Run // not settled yet, oldest first
	Queue     Queue // more runs that are not settled yet: nothing but a nominal time or a run has woken the job
	LeftOut   bool  // even more of them may wait in turn, newer than those that do so in Runs: see readCrowd
	// Followers are the jobs that run after this one.
	Followers []Follower
	// Met are the intervals for which each of the jobs that this job runs after has a run that ended as asked. They
	// are read for the need AfterEnded.
	Met    []Meeting
	ends   []endRead // the ends from which Met was made, and the ends of other intervals
	Pauses []Pause
	// StepAttempts has the number of attempts of each step that has its own number, by its place among the steps, as a run
	// names it. It is read where a run waits for another attempt.
	StepAttempts map[int]Attempts
	Circle       bool // the job runs after itself, through others; read where that may have changed
	AfterLost    bool // the row of the job that it runs after was deleted; read where that may have changed
	AfterChanged bool // no decision has seen one of the jobs that it runs after
	Started      bool // a run for the start that the tick reports is on record, although the plan does not know this start
	Recalled     bool // the plan was deleted, or is older than the runs, and is made again from the records: its row has nothing of that yet
	// Mistake says why no run could execute the steps. It is checked where the definition may be new, and after a
	// failure.
	Mistake string
	// Fault names the values of the definition that cannot be read, and PlanFault those of the plan. Either of them
	// parks the job.
	Fault, PlanFault string
	input            string
	newest           newestNumber
	follows          bool // the job runs after other jobs: Job.After has their ids if Circle was read
}

// UntilNext reports whether a step is tried until the next occurrence.
func (c *Snapshot) UntilNext(step int) bool {
	if own, ok := c.StepAttempts[step]; ok {
		return own == 0
	}
	return *c.Job.Retry.Attempts == 0
}

// UnderWay counts the runs that were under way when they were read.
func (c *Snapshot) UnderWay() (n int) {
	n = c.Queue.Runs
	for i := range c.Runs {
		if c.Runs[i].UnderWay() {
			n++
		}
	}
	return n
}

// name is the job's full name, or its id where the name is not known.
func (c *Snapshot) name() string {
	if c.Job.Name == "" {
		return fmt.Sprintf("with the id %d", c.Plan.JobID)
	}
	return c.Job.FullName()
}

// Decision is the outcome for one job. The transaction that advances the plan writes all of it, or none of it.
type Decision struct {
	Plan      Plan
	Made      []Run       // new runs; ids are given when they are written
	Updates   []RunUpdate // runs that are queued, held, recovered or settled
	Gaps      []Gap
	Retention []Retention // the history that is kept, where runs were settled
	// Cancel has the ids of running runs that are to be stopped. Their holders look for that.
	Cancel []string
	// Pause pauses the job from now on, for this reason.
	Pause string
	// Remove removes the job, for this reason.
	Remove   string
	Events   []Event   // events that hooks follow; each event has one hook
	Ends     []End     // ends of runs of the job, for jobs that run after several jobs
	Met      []string  // the meetings of Snapshot.Met that are finished: they have a run, or never will
	Rules    []Rule    // with Replan: the rules that the plan has from now on, as Text, Ends and Input
	UnderWay int       // runs of the job that are under way after this decision
	Park     bool      // the plan cannot be read, so only its error and its next run are written
	Replan   bool      // the rules are written anew and the definitions are marked as planned
	Start    time.Time // with Replan: the not_before of the job, found from its start schedule; zero: it stays as it is

	// Settlement settles the one run that was made, together with the run's end if it succeeds; nil: a decision
	// settles it.
	Settlement *Settlement
}

// Nothing reports whether a decision changes nothing but the instant at which it was made. Such a
// decision is not written, because the next one can start from the old instant, and because several
// sessions that decide for the same ended run would only wait for each other.
func (d *Decision) Nothing(before *Plan) bool {
	after := d.Plan
	after.DecidedThrough = before.DecidedThrough
	return after == *before && !d.Replan && d.Pause == "" && d.Remove == "" && len(d.Made)+len(d.Updates)+len(d.Gaps)+len(d.Retention)+len(d.Cancel) == 0
}

// RunUpdate is a change of a run that a decision has read. It fails if another session has changed the run meanwhile.
type RunUpdate struct {
	Run       Run       // with its new values
	From      string    // the state that was read
	Unchanged bool      // it waits for its group as before, so nothing is written
	LeaseRead time.Time // guards against a heartbeat in between; zero: the run had no lease
	ExpiresAt time.Time
}

// A Need is a reason why a job needs a decision.
type Need int

// The needs, in the order in which a pass handles them. Changes come first, so that no nominal time
// is decided by an old rule.
const (
	JobChanged Need = iota
	LinkChanged
	ScheduleChanged
	PauseChanged
	RunWakes // a wait is over, a lease has ended, or a run has ended
	Due
	AfterEnded // runs of several jobs that the job runs after have ended
	needs

	// Startup is the need of jobs with on_startup, where the tick was given the identity of a
	// start.
	Startup = needs
	// Check finds rows that plain SQL has deleted, since a deleted row leaves no mark, and plans that were made by an older release of
	// the zone database: see Probe.CheckDue.
	Check = needs + 1
	// Older finds plans that are older than the runs of their jobs, as from an older copy of the table, and that no other need has
	// found. It comes with Check. Nothing is decided from such a plan: each decision looks whether its plan is one, see recall.
	Older = needs + 2
)

// Needs are the needs that a probe finds.
func Needs() []Need {
	all := make([]Need, needs)
	for i := range all {
		all[i] = Need(i)
	}
	return all
}

// String returns the need in words.
func (n Need) String() string {
	return [...]string{"job changed", "schedules of the job changed", "schedule changed", "pause changed", "run ended or waits no longer", "due", "runs of other jobs ended", "start-up", "hourly check", "plan older than the runs"}[n]
}

func (n Need) statement() string {
	return [...]string{"need_job", "need_link", "need_schedule", "need_pause", "need_run", "need_plan", "need_ended", "need_startup", "need_check", "need_older"}[n]
}

// Page is a position in the list of a need. Paging by key skips the rows that other sessions have locked. It also
// does not read the index entries of advanced rows again, which the engine may not be able to remove yet.
type Page struct {
	need  Need
	at    any // a time, or the value of the column if the column has no time
	id    any
	jobs  []int64
	due   []time.Time
	ahead []candidate // the jobs of the next pages, as far as they were read
	now   time.Time
	last  bool
	upTo  time.Time
	kinds *kinds
	wide  bool
	begun bool

	// Without are jobs that are skipped, because the engine refused their decisions before.
	Without map[int64]bool

	// Crowds are the jobs for which many runs wait. All pages of a pass share one. If it is nil, each decision
	// reads all runs.
	Crowds *Crowds

	// A decision with hooks that is refused is tried once more, and then without its hooks: noHooks has the reason.
	hooksRefused int
	noHooks      string

	// Back is when the database was back after a time in which it may have been away; zero: nothing says that it was. Holders
	// whose leases ended before that have another heartbeat.
	Back time.Time

	// Waits is the number of times that the decisions for the page may wait for locks.
	Waits int

	// Owner, for the needs Due and Startup, is the owner whose jobs are wanted; empty: the jobs are those of the
	// login.
	Owner string

	// StartupID is the identity that the jobs of the need Startup have not run for yet.
	StartupID string

	// Zones is the release of the zone database of this program. The need Check finds the jobs that were planned by an older one.
	Zones string
}

// Jobs is the number of jobs of the page.
func (p *Page) Jobs() int { return len(p.jobs) }

// Each calls fn for each job of the page, with the time since which the job is due. That time is zero for a changed
// definition.
func (p *Page) Each(fn func(job int64, due time.Time)) {
	for i := range p.jobs {
		fn(p.jobs[i], p.due[i])
	}
}

// dueOf returns the due times of some of the page's jobs.
func (p *Page) dueOf(jobs []int64) []time.Time {
	list := make([]time.Time, len(jobs))
	for i, id := range jobs {
		list[i] = p.due[slices.Index(p.jobs, id)]
	}
	return list
}

// NewPage is the first page of a need, with due times up to upTo. What becomes due while a pass is
// under way is for the next pass: otherwise a pass over schedules finer than its own length would
// never end. The needs of changed definitions concern the changes that u has read.
func NewPage(n Need, upTo time.Time, u *Unmarked) *Page {
	p := &Page{need: n, upTo: upTo, wide: u.wide, kinds: &kinds{}, id: int64(0)}
	if n == RunWakes {
		p.id = engine.ID("00000000-0000-0000-0000-000000000000")
	}
	return p
}
