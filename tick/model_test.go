package tick

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// A scenario is what happens to some jobs of one database over months: ticks at odd times, and what people do between
// them. It is data, so that it can be told by three narrators that know nothing of each other (the naive walk, decide
// in memory, and whole passes on SQLite), and be made smaller.
type scenario struct {
	span  window
	start time.Time
	// The schedules that all jobs may share, and the jobs, as they are made at the start. Jobs are known by their seed.
	shared []modelRule
	jobs   []modelJob
	steps  []modelStep
}

// modelJob is a job as it is made.
type modelJob struct {
	seed   uint64
	policy store.Job // without name, schedules and steps
	own    *modelRule
	links  []int // of the shared schedules
	tag    string
	worker bool // its runs are taken by a worker, and take their time; else the tick executes them at once
	fails  int  // per cent of the attempts
}

func (j *modelJob) name() string { return fmt.Sprintf("job %d", j.seed) }

// modelStep is an instant at which there is a tick, or at which people change something.
type modelStep struct {
	at      time.Time
	changes []modelChange // none: it is a tick
	startup string        // the identity that the tick reports
}

// modelChange is one thing that somebody does.
type modelChange struct {
	what    string // pause, resume, rule, link, unlink, policy, request
	sql     bool   // rule, policy: by plain SQL, which says nothing of when
	scope   string // of a pause: all, owner, tag, schedule, job
	job     uint64 // whom it is about, as the case may be
	shared  int    // the shared schedule it is about; below 0: the job's own
	tag     string
	until   time.Time
	missed  bool // resumed with what was missed
	rule    modelRule
	policy  store.Job
	request string // the occurrence
}

func (c modelChange) String() string {
	switch c.what {
	case "rule":
		return fmt.Sprintf("rule of schedule %d, job %d, sql %t: %s", c.shared, c.job, c.sql, c.rule)
	case "policy":
		return fmt.Sprintf("policy of job %d, sql %t: %s", c.job, c.sql, policyText(&c.policy))
	case "pause":
		return fmt.Sprintf("pause %s (job %d, schedule %d, tag %s) until %s", c.scope, c.job, c.shared, c.tag, c.until.Format(time.DateTime))
	case "resume":
		return fmt.Sprintf("resume %s (job %d, schedule %d, tag %s), missed %t", c.scope, c.job, c.shared, c.tag, c.missed)
	}
	return fmt.Sprintf("%s job %d, schedule %d %s", c.what, c.job, c.shared, c.request)
}

// String tells the scenario, so that it can be read.
func (s *scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "start %s\n", s.start.Format(time.DateTime))
	for i, r := range s.shared {
		fmt.Fprintf(&b, "schedule %d: %s\n", i, r)
	}
	for i := range s.jobs {
		j := &s.jobs[i]
		fmt.Fprintf(&b, "%s: own %v, schedules %v, tag %s, worker %t, fails %d%%; %s\n", j.name(), j.own, j.links, j.tag, j.worker, j.fails, policyText(&j.policy))
	}
	for _, st := range s.steps {
		if len(st.changes) == 0 {
			fmt.Fprintf(&b, "%s tick %s\n", st.at.Format(time.DateTime), st.startup)
		}
		for _, c := range st.changes {
			fmt.Fprintf(&b, "%s %s\n", st.at.Format(time.DateTime), c)
		}
	}
	return b.String()
}

// crowd is how many seeds share a database, and with it the ticks, the outages, and what concerns all of them.
const crowd = 64

