package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// naive narrates a scenario by looking at every nominal time of every rule, one by one. It keeps
// everything, searches nothing, and has no plan, no index and no SQL. It knows about dbjobs only what
// the documentation of dbjobs promises.
type naive struct {
	s         *Scenario
	tales     []*tale
	shared    []definition
	calendars []Calendar // as they are now
	pauses    []*interval
	startup   string // that this tick reports
}

// definition is a rule as it is now, and the time of its last change by a command.
type definition struct {
	rule      Rule
	changedAt time.Time
}

// interval is a pause.
type interval struct {
	Change
	since, resumed time.Time
}

func (p *interval) end(forever time.Time) time.Time {
	e := forever
	if !p.resumed.IsZero() {
		e = p.resumed
	}
	if !p.Until.IsZero() && p.Until.Before(e) {
		e = p.Until
	}
	return e
}

// covers reports whether a pause is about a job with these policies.
func (p *interval) covers(t *tale, policy *store.Job) bool {
	switch p.Scope {
	case "tag":
		return slices.Contains(policy.Tags, p.Tag)
	case "schedule":
		return t.links[p.Shared] != nil
	case "job":
		return p.Job == t.job.Seed
	}
	return true
}

// tale is what happened to one job.
type tale struct {
	n           *naive
	job         *Job
	policy      store.Job
	policyAt    time.Time // of the last change by a command
	planned     store.Job // as the last decision knew it
	links       map[int]*link
	own         definition
	through     time.Time
	runs        []*store.Run
	numbers     int64
	lastFor     time.Time
	streak      int
	last        *store.Run // that ended last, and how
	lastState   string
	cut         bool      // a link was taken away
	asleep      bool      // it has no further nominal time: only a change or a run wakes it
	wakeAt      time.Time // if it is asleep: when a pause ends that holds runs
	woken       bool
	paused      bool // this decision has paused it
	decidedEver bool
	decidedAt   time.Time // the time of the last decision
	booted      map[string]bool
	decided     []Skipped
	skips       []skip
	stuck       bool // a rule did not parse when the last decision was made
}

// link is a schedule of a job, with the rule that the last decision knew.
type link struct {
	known    *Rule
	gone     bool
	linkedAt time.Time
}

// Skipped is a nominal time that did not run, and the reason.
type Skipped struct {
	Schedule int
	Rule     Rule
	At       time.Time
	Reason   string
}

// walk begins a naive walk.
func walk(s *Scenario) *naive {
	n := &naive{s: s, calendars: slices.Clone(s.Calendars)}
	for _, r := range s.Shared {
		n.shared = append(n.shared, definition{r, s.Start})
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		t := &tale{n: n, job: j, policy: j.Policy, policyAt: s.Start, links: map[int]*link{}, booted: map[string]bool{}}
		if j.Own != nil {
			t.own = definition{*j.Own, s.Start}
			t.links[-1] = &link{linkedAt: s.Start}
		}
		for _, l := range j.Links {
			t.links[l] = &link{linkedAt: s.Start}
		}
		n.tales = append(n.tales, t)
	}
	return n
}

func (t *tale) definition(schedule int) *definition {
	if schedule < 0 {
		return &t.own
	}
	return &t.n.shared[schedule]
}

// rule returns the rule of a schedule with the days of its calendar as they are now.
func (t *tale) rule(schedule int) Rule { return t.definition(schedule).rule.with(t.n.calendars) }

