package tick

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// naive narrates a scenario by looking at every nominal time of every rule, one by one. It keeps all, seeks nothing, and
// has no plan, no index and no SQL; what it knows of dbjobs is what its documentation promises.
type naive struct {
	s       *scenario
	tales   []*tale
	shared  []definition
	pauses  []*interval
	startup string // that this tick reports
}

// definition is a rule as it stands, and since when by a command.
type definition struct {
	rule      modelRule
	changedAt time.Time
}

// interval is a pause.
type interval struct {
	modelChange
	since, resumed time.Time
}

func (p *interval) end(forever time.Time) time.Time {
	e := forever
	if !p.resumed.IsZero() {
		e = p.resumed
	}
	if !p.until.IsZero() && p.until.Before(e) {
		e = p.until
	}
	return e
}

func (p *interval) covers(t *tale) bool {
	switch p.scope {
	case "tag":
		return p.tag == t.job.tag
	case "schedule":
		return t.links[p.shared] != nil
	case "job":
		return p.job == t.job.seed
	}
	return true
}

// tale is what became of one job.
type tale struct {
	n           *naive
	job         *modelJob
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
	cut         bool      // a link was taken away
	asleep      bool      // no nominal time is to come: nothing but a change or a run wakes it
	wakeAt      time.Time // of one asleep: when a pause ends that holds runs
	woken       bool
	paused      bool // by itself, in this decision
	decidedEver bool
	booted      map[string]bool
	decided     []decided
}

// link is a schedule of a job, with the rule that the last decision knew.
type link struct {
	known    *modelRule
	gone     bool
	linkedAt time.Time
}

// decided is what became of a nominal time that did not run.
type decided struct {
	schedule int
	rule     modelRule
	at       time.Time
	reason   string
}

func (n *naive) begin(s *scenario) {
	n.s = s
	for _, r := range s.shared {
		n.shared = append(n.shared, definition{r, s.start})
	}
	for i := range s.jobs {
		j := &s.jobs[i]
		t := &tale{n: n, job: j, policy: j.policy, policyAt: s.start, links: map[int]*link{}, booted: map[string]bool{}}
		if j.own != nil {
			t.own = definition{*j.own, s.start}
			t.links[-1] = &link{linkedAt: s.start}
		}
		for _, l := range j.links {
			t.links[l] = &link{linkedAt: s.start}
		}
		n.tales = append(n.tales, t)
	}
}

func (t *tale) definition(schedule int) *definition {
	if schedule < 0 {
		return &t.own
	}
	return &t.n.shared[schedule]
}

func (n *naive) change(now time.Time, list []modelChange) {
	for _, c := range list {
		switch c.what {
		case "pause":
			n.pauses = append(n.pauses, &interval{c, now, time.Time{}})
		case "resume":
			for _, p := range n.pauses {
				if p.scope == c.scope && p.resumed.IsZero() && (c.scope != "tag" || p.tag == c.tag) && (c.scope != "schedule" || p.shared == c.shared) && (c.scope != "job" || p.job == c.job) {
					p.resumed, p.missed = now, c.missed
					n.wakeAll(p)
				}
			}
		}
		if c.what == "pause" {
			n.wakeAll(n.pauses[len(n.pauses)-1])
		}
		if c.what == "rule" && c.shared >= 0 {
			n.redefine(&n.shared[c.shared], c, now)
		}
		for _, t := range n.tales {
			if t.job.seed == c.job && c.scope == "" {
				t.change(now, c)
			}
		}
	}
}

func (n *naive) redefine(d *definition, c modelChange, now time.Time) {
	if d.rule.String() != c.rule.String() && !c.sql {
		d.changedAt = now
	}
	d.rule = c.rule
}

func (n *naive) wakeAll(p *interval) {
	for _, t := range n.tales {
		t.woken = t.woken || p.covers(t)
	}
}

func (t *tale) change(now time.Time, c modelChange) {
	switch c.what {
	case "rule":
		if c.shared < 0 {
			if t.own.rule.String() != c.rule.String() && !c.sql {
				t.policyAt = now // a command that changes the rule changes the job, whatever SQL did to it before
			}
			t.n.redefine(&t.own, c, now)
		}
	case "link":
		l := t.links[c.shared]
		if l == nil {
			l = &link{}
			t.links[c.shared] = l
		}
		l.gone, l.linkedAt, t.policyAt, t.woken = false, now, now, true
	case "unlink":
		if l := t.links[c.shared]; l != nil && l.known == nil {
			delete(t.links, c.shared) // no tick has seen it
		} else if l != nil {
			l.gone = true
		}
		t.cut, t.policyAt, t.woken = true, now, true
	case "policy":
		t.policy = c.policy
		if !c.sql {
			t.policyAt = now
		}
	case "request":
		t.woken = true
		t.runs = append(t.runs, &store.Run{Occurrence: c.request, State: store.Waiting, ReadyAt: now, Queue: "request"})
	}
}