// newScenario is that of so many seeds from first on, which has to be a multiple of crowd. Equal seeds give equal jobs.
func newScenario(first uint64, jobs int) *scenario {
	rng := rand.New(rand.NewPCG(first/crowd, 13))
	s := &scenario{span: spans[rng.IntN(len(spans))]}
	s.start = s.span.from.AddDate(0, 0, 10).Add(time.Duration(rng.IntN(15*86400)) * time.Second)
	for range 3 {
		s.shared = append(s.shared, randomRule(rng, s.span))
	}
	now, most := s.start, 30+20*int(first/crowd%4) // the first are short: they are tried with every change of the program
	boots := 1
	for end := s.span.to.AddDate(0, 0, -2); len(s.steps) < most; {
		switch x := rng.IntN(20); { // the trigger, and when it was down
		case x < 11:
			now = now.Add(time.Duration(1+rng.IntN(90*60)) * time.Second)
		case x < 14: // to the minute
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
		st := modelStep{at: now}
		if rng.IntN(3) > 0 {
			st.startup = fmt.Sprintf("boot %d", boots)
		}
		s.steps = append(s.steps, st)
		if rng.IntN(4) == 0 {
			now = now.Add(time.Duration(1+rng.IntN(40*60)) * time.Second)
			s.steps = append(s.steps, modelStep{at: now, changes: s.everybodys(rng, now)})
		}
	}
	for i := range uint64(jobs) {
		s.addJob(rand.New(rand.NewPCG(first+i, 7)), first+i)
	}
	s.steps = slices.DeleteFunc(s.steps, func(st modelStep) bool { return st.changes != nil && len(st.changes) == 0 })
	return s
}

// everybodys are changes that concern several jobs; an empty list where there is none, for the jobs' own.
func (s *scenario) everybodys(rng *rand.Rand, now time.Time) []modelChange {
	changes := []modelChange{}
	c := modelChange{scope: pick(rng, "all", "owner", "tag", "tag", "schedule", "schedule"), shared: rng.IntN(len(s.shared)), tag: pick(rng, "red", "blue")}
	switch rng.IntN(6) {
	case 0:
		c.what = "pause"
		if rng.IntN(2) == 0 || c.scope == "all" {
			c.until = now.Add(time.Duration(1+rng.IntN(3*86400)) * time.Second)
		}
		changes = append(changes, c)
	case 1:
		c.what, c.missed = "resume", rng.IntN(3) == 0
		for _, c.scope = range []string{"all", "owner", "tag", "schedule"} {
			changes = append(changes, c)
		}
	case 2:
		changes = append(changes, modelChange{what: "rule", shared: c.shared, rule: randomRule(rng, s.span), sql: rng.IntN(2) == 0}.misspelt(rng))
	}
	return changes
}

func (s *scenario) addJob(rng *rand.Rand, seed uint64) {
	j := modelJob{seed: seed, policy: randomPolicy(rng, s.start), tag: pick(rng, "", "red", "blue"), worker: rng.IntN(8) > 0}
	if rng.IntN(3) == 0 {
		j.fails = rng.IntN(60)
	}
	if j.worker { // it does not try again
		*j.policy.Retry.Attempts = 1
	}
	if rng.IntN(3) > 0 {
		r := randomRule(rng, s.span)
		j.own = &r
	}
	for i := range s.shared {
		if rng.IntN(5) == 0 || j.own == nil && i == len(s.shared)-1 && len(j.links) == 0 {
			j.links = append(j.links, i)
		}
	}
	if j.own == nil {
		j.policy = withoutStart(j.policy)
	}
	s.jobs = append(s.jobs, j)
	linked := map[int]bool{}
	for _, i := range j.links {
		linked[i] = true
	}
	for i := range s.steps {
		st := &s.steps[i]
		if st.changes == nil || rng.IntN(3) > 0 {
			continue
		}
		c := modelChange{job: seed, shared: -1, sql: rng.IntN(2) == 0}
		switch shared := rng.IntN(len(s.shared)); rng.IntN(8) {
		case 0, 1:
			c.what, c.scope = "pause", "job"
			if rng.IntN(2) == 0 {
				c.until = st.at.Add(time.Duration(1+rng.IntN(2*86400)) * time.Second)
			}
		case 2, 3:
			c.what, c.scope, c.missed = "resume", "job", rng.IntN(3) == 0
		case 4:
			if j.own == nil {
				continue
			}
			c.what, c.rule = "rule", randomRule(rng, s.span)
			c = c.misspelt(rng)
		case 5:
			c.what, c.shared, c.sql = "link", shared, false
			if linked[shared] {
				c.what = "unlink"
			}
			linked[shared] = !linked[shared]
		case 6:
			c.what, c.policy = "policy", randomPolicy(rng, st.at)
			if j.own == nil {
				c.policy = withoutStart(c.policy)
			}
			if j.worker {
				*c.policy.Retry.Attempts = 1
			}
		case 7:
			c.what, c.request = "request", fmt.Sprintf("now:%d-%d", seed, i)
		}
		st.changes = append(st.changes, c)
	}
}

// A narrator tells what becomes of a scenario. Each of its methods is called with the time that it is.
type narrator interface {
	begin(s *scenario)
	change(now time.Time, list []modelChange)
	tick(now time.Time, startup string)      // one pass, with the runs that it executes itself
	take(now time.Time) []hold               // a worker takes all that it may
	end(now time.Time, h hold, state string) // and ends a run
	stopped() []hold                         // those that it is to stop
	ledger() map[uint64][]string             // by job, in an order of its own
}

// hold is a run in the hands of the worker.
type hold struct {
	job        uint64
	occurrence string
	fence      int // which of the deliveries
}

// tell lets a narrator tell a scenario, and gives the ledger that it comes to, sorted, by job.
func tell(s *scenario, n narrator) map[uint64][]string {
	jobs := map[uint64]*modelJob{}
	for i := range s.jobs {
		jobs[s.jobs[i].seed] = &s.jobs[i]
	}
	held := map[hold]time.Time{} // until when
	n.begin(s)
	for _, st := range s.steps {
		order := slices.SortedFunc(maps.Keys(held), func(x, y hold) int {
			return compareAll(held[x].Compare(held[y]), int(x.job)-int(y.job), strings.Compare(x.occurrence, y.occurrence))
		})
		for _, h := range order {
			if end := held[h]; !end.After(st.at) {
				state := store.Failed
				if jobs[h.job].succeeds(h.occurrence, 1) {
					state = store.Succeeded
				}
				n.end(end, h, state)
				delete(held, h)
			}
		}
		if len(st.changes) > 0 {
			n.change(st.at, st.changes)
			continue
		}
		n.tick(st.at, st.startup)
		for _, h := range n.stopped() {
			if _, hears := held[h]; hears {
				n.end(st.at, h, store.Cancelled)
				delete(held, h)
			}
		}
		for _, h := range n.take(st.at) {
			if jobs[h.job].vanishes(h) {
				continue
			}
			held[h] = st.at.Add(jobs[h.job].duration(h.occurrence))
		}
	}
	l := n.ledger()
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

// runLine is a run as the ledgers are compared.
func runLine(r *store.Run) string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.UTC().Format("01-02T15:04:05.999999")
	}
	return fmt.Sprintf("run %4d %s %s held_by=%s for=%s [%s %s) ready=%s attempts=%d started=%s finished=%s delivered %d, lost %d, settled=%t", r.Number, r.Occurrence, r.State, r.HeldBy,
		at(r.ScheduledFor), at(r.IntervalStart), at(r.IntervalEnd), at(r.ReadyAt), r.Attempts, at(r.StartedAt), at(r.FinishedAt), r.Fence, r.Losses, !r.SettledAt.IsZero())
}

// gapLine is an unbroken stretch of a rule's nominal times that one reason kept from running.
func gapLine(schedule, rule, reason string, first, last time.Time, n int) string {
	return fmt.Sprintf("gap %s %s %s %s..%s %d", schedule, rule, reason, first.Format("01-02T15:04"), last.Format("01-02T15:04"), n)
}
