package tick

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// decisions narrates a scenario by decide alone: what a database would hold is in memory, and a job gets a decision
// where it needs one by what the last has left behind.
type decisions struct {
	t      testing.TB
	s      *scenario
	parse  *parser
	shared []store.Schedule
	at     []time.Time // of the last change of each by a command
	pauses []store.Pause
	cases  []*casebook
}

// casebook is one job.
type casebook struct {
	job     *modelJob
	c       store.Case
	planned store.Job
	touched bool // a link was taken away
	woken   bool // a pause has changed
	ownAt   time.Time
	changed time.Time
	links   map[int]time.Time
	own     store.Schedule
	known   map[int64]store.Rule // as the plan knows them
	runs    []*store.Run
	gaps    []store.Gap
}

func (d *decisions) begin(s *scenario) {
	d.s, d.parse = s, newParser("", "")
	for i, r := range s.shared {
		d.shared, d.at = append(d.shared, created(r.schedule(sharedName(i)), s.start)), append(d.at, s.start)
	}
	for i := range s.jobs {
		j := &s.jobs[i]
		b := &casebook{job: j, changed: s.start, ownAt: s.start, links: map[int]time.Time{}, known: map[int64]store.Rule{}}
		b.c.Plan.JobID, b.c.Job = int64(j.seed)+1, asWritten(j.policy)
		b.c.Job.ID, b.c.Job.Name, b.c.Job.CreatedAt = int64(j.seed)+1, j.name(), s.start
		if j.own != nil {
			b.own = created(j.own.schedule(""), s.start)
		}
		for _, l := range j.links {
			b.links[l] = s.start
		}
		d.cases = append(d.cases, b)
	}
}

func created(c store.Schedule, at time.Time) store.Schedule {
	c.CreatedAt = at
	return c
}

func ruleInput(c *store.Schedule) string {
	return fmt.Sprintf("%s\x1f%s\x1f%s\x1f%s", c.Rule, c.Zone, c.Nonexistent, c.Ambiguous)
}

func (d *decisions) change(now time.Time, list []modelChange) {
	redefine := func(c *store.Schedule, at *time.Time, m modelChange) {
		became := created(m.rule.schedule(c.Name), c.CreatedAt)
		if !m.sql && ruleInput(c) != ruleInput(&became) {
			*at = now
		}
		*c = became
	}
	for _, c := range list {
		switch c.what {
		case "pause":
			p := store.Pause{Scope: c.scope, Subject: c.tag, Since: now, Until: c.until}
			switch c.scope {
			case "job":
				p.SubjectID = int64(c.job) + 1
			case "schedule":
				p.SubjectID = int64(c.shared) + 1
			case "owner":
				p.Subject = ""
			}
			d.pauses = append(d.pauses, p)
			d.wake(&p)
			continue
		case "resume":
			for i := range d.pauses {
				p := &d.pauses[i]
				if p.Scope == c.scope && p.ResumedAt.IsZero() && (c.scope != "tag" || p.Subject == c.tag) &&
					(c.scope != "job" || p.SubjectID == int64(c.job)+1) && (c.scope != "schedule" || p.SubjectID == int64(c.shared)+1) {
					p.ResumedAt, p.Missed = now, c.missed
					d.wake(p)
				}
			}
			continue
		case "rule":
			if c.shared >= 0 {
				redefine(&d.shared[c.shared], &d.at[c.shared], c)
			}
		}
		i := slices.IndexFunc(d.cases, func(b *casebook) bool { return b.job.seed == c.job })
		if i < 0 || !c.about() {
			continue
		}
		b := d.cases[i]
		switch c.what {
		case "rule":
			if redefine(&b.own, &b.ownAt, c); b.ownAt.Equal(now) {
				b.changed = now
			}
		case "link":
			b.links[c.shared], b.changed = now, now
		case "unlink":
			delete(b.links, c.shared)
			b.changed, b.touched = now, true
		case "policy":
			was := b.c.Job
			b.c.Job = asWritten(c.policy)
			b.c.Job.ID, b.c.Job.Name, b.c.Job.CreatedAt = was.ID, was.Name, was.CreatedAt
			if !c.sql {
				b.changed = now
			}
		case "request":
			b.add(store.Run{Occurrence: c.request, State: store.Waiting, ReadyAt: now})
		}
	}
}