func (n *naive) Change(now time.Time, list []Change) {
	for _, c := range list {
		switch c.What {
		case "pause":
			n.pauses = append(n.pauses, &interval{c, now, time.Time{}})
		case "resume":
			for _, p := range n.pauses {
				if p.Scope == c.Scope && p.resumed.IsZero() && (c.Scope != "tag" || p.Tag == c.Tag) && (c.Scope != "schedule" || p.Shared == c.Shared) && (c.Scope != "job" || p.Job == c.Job) {
					p.resumed, p.Missed = now, c.Missed
					n.wakeAll(p)
				}
			}
		}
		if c.What == "pause" {
			n.wakeAll(n.pauses[len(n.pauses)-1])
		}
		if c.What == "rule" && c.Shared >= 0 {
			n.redefine(&n.shared[c.Shared], c, now)
		}
		if c.What == "calendar" {
			n.close(now, c)
		}
		for _, t := range n.tales {
			if t.job.Seed == c.Job && c.Scope == "" {
				t.change(now, c)
			}
		}
	}
}

func (n *naive) redefine(d *definition, c Change, now time.Time) {
	if d.rule.String() != c.Rule.String() && !c.SQL {
		d.changedAt = now
	}
	d.rule = c.Rule
}

// close changes a calendar. If a command changes it, the schedules that name it have changed at that time, too.
func (n *naive) close(now time.Time, c Change) {
	was := n.calendars[c.Calendar-1]
	// This is a copy: rules that were planned keep the days that they had.
	n.calendars = slices.Clone(n.calendars)
	n.calendars[c.Calendar-1] = c.Closed
	if c.SQL || was.String() == c.Closed.String() {
		return
	}
	for i := range n.shared {
		n.shared[i].date(c.Calendar, now)
	}
	for _, t := range n.tales {
		t.own.date(c.Calendar, now)
	}
}

func (d *definition) date(calendar int, now time.Time) {
	if d.rule.calendar == calendar {
		d.changedAt = now
	}
}

func (n *naive) wakeAll(p *interval) {
	for _, t := range n.tales {
		t.woken = t.woken || p.covers(t, &t.policy)
	}
}

func (t *tale) change(now time.Time, c Change) {
	switch c.What {
	case "rule":
		if c.Shared < 0 {
			if t.own.rule.String() != c.Rule.String() && !c.SQL {
				t.policyAt = now // a command that changes the rule changes the job, whatever SQL did to it before
			}
			t.n.redefine(&t.own, c, now)
		}
	case "link":
		l := t.links[c.Shared]
		if l == nil {
			l = &link{}
			t.links[c.Shared] = l
		}
		l.gone, l.linkedAt, t.policyAt, t.woken = false, now, now, true
	case "unlink":
		if l := t.links[c.Shared]; l != nil && l.known == nil {
			delete(t.links, c.Shared) // no tick has seen it
		} else if l != nil {
			l.gone = true
		}
		t.cut, t.policyAt, t.woken = true, now, true
	case "policy":
		t.policy = c.Policy
		if !c.SQL {
			t.policyAt = now
		}
	case "skip":
		t.skip(now, c)
	case "unskip":
		t.unskip(now, c)
	case "request":
		t.woken = true
		t.runs = append(t.runs, &store.Run{Occurrence: c.Request, State: store.Waiting, ReadyAt: now, CreatedAt: now, Queue: "request"})
	case "cancel", "retry":
		if r := Nth(t.runs, c); r != nil {
			Ask(r, c.What, now)
			t.woken = t.woken || r.State != store.Running // its holder ends the run
		}
	}
}

// frozen reports whether everything is paused.
func (n *naive) frozen(now time.Time) bool {
	return slices.ContainsFunc(n.pauses, func(p *interval) bool {
		return p.Scope == "all" && p.resumed.IsZero() && (p.Until.IsZero() || p.Until.After(now))
	})
}

func (n *naive) Tick(now time.Time, startup string) []Hold {
	n.startup = startup
	if n.frozen(now) {
		return n.stopped()
	}
	for _, t := range n.tales {
		for again := t.decide(now); again && !t.job.Worker; again = t.execute(now) && t.decide(now) {
		}
	}
	return n.stopped()
}

