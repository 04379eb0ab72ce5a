// Package model computes a second time what happens to jobs. Tests compare decisions and whole passes
// with it. It has random scenarios, and a naive walk that looks at every nominal time of every rule,
// one by one. Only tests import it.
package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// A Scenario is what happens to some jobs of one database over months: ticks at odd times, and what
// people do between them. It is data. So it can be made smaller, and three parts that know nothing of
// each other can play it: the naive walk, decide in memory, and whole passes on SQLite.
type Scenario struct {
	Span  Window
	Start time.Time
	Owner string // that the database gives the jobs: its login, or none
	// The schedules that all jobs may share, the calendars that rules may name, and the jobs, as they are made at the start.
	// Jobs are known by their seed.
	Shared    []Rule
	Calendars []Calendar
	Jobs      []Job
	Steps     []Step
}

// Job is a job as it is made.
type Job struct {
	Seed   uint64
	Policy store.Job // without name, schedules and steps
	Own    *Rule
	Links  []int // of the shared schedules
	Worker bool  // a worker takes its runs, which last some time; else the tick executes them at once
	Fails  int   // per cent of the attempts
}

// Name is the name of the job.
func (j *Job) Name() string { return JobName(j.Seed) }

// JobName is the name of the job with a seed.
func JobName(seed uint64) string { return fmt.Sprintf("job %d", seed) }