func (b *casebook) covered(p *store.Pause) bool {
	_, linked := b.links[int(p.SubjectID)-1]
	return p.Scope == "all" || p.Scope == "owner" || p.Scope == "tag" && p.Subject == b.job.tag || p.Scope == "job" && p.SubjectID == b.c.Job.ID ||
		p.Scope == "schedule" && linked
}

func (d *decisions) wake(p *store.Pause) {
	for _, b := range d.cases {
		b.woken = b.woken || b.covered(p)
	}
}

func (b *casebook) add(r store.Run) {
	r.ID = fmt.Sprintf("%06d", len(b.runs))
	b.runs = append(b.runs, &r)
}

func (d *decisions) frozen(now time.Time) bool {
	return slices.ContainsFunc(d.pauses, func(p store.Pause) bool { return p.Scope == "all" && p.Holds(now) })
}

func (d *decisions) tick(now time.Time, startup string) {
	d.parse.startupID = startup
	if d.frozen(now) {
		return
	}
	for _, b := range d.cases {
		d.decide(now, b, false)
		for !b.job.worker && b.execute(now) {
			d.decide(now, b, true)
		}
	}
}

// decide puts the case together, and keeps what is decided.
func (d *decisions) decide(now time.Time, b *casebook, again bool) {
	c := &b.c
	c.Rules, c.Runs, c.Pauses = nil, nil, nil
	definitions := map[int64]store.Rule{}
	if b.job.own != nil {
		definitions[1000] = store.Rule{Linked: true, LinkedAt: d.s.start, NewInput: ruleInput(&b.own), Schedule: b.own, ChangedAt: b.ownAt}
	}
	for l, since := range b.links {
		definitions[int64(l)+1] = store.Rule{Linked: true, LinkedAt: since, NewInput: ruleInput(&d.shared[l]), Schedule: d.shared[l], ChangedAt: d.at[l]}
	}
	for _, id := range []int64{1, 2, 3, 1000} {
		r, linked := definitions[id]
		k, known := b.known[id]
		if r.ScheduleID, r.Input, r.Text, r.Ends, r.LinkPlanned = id, k.Input, k.Text, k.Ends, known; linked || known {
			c.Rules = append(c.Rules, r)
		}
	}
	for _, r := range b.runs {
		if r.SettledAt.IsZero() {
			c.Runs = append(c.Runs, *r)
		}
	}
	for _, p := range d.pauses {
		if b.covered(&p) || slices.ContainsFunc(c.Rules, func(r store.Rule) bool { return p.Scope == "schedule" && r.ScheduleID == p.SubjectID }) {
			c.Pauses = append(c.Pauses, p)
		}
	}
	decided := !c.Plan.DecidedThrough.IsZero()
	c.Stale = !decided || b.touched || planInput(&b.planned) != planInput(&c.Job)
	if c.Was = (store.Was{}); c.Stale && decided {
		c.Was = store.Was{Known: true, Disabled: b.planned.Disabled, NotBefore: b.planned.NotBefore, NotAfter: b.planned.NotAfter, MaxRuns: b.planned.MaxRuns,
			Start: b.planned.Start, StartZone: b.planned.StartZone}
	}
	c.ChangedAt = b.changed
	if again || b.needed(now) || c.Job.OnStartup && d.parse.startupID != "" && !c.Plan.KnowsStartup(d.parse.startupID) {
		d.keep(now, b, decide(now, c, d.parse))
	}
}

// needed tells what the indexes of the tables tell a pass.
func (b *casebook) needed(now time.Time) bool {
	n := b.c.Plan.NextRun
	return b.c.Stale || b.woken || !n.IsZero() && !n.After(now) || slices.ContainsFunc(b.c.Rules, func(r store.Rule) bool { return r.Changed() || !r.LinkPlanned }) ||
		slices.ContainsFunc(b.runs, func(r *store.Run) bool {
			return final(r.State) && r.SettledAt.IsZero() || r.State == store.Waiting && r.HeldBy == "" && !r.ReadyAt.After(now) || r.State == store.Running && !r.LeaseUntil.After(now)
		})
}