// frozen: everything is paused.
func (n *naive) frozen(now time.Time) bool {
	return slices.ContainsFunc(n.pauses, func(p *interval) bool {
		return p.scope == "all" && p.resumed.IsZero() && (p.until.IsZero() || p.until.After(now))
	})
}

func (n *naive) tick(now time.Time, startup string) {
	n.startup = startup
	if n.frozen(now) {
		return
	}
	for _, t := range n.tales {
		for again := t.decide(now); again && !t.job.worker; again = t.execute(now) && t.decide(now) {
		}
	}
}

// execute does what a tick does with the runs that it may take: each is over at once.
func (t *tale) execute(now time.Time) (any bool) {
	for _, r := range t.runs {
		if r.State != store.Queued {
			continue
		}
		any = true
		t.start(r, now)
		switch attempts := int(*t.policy.Retry.Attempts); {
		case t.job.succeeds(r.Occurrence, r.Attempts):
			r.State, r.FinishedAt = store.Succeeded, now
		case attempts == 0 || r.Attempts < attempts:
			backoff := min(time.Duration(*t.policy.Retry.Backoff)<<min(r.Attempts-1, 16), time.Duration(*t.policy.Retry.MaxBackoff))
			r.State, r.ReadyAt = store.Waiting, now.Add(backoff)
		default:
			r.State, r.FinishedAt = store.Failed, now
		}
	}
	return any
}

func (t *tale) start(r *store.Run, now time.Time) {
	r.State, r.Fence, r.Attempts = store.Running, r.Fence+1, r.Attempts+1
	if r.StartedAt.IsZero() {
		r.StartedAt = now
	}
}

func (n *naive) take(now time.Time) []hold {
	var list []hold
	if n.frozen(now) {
		return nil
	}
	for _, t := range n.tales {
		for _, r := range t.runs {
			if r.State == store.Queued {
				t.start(r, now)
				h := hold{t.job.seed, r.Occurrence, r.Fence}
				r.LeaseUntil = t.job.lease(now, h)
				list = append(list, h)
			}
		}
	}
	return list
}

func (n *naive) end(now time.Time, h hold, state string) {
	for _, t := range n.tales {
		for _, r := range t.runs {
			if t.job.seed == h.job && r.Occurrence == h.occurrence {
				r.State, r.FinishedAt = state, now
				t.woken = true
			}
		}
	}
}

func (n *naive) stopped() []hold {
	var list []hold
	for _, t := range n.tales {
		for _, r := range t.runs {
			if r.State == store.Running && !r.CancelAt.IsZero() {
				list = append(list, hold{t.job.seed, r.Occurrence, r.Fence})
			}
		}
	}
	return list
}

func (n *naive) ledger() map[uint64][]string {
	all := map[uint64][]string{}
	for _, t := range n.tales {
		var lines []string
		ran := map[int64]bool{}
		for _, r := range t.runs {
			ran[r.ScheduledFor.Unix()] = true
			lines = append(lines, runLine(r))
		}
		all[t.job.seed] = append(lines, stretches(n.s.span, t.decided, ran)...)
	}
	return all
}

// stretches are the unbroken ones of nominal times with one reason, as lines; a time that was decided twice is one, too.
func stretches(span window, list []decided, ran map[int64]bool) []string {
	type rule struct {
		schedule  int
		canonical string
	}
	by := map[rule][]decided{}
	for _, d := range list {
		if !ran[d.at.Unix()] {
			k := rule{d.schedule, d.rule.canonical()}
			by[k] = append(by[k], d)
		}
	}
	var lines []string
	for _, k := range slices.SortedFunc(maps.Keys(by), func(x, y rule) int {
		return cmp.Or(cmp.Compare(x.schedule, y.schedule), cmp.Compare(x.canonical, y.canonical))
	}) {
		times := by[k][0].rule.times(span)
		part := by[k]
		slices.SortStableFunc(part, func(x, y decided) int { return x.at.Compare(y.at) })
		first, place := 0, after(times, part[0].at)
		for i := 1; i <= len(part); i++ {
			next := 0
			if i < len(part) {
				if next = after(times, part[i].at); part[i].at.Equal(part[i-1].at) {
					lines = append(lines, fmt.Sprintf("TWICE: schedule %d, %s", k.schedule, part[i].at))
				}
			}
			if i == len(part) || part[i].reason != part[first].reason || next != place+1 {
				lines = append(lines, gapLine(fmt.Sprint(k.schedule), fmt.Sprintf("%q", k.canonical), part[first].reason, part[first].at, part[i-1].at, i-first))
				first = i
			}
			place = next
		}
	}
	return lines
}
