package decide_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/decide/model"
)

// decisions narrates a scenario by decide alone: what a database would hold is in memory, and a job gets a decision
// where it needs one by what the last has left behind.
type decisions struct {
	t      testing.TB
	s      *model.Scenario
	pass   *decide.Pass
	shared []store.Schedule
	at     []time.Time // of the last change of each by a command
	days   map[string]*store.Calendar
	pauses []store.Pause
	cases  []*casebook
}

// casebook is one job.
type casebook struct {
	job     *model.Job
	c       store.Snapshot
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

func newDecisions(t testing.TB, s *model.Scenario) model.Narrator {
	d := &decisions{t: t, s: s, pass: &decide.Pass{Heartbeat: 30 * time.Second}, days: map[string]*store.Calendar{}}
	for i, c := range s.Calendars {
		d.close(i+1, c)
	}
	for i, r := range s.Shared {
		d.shared, d.at = append(d.shared, created(r.Schedule(model.SharedName(i)), s.Start)), append(d.at, s.Start)
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		b := &casebook{job: j, changed: s.Start, ownAt: s.Start, links: map[int]time.Time{}, known: map[int64]store.Rule{}}
		b.c.Plan.JobID, b.c.Job = int64(j.Seed)+1, model.AsWritten(j.Policy)
		b.c.Job.ID, b.c.Job.Name, b.c.Job.CreatedAt = int64(j.Seed)+1, j.Name(), s.Start
		if j.Own != nil {
			b.own = created(j.Own.Schedule(""), s.Start)
		}
		for _, l := range j.Links {
			b.links[l] = s.Start
		}
		d.cases = append(d.cases, b)
	}
	return d
}

func created(c store.Schedule, at time.Time) store.Schedule {
	c.CreatedAt = at
	return c
}

func ruleInput(c *store.Schedule) string {
	return fmt.Sprintf("%s\x1f%s\x1f%s\x1f%s\x1f%s\x1f%s", c.Rule, c.Zone, c.Nonexistent, c.Ambiguous, c.Calendar, c.OnHoliday)
}

func (d *decisions) Change(now time.Time, list []model.Change) {
	redefine := func(c *store.Schedule, at *time.Time, m model.Change) {
		became := created(m.Rule.Schedule(c.Name), c.CreatedAt)
		if !m.SQL && ruleInput(c) != ruleInput(&became) {
			*at = now
		}
		*c = became
	}
	for _, c := range list {
		switch c.What {
		case "pause":
			p := store.Pause{Scope: c.Scope, Subject: c.Tag, Since: now, Until: c.Until}
			switch c.Scope {
			case "job":
				p.SubjectID = int64(c.Job) + 1
			case "schedule":
				p.SubjectID = int64(c.Shared) + 1
			case "owner":
				p.Subject = ""
			}
			d.pauses = append(d.pauses, p)
			d.wake(&p)
			continue
		case "calendar":
			d.closed(now, c)
			continue
		case "resume":
			for i := range d.pauses {
				p := &d.pauses[i]
				if p.Scope == c.Scope && p.ResumedAt.IsZero() && (c.Scope != "tag" || p.Subject == c.Tag) &&
					(c.Scope != "job" || p.SubjectID == int64(c.Job)+1) && (c.Scope != "schedule" || p.SubjectID == int64(c.Shared)+1) {
					p.ResumedAt, p.Missed = now, c.Missed
					d.wake(p)
				}
			}
			continue
		case "rule":
			if c.Shared >= 0 {
				redefine(&d.shared[c.Shared], &d.at[c.Shared], c)
			}
		}
		i := slices.IndexFunc(d.cases, func(b *casebook) bool { return b.job.Seed == c.Job })
		if i < 0 || !c.About() {
			continue
		}
		b := d.cases[i]
		switch c.What {
		case "rule":
			if redefine(&b.own, &b.ownAt, c); b.ownAt.Equal(now) {
				b.changed = now
			}
		case "link":
			b.links[c.Shared], b.changed = now, now
		case "unlink":
			delete(b.links, c.Shared)
			b.changed, b.touched = now, true
		case "policy":
			was := b.c.Job
			b.c.Job = model.AsWritten(c.Policy)
			b.c.Job.ID, b.c.Job.Name, b.c.Job.CreatedAt = was.ID, was.Name, was.CreatedAt
			if !c.SQL {
				b.changed = now
			}
		case "skip", "unskip":
			d.skip(now, b, c)
		case "request":
			b.add(store.Run{Occurrence: c.Request, State: store.Waiting, ReadyAt: now, CreatedAt: now})
		case "cancel", "retry":
			if r := model.Nth(b.runs, c); r != nil {
				model.Ask(r, c.What, now)
				b.woken = b.woken || r.State != store.Running
			}
		}
	}
}

func (b *casebook) covered(p *store.Pause) bool {
	_, linked := b.links[int(p.SubjectID)-1]
	return p.Scope == "all" || p.Scope == "owner" || p.Scope == "tag" && slices.Contains(b.c.Job.Tags, p.Subject) || p.Scope == "job" && p.SubjectID == b.c.Job.ID ||
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

func (d *decisions) Tick(now time.Time, startup string) []model.Hold {
	d.pass.StartupID = startup
	if d.frozen(now) {
		return d.stopped()
	}
	for _, b := range d.cases {
		d.decide(now, b, false)
		for !b.job.Worker && b.execute(now) {
			d.decide(now, b, true)
		}
	}
	return d.stopped()
}

// decide puts the case together, and keeps what is decided.
func (d *decisions) decide(now time.Time, b *casebook, again bool) {
	c := &b.c
	c.Rules, c.Runs, c.Pauses = nil, nil, nil
	definitions := d.definitions(b)
	for _, id := range []int64{1, 2, 3, 1000} {
		r, linked := definitions[id]
		k, known := b.known[id]
		if r.ScheduleID, r.Input, r.Text, r.Ends, r.PlannedAt, r.LinkPlanned = id, k.Input, k.Text, k.Ends, k.ChangedAt, known; linked || known {
			c.Rules = append(c.Rules, r)
		}
	}
	for _, r := range b.runs {
		if r.SettledAt.IsZero() {
			c.Runs = append(c.Runs, *r)
		}
	}
	decided := !c.Plan.DecidedThrough.IsZero()
	c.Stale = !decided || b.touched || !model.SamePolicies(&b.planned, &c.Job)
	if c.Planned = (store.PlannedPolicies{}); c.Stale && decided {
		c.Planned = b.planned.PlannedAs()
	}
	for _, p := range d.pauses {
		if p.Covers(c) {
			c.Pauses = append(c.Pauses, p)
		}
	}
	c.ChangedAt = b.changed
	if again || b.needed(now) || c.Job.OnStartup && d.pass.StartupID != "" && !c.Plan.KnowsStartup(d.pass.StartupID) {
		d.keep(now, b, decide.Job(now, c, d.pass))
	}
}

// definitions are the schedules of a job as they stand, by their ids.
func (d *decisions) definitions(b *casebook) map[int64]store.Rule {
	list := map[int64]store.Rule{}
	if b.job.Own != nil {
		list[1000] = d.rule(1000, b.own, d.s.Start, b.ownAt)
	}
	for l, since := range b.links {
		list[int64(l)+1] = d.rule(int64(l)+1, d.shared[l], since, d.at[l])
	}
	return list
}

// needed tells what the indexes of the tables tell a pass.
func (b *casebook) needed(now time.Time) bool {
	n := b.c.Plan.NextRun
	return b.c.Stale || b.woken || !n.IsZero() && !n.After(now) || slices.ContainsFunc(b.c.Rules, func(r store.Rule) bool { return r.Changed() || !r.LinkPlanned }) ||
		slices.ContainsFunc(b.runs, func(r *store.Run) bool {
			return r.Ended() && r.SettledAt.IsZero() || r.State == store.Waiting && r.HeldBy == "" && !r.ReadyAt.After(now) || r.State == store.Running && !r.LeaseUntil.After(now)
		})
}

func (d *decisions) keep(now time.Time, b *casebook, made store.Decision) {
	if e := made.Plan.Parked; e != "" && !strings.Contains(e, model.Misspelling) {
		d.t.Fatalf("%s: %s is parked: %s", now, b.job.Name(), e)
	}
	if n := made.Plan.NextRun; !n.IsZero() && !n.After(now) {
		d.t.Fatalf("%s: the next decision for %s, at %s, is not to come", now, b.job.Name(), n)
	}
	b.c.Plan, b.planned, b.touched, b.woken = made.Plan, b.c.Job, false, false
	for _, m := range made.Updates {
		i := slices.IndexFunc(b.runs, func(r *store.Run) bool { return r.ID == m.Run.ID })
		*b.runs[i] = m.Run
	}
	for _, r := range made.Made {
		r.CreatedAt = now
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
		case b.job.Succeeds(r.Occurrence, r.Attempts):
			r.State, r.FinishedAt = store.Succeeded, now
		case attempts == 0 || r.Attempt < attempts:
			r.State, r.ReadyAt = store.Waiting, now.Add(model.Backoff(p.Retry, r.Attempt))
		default:
			r.State, r.FinishedAt = store.Failed, now
		}
	}
	return any
}

func (b *casebook) start(r *store.Run, now time.Time) {
	r.State, r.Fence, r.Attempt, r.Attempts, r.LeaseUntil = store.Running, r.Fence+1, r.Attempt+1, r.Attempts+1, b.job.Lease(now, model.Hold{Job: b.job.Seed, Occurrence: r.Occurrence, Fence: r.Fence + 1})
	if r.StartedAt.IsZero() {
		r.StartedAt = now
	}
}

func (d *decisions) each(fn func(b *casebook, r *store.Run, h model.Hold)) {
	for _, b := range d.cases {
		for _, r := range b.runs {
			fn(b, r, model.Hold{Job: b.job.Seed, Occurrence: r.Occurrence, Fence: r.Fence})
		}
	}
}

func (d *decisions) Take(now time.Time) (list []model.Hold) {
	if d.frozen(now) {
		return nil
	}
	d.each(func(b *casebook, r *store.Run, h model.Hold) {
		if r.State == store.Queued {
			b.start(r, now)
			h.Fence = r.Fence
			list = append(list, h)
		}
	})
	return list
}

func (d *decisions) End(now time.Time, ended model.Hold, state string) {
	d.each(func(_ *casebook, r *store.Run, h model.Hold) {
		if h == ended {
			r.State, r.FinishedAt = state, now
		}
	})
}

func (d *decisions) stopped() (list []model.Hold) {
	d.each(func(_ *casebook, r *store.Run, h model.Hold) {
		if r.State == store.Running && !r.CancelAt.IsZero() {
			list = append(list, h)
		}
	})
	return list
}

func (d *decisions) Ledger() map[uint64][]string {
	rulesOf := d.s.Rules()
	all := map[uint64][]string{}
	for _, b := range d.cases {
		ran := map[int64]bool{}
		for _, r := range b.runs {
			ran[r.ScheduledFor.Unix()] = true
			all[b.job.Seed] = append(all[b.job.Seed], model.RunLine(r))
		}
		var list []model.Skipped
		for _, g := range b.gaps {
			schedule := int(g.ScheduleID) - 1
			if g.ScheduleID == 1000 {
				schedule = -1
			}
			for _, at := range rulesOf[g.Rule].Within(d.s.Span, model.Window{From: g.From, To: g.Through}) {
				list = append(list, model.Skipped{Schedule: schedule, Rule: rulesOf[g.Rule], At: at, Reason: g.Reason})
			}
		}
		all[b.job.Seed] = append(all[b.job.Seed], model.Stretches(d.s.Span, list, ran)...)
	}
	return all
}

// Of each nominal time, both ledgers have a run or, for each of its rules, one reason: what is missing, or there twice,
// is a difference.
func TestDecideKeepsTheLedgerOfTheNaiveWalk(t *testing.T) {
	model.Compare(t, os.Getenv, prove.Cases(2*model.Crowd, 100*model.Crowd), "", newDecisions)
}