// execute executes the runs that a tick may take. Each run ends at once.
func (t *tale) execute(now time.Time) (any bool) {
	for _, r := range t.runs {
		if r.State != store.Queued {
			continue
		}
		any = true
		t.start(r, now)
		switch attempts := int(*t.policy.Retry.Attempts); {
		case t.job.Succeeds(r.Occurrence, r.Attempts):
			r.State, r.FinishedAt = store.Succeeded, now
		case attempts == 0 || r.Attempt < attempts:
			r.State, r.ReadyAt = store.Waiting, now.Add(Backoff(t.policy.Retry, r.Attempt))
		default:
			r.State, r.FinishedAt = store.Failed, now
		}
	}
	return any
}

func (t *tale) start(r *store.Run, now time.Time) {
	r.State, r.Fence, r.Attempt, r.Attempts = store.Running, r.Fence+1, r.Attempt+1, r.Attempts+1
	if r.StartedAt.IsZero() {
		r.StartedAt = now
	}
}

func (n *naive) Take(now time.Time) []Hold {
	var list []Hold
	if n.frozen(now) {
		return nil
	}
	for _, t := range n.tales {
		for _, r := range t.runs {
			if r.State == store.Queued {
				t.start(r, now)
				h := Hold{t.job.Seed, r.Occurrence, r.Fence}
				r.LeaseUntil = t.job.Lease(now, h)
				list = append(list, h)
			}
		}
	}
	return list
}

func (n *naive) End(now time.Time, h Hold, state string) {
	for _, t := range n.tales {
		for _, r := range t.runs {
			if t.job.Seed == h.Job && r.Occurrence == h.Occurrence {
				r.State, r.FinishedAt = state, now
				t.woken = true
			}
		}
	}
}

func (n *naive) stopped() []Hold {
	var list []Hold
	for _, t := range n.tales {
		for _, r := range t.runs {
			if r.State == store.Running && !r.CancelAt.IsZero() {
				list = append(list, Hold{t.job.Seed, r.Occurrence, r.Fence})
			}
		}
	}
	return list
}

func (n *naive) Ledger() map[uint64][]string {
	all := map[uint64][]string{}
	for _, t := range n.tales {
		var lines []string
		ran := map[int64]bool{}
		for _, r := range t.runs {
			ran[r.ScheduledFor.Unix()] = true
			lines = append(lines, RunLine(r))
		}
		all[t.job.Seed] = append(lines, Stretches(n.s.Span, t.decided, ran)...)
	}
	return all
}

// Stretches returns the unbroken stretches of nominal times with one reason, as lines. A time that was
// decided twice is a line, too.
func Stretches(span Window, list []Skipped, ran map[int64]bool) []string {
	type rule struct {
		schedule  int
		canonical string
	}
	by := map[rule][]Skipped{}
	for _, d := range list {
		if !ran[d.At.Unix()] {
			k := rule{d.Schedule, d.Rule.canonical()}
			by[k] = append(by[k], d)
		}
	}
	var lines []string
	for _, k := range slices.SortedFunc(maps.Keys(by), func(x, y rule) int {
		return cmp.Or(cmp.Compare(x.schedule, y.schedule), cmp.Compare(x.canonical, y.canonical))
	}) {
		times := by[k][0].Rule.times(span)
		part := by[k]
		slices.SortStableFunc(part, func(x, y Skipped) int { return x.At.Compare(y.At) })
		first, place := 0, after(times, part[0].At)
		for i := 1; i <= len(part); i++ {
			next := 0
			if i < len(part) {
				if next = after(times, part[i].At); part[i].At.Equal(part[i-1].At) {
					lines = append(lines, fmt.Sprintf("TWICE: schedule %d, %s", k.schedule, part[i].At))
				}
			}
			if i == len(part) || part[i].Reason != part[first].Reason || next != place+1 {
				lines = append(lines, gapLine(fmt.Sprint(k.schedule), fmt.Sprintf("%q", k.canonical), part[first].Reason, part[first].At, part[i-1].At, i-first))
				first = i
			}
			place = next
		}
	}
	return lines
}