func (d *decisions) keep(now time.Time, b *casebook, made store.Decision) {
	if e := made.Plan.Parked; e != "" && !strings.Contains(e, misspelling) {
		d.t.Fatalf("%s: %s is parked: %s", now, b.job.name(), e)
	}
	if n := made.Plan.NextRun; !n.IsZero() && !n.After(now) {
		d.t.Fatalf("%s: the next decision for %s, at %s, is not to come", now, b.job.name(), n)
	}
	b.c.Plan, b.planned, b.touched, b.woken = made.Plan, b.c.Job, false, false
	for _, m := range made.Moved {
		i := slices.IndexFunc(b.runs, func(r *store.Run) bool { return r.ID == m.Run.ID })
		*b.runs[i] = m.Run
	}
	for _, r := range made.Made {
		b.add(r)
	}
	for _, id := range made.Cancel {
		i := slices.IndexFunc(b.runs, func(r *store.Run) bool { return r.ID == id })
		b.runs[i].CancelAt = now
	}
	if made.Pause != "" {
		d.pauses = append(d.pauses, store.Pause{Scope: "job", SubjectID: b.c.Job.ID, Since: now})
		b.woken = true
	}
	b.gaps = append(b.gaps, made.Gaps...)
	if made.Replan {
		clear(b.known)
		for _, r := range made.Rules {
			b.known[r.ScheduleID] = r
		}
	}
}

func (b *casebook) execute(now time.Time) (any bool) {
	p := &b.c.Job
	for _, r := range b.runs {
		if r.State != store.Queued {
			continue
		}
		any = true
		b.start(r, now)
		switch attempts := int(*p.Retry.Attempts); {
		case b.job.succeeds(r.Occurrence, r.Attempts):
			r.State, r.FinishedAt = store.Succeeded, now
		case attempts == 0 || r.Attempts < attempts:
			r.State, r.ReadyAt = store.Waiting, now.Add(backoff(p.Retry, r.Attempts))
		default:
			r.State, r.FinishedAt = store.Failed, now
		}
	}
	return any
}

func (b *casebook) start(r *store.Run, now time.Time) {
	r.State, r.Fence, r.Attempts, r.LeaseUntil = store.Running, r.Fence+1, r.Attempts+1, b.job.lease(now, hold{b.job.seed, r.Occurrence, r.Fence + 1})
	if r.StartedAt.IsZero() {
		r.StartedAt = now
	}
}

func (d *decisions) each(fn func(b *casebook, r *store.Run, h hold)) {
	for _, b := range d.cases {
		for _, r := range b.runs {
			fn(b, r, hold{b.job.seed, r.Occurrence, r.Fence})
		}
	}
}

func (d *decisions) take(now time.Time) (list []hold) {
	if d.frozen(now) {
		return nil
	}
	d.each(func(b *casebook, r *store.Run, h hold) {
		if r.State == store.Queued {
			b.start(r, now)
			h.fence = r.Fence
			list = append(list, h)
		}
	})
	return list
}

func (d *decisions) end(now time.Time, ended hold, state string) {
	d.each(func(_ *casebook, r *store.Run, h hold) {
		if h == ended {
			r.State, r.FinishedAt = state, now
		}
	})
}

func (d *decisions) stopped() (list []hold) {
	d.each(func(_ *casebook, r *store.Run, h hold) {
		if r.State == store.Running && !r.CancelAt.IsZero() {
			list = append(list, h)
		}
	})
	return list
}

func (d *decisions) ledger() map[uint64][]string {
	rulesOf := d.s.rules()
	all := map[uint64][]string{}
	for _, b := range d.cases {
		ran := map[int64]bool{}
		for _, r := range b.runs {
			ran[r.ScheduledFor.Unix()] = true
			all[b.job.seed] = append(all[b.job.seed], runLine(r))
		}
		var list []decided
		for _, g := range b.gaps {
			schedule := int(g.ScheduleID) - 1
			if g.ScheduleID == 1000 {
				schedule = -1
			}
			for _, at := range rulesOf[g.Rule].within(d.s.span, window{g.From, g.Through}) {
				list = append(list, decided{schedule, rulesOf[g.Rule], at, g.Reason})
			}
		}
		all[b.job.seed] = append(all[b.job.seed], stretches(d.s.span, list, ran)...)
	}
	return all
}