// Define is the job with a policy and links, as a manifest would have it.
func (j *Job) Define(policy store.Job, links []int) store.Job {
	policy = AsWritten(policy)
	policy.Name, policy.Schedules = j.Name(), nil
	for _, i := range links {
		policy.Schedules = append(policy.Schedules, SharedName(i))
	}
	if policy.Queue = "tick"; j.Worker {
		policy.Queue = "worker"
	}
	policy.Steps = []store.Step{{Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
	return policy
}

// SharedName is the name of a shared schedule.
func SharedName(i int) string { return fmt.Sprintf("schedule %d", i) }

// Step is an instant at which there is a tick, or at which people change something.
type Step struct {
	At      time.Time
	Changes []Change // none: it is a tick
	Startup string   // the identity that the tick reports
}

// Change is one thing that somebody does.
type Change struct {
	What    string // pause, resume, rule, calendar, link, unlink, policy, request, skip, unskip, cancel, retry
	SQL     bool   // rule, calendar, policy: by plain SQL, which does not record when
	Scope   string // of a pause: all, owner, tag, schedule, job
	Job     uint64 // the job it is about, if it is about one
	Shared  int    // the shared schedule it is about; below 0: the job's own, or, of a skip, any
	Tag     string
	Until   time.Time
	Missed  bool // resumed with the missed times
	Rule    Rule
	Policy  store.Job
	Request string // the occurrence

	Calendar int // the number of the calendar it is about
	Closed   Calendar
	Count    int // of times to skip; of a run to cancel or to retry: its place among those of its job, see Nth
}

func (c Change) String() string {
	switch c.What {
	case "rule":
		return fmt.Sprintf("rule of schedule %d, job %d, sql %t: %s", c.Shared, c.Job, c.SQL, c.Rule)
	case "calendar":
		return fmt.Sprintf("calendar %d, sql %t: %s", c.Calendar, c.SQL, c.Closed)
	case "skip":
		return fmt.Sprintf("skip %d times of job %d, schedule %d", c.Count, c.Job, c.Shared)
	case "policy":
		return fmt.Sprintf("policy of job %d, sql %t: %s", c.Job, c.SQL, policyText(&c.Policy))
	case "pause":
		return fmt.Sprintf("pause %s (job %d, schedule %d, tag %s) until %s", c.Scope, c.Job, c.Shared, c.Tag, c.Until.Format(time.DateTime))
	case "resume":
		return fmt.Sprintf("resume %s (job %d, schedule %d, tag %s), missed %t", c.Scope, c.Job, c.Shared, c.Tag, c.Missed)
	}
	return fmt.Sprintf("%s job %d, schedule %d %s %d", c.What, c.Job, c.Shared, c.Request, c.Count)
}

// String prints the scenario in a form that can be read.
func (s *Scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "start %s\n", s.Start.Format(time.DateTime))
	for i, r := range s.Shared {
		fmt.Fprintf(&b, "schedule %d: %s\n", i, r)
	}
	for i, c := range s.Calendars {
		fmt.Fprintf(&b, "calendar %d: %s\n", i+1, c)
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		fmt.Fprintf(&b, "%s: own %v, schedules %v, worker %t, fails %d%%; %s\n", j.Name(), j.Own, j.Links, j.Worker, j.Fails, policyText(&j.Policy))
	}
	for _, st := range s.Steps {
		if len(st.Changes) == 0 {
			fmt.Fprintf(&b, "%s tick %s\n", st.At.Format(time.DateTime), st.Startup)
		}
		for _, c := range st.Changes {
			fmt.Fprintf(&b, "%s %s\n", st.At.Format(time.DateTime), c)
		}
	}
	return b.String()
}

// Crowd is the number of seeds that share a database, and with it the ticks, the outages, and the
// changes that concern all of them.
const Crowd = 64

// NewScenario returns the scenario of the given number of seeds from first on. first has to be a
// multiple of Crowd. Equal seeds give equal jobs.
func NewScenario(first uint64, jobs int) *Scenario {
	rng := rand.New(rand.NewPCG(first/Crowd, 13))
	s := &Scenario{Span: spans[rng.IntN(len(spans))]}
	s.Start = s.Span.From.AddDate(0, 0, 10).Add(time.Duration(rng.IntN(15*86400)) * time.Second)
	for range 3 {
		s.Shared = append(s.Shared, randomRule(rng, s.Span))
	}
	for range 2 {
		s.Calendars = append(s.Calendars, randomCalendar(rng, s.Span, s.Start))
	}
	now, most := s.Start, 30+20*int(first/Crowd%4) // the first are short: they are tried with every change of the program
	boots := 1
	for end := s.Span.To.AddDate(0, 0, -2); len(s.Steps) < most; {
		switch x := rng.IntN(20); { // when the trigger comes, and how long it was down
		case x < 11:
			now = now.Add(time.Duration(1+rng.IntN(90*60)) * time.Second)
		case x < 14: // exactly on a minute
			now = now.Truncate(time.Minute).Add(time.Duration(1+rng.IntN(60)) * time.Minute)
		case x < 19:
			now = now.Add(time.Duration(1+rng.IntN(30*3600)) * time.Second)
		default:
			now = now.Add(time.Duration(1+rng.IntN(12*86400)) * time.Second)
		}
		if now.After(end) {
			break
		}
		if rng.IntN(10) == 0 {
			boots++
		}
		st := Step{At: now}
		if rng.IntN(3) > 0 {
			st.Startup = fmt.Sprintf("boot %d", boots)
		}
		s.Steps = append(s.Steps, st)
		if rng.IntN(4) == 0 {
			now = now.Add(time.Duration(1+rng.IntN(40*60)) * time.Second)
			s.Steps = append(s.Steps, Step{At: now, Changes: s.everybodys(rng, now)})
		}
	}
	for i := range uint64(jobs) {
		s.addJob(rand.New(rand.NewPCG(first+i, 7)), first+i)
	}
	s.Steps = slices.DeleteFunc(s.Steps, func(st Step) bool { return st.Changes != nil && len(st.Changes) == 0 })
	return s
}

// everybodys returns changes that concern several jobs. If there are none, it returns an empty list,
// for the jobs' own changes.
func (s *Scenario) everybodys(rng *rand.Rand, now time.Time) []Change {
	changes := []Change{}
	c := Change{Scope: pick(rng, "all", "owner", "tag", "tag", "schedule", "schedule"), Shared: rng.IntN(len(s.Shared)), Tag: pick(rng, "red", "blue")}
	switch rng.IntN(6) {
	case 0:
		c.What = "pause"
		if rng.IntN(2) == 0 || c.Scope == "all" {
			c.Until = now.Add(time.Duration(1+rng.IntN(3*86400)) * time.Second)
		}
		changes = append(changes, c)
	case 1:
		c.What, c.Missed = "resume", rng.IntN(3) == 0
		for _, c.Scope = range []string{"all", "owner", "tag", "schedule"} {
			changes = append(changes, c)
		}
	case 2:
		changes = append(changes, Change{What: "rule", Shared: c.Shared, Rule: randomRule(rng, s.Span), SQL: rng.IntN(2) == 0}.misspelt(rng))
	}
	if rng.IntN(2) == 0 {
		changes = append(changes, Change{What: "calendar", Calendar: 1 + rng.IntN(len(s.Calendars)), Closed: randomCalendar(rng, s.Span, now), SQL: rng.IntN(2) == 0})
	}
	return changes
}

func (s *Scenario) addJob(rng *rand.Rand, seed uint64) {
	j := Job{Seed: seed, Policy: randomPolicy(rng, s.Start), Worker: rng.IntN(8) > 0}
	if rng.IntN(3) == 0 {
		j.Fails = rng.IntN(60)
	}
	if j.Worker { // a worker does not try again
		*j.Policy.Retry.Attempts = 1
	}
	if rng.IntN(3) > 0 {
		r := randomRule(rng, s.Span)
		j.Own = &r
	}
	for i := range s.Shared {
		if rng.IntN(5) == 0 || j.Own == nil && i == len(s.Shared)-1 && len(j.Links) == 0 {
			j.Links = append(j.Links, i)
		}
	}
	if j.Own == nil {
		j.Policy = withoutStart(j.Policy)
	}
	s.Jobs = append(s.Jobs, j)
	linked := map[int]bool{}
	for _, i := range j.Links {
		linked[i] = true
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Changes == nil || rng.IntN(3) > 0 {
			continue
		}
		c := Change{Job: seed, Shared: -1, SQL: rng.IntN(2) == 0}
		switch shared := rng.IntN(len(s.Shared)); rng.IntN(14) {
		case 0, 1:
			c.What, c.Scope = "pause", "job"
			if rng.IntN(2) == 0 {
				c.Until = st.At.Add(time.Duration(1+rng.IntN(2*86400)) * time.Second)
			}
		case 2, 3:
			c.What, c.Scope, c.Missed = "resume", "job", rng.IntN(3) == 0
		case 4:
			if j.Own == nil {
				continue
			}
			c.What, c.Rule = "rule", randomRule(rng, s.Span)
			c = c.misspelt(rng)
		case 5:
			c.What, c.Shared, c.SQL = "link", shared, false
			if linked[shared] {
				c.What = "unlink"
			}
			linked[shared] = !linked[shared]
		case 6:
			c.What, c.Policy = "policy", randomPolicy(rng, st.At)
			if j.Own == nil {
				c.Policy = withoutStart(c.Policy)
			}
			if j.Worker {
				*c.Policy.Retry.Attempts = 1
			}
		case 7:
			c.What, c.Request = "request", fmt.Sprintf("now:%d-%d", seed, i)
		case 8, 9:
			if c.What, c.Count = "skip", 1+rng.IntN(4); rng.IntN(3) == 0 {
				c.Shared = shared
			}
		case 10:
			if c.What = "unskip"; rng.IntN(3) == 0 {
				c.Shared = shared
			}
		case 11:
			c.What, c.Count = "cancel", rng.IntN(8)
		case 12, 13:
			c.What, c.Count = "retry", rng.IntN(64)
		}
		st.Changes = append(st.Changes, c)
	}
}

// A Narrator computes what happens in a scenario. Its methods get the time at which they are called.
type Narrator interface {
	Change(now time.Time, list []Change)
	Tick(now time.Time, startup string) []Hold // one pass, which executes its own runs; it returns the runs that the worker is to stop
	Take(now time.Time) []Hold                 // a worker takes all runs that it may take
	End(now time.Time, h Hold, state string)   // the worker ends a run
	Ledger() map[uint64][]string               // by job, in any order
}

// Maker makes the narrator of a scenario.
type Maker func(testing.TB, *Scenario) Narrator

// Hold is a run that the worker holds.
type Hold struct {
	Job        uint64
	Occurrence string
	Fence      int // the number of the delivery
}

// Tell plays a scenario with a narrator. It returns the ledger to which the narrator comes, sorted, by job.
func Tell(s *Scenario, n Narrator) map[uint64][]string {
	jobs := map[uint64]*Job{}
	for i := range s.Jobs {
		jobs[s.Jobs[i].Seed] = &s.Jobs[i]
	}
	held := map[Hold]time.Time{} // the end of each run
	for _, st := range s.Steps {
		order := slices.SortedFunc(maps.Keys(held), func(x, y Hold) int {
			return compareAll(held[x].Compare(held[y]), int(x.Job)-int(y.Job), strings.Compare(x.Occurrence, y.Occurrence))
		})
		for _, h := range order {
			if end := held[h]; !end.After(st.At) {
				state := store.Failed
				if jobs[h.Job].Succeeds(h.Occurrence, 1) {
					state = store.Succeeded
				}
				n.End(end, h, state)
				delete(held, h)
			}
		}
		if len(st.Changes) > 0 {
			n.Change(st.At, st.Changes)
			continue
		}
		for _, h := range n.Tick(st.At, st.Startup) {
			if _, hears := held[h]; hears {
				n.End(st.At, h, store.Cancelled)
				delete(held, h)
			}
		}
		for _, h := range n.Take(st.At) {
			if jobs[h.Job].Vanishes(h) {
				continue
			}
			held[h] = st.At.Add(jobs[h.Job].duration(h.Occurrence))
		}
	}
	l := n.Ledger()
	for _, lines := range l {
		slices.Sort(lines)
	}
	return l
}

func compareAll(results ...int) int {
	for _, r := range results {
		if r != 0 {
			return r
		}
	}
	return 0
}

// RunLine returns a run as a line in which the ledgers are compared.
func RunLine(r *store.Run) string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.UTC().Format("01-02T15:04:05.999999")
	}
	return fmt.Sprintf("run %4d %s %s held_by=%s for=%s [%s %s) ready=%s attempts=%d started=%s finished=%s delivered %d, lost %d, settled=%t", r.Number, r.Occurrence, r.State, r.HeldBy,
		at(r.ScheduledFor), at(r.IntervalStart), at(r.IntervalEnd), at(r.ReadyAt), r.Attempts, at(r.StartedAt), at(r.FinishedAt), r.Fence, r.Losses, !r.SettledAt.IsZero())
}

// gapLine returns a line for an unbroken stretch of a rule's nominal times that did not run for one reason.
func gapLine(schedule, rule, reason string, first, last time.Time, n int) string {
	return fmt.Sprintf("gap %s %s %s %s..%s %d", schedule, rule, reason, first.Format("01-02T15:04"), last.Format("01-02T15:04"), n)
}
