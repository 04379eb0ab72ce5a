package decide

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
)

// world is one job in memory: what a database would hold between decisions.
type world struct {
	c      store.Snapshot
	now    time.Time
	rng    *rand.Rand
	runs   []*store.Run // all, oldest first
	gaps   []store.Gap
	pass   *Pass
	trace  strings.Builder
	rules  []ruleEra
	nextID int
}

// lease is what a delivery or a heartbeat gives.
const lease = 90 * time.Second

// ruleEra is a stretch in which a rule was the job's: its nominal times in (from, to] are to be decided.
type ruleEra struct {
	schedule int64
	rule     *rules.Rule
	from, to time.Time
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 7)), pass: testPass(""), now: time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)}
	j := store.Job{ID: 1, Name: "job", Steps: []store.Step{{Executor: "sql"}}, CreatedAt: w.now}
	pick := func(list ...string) string { return list[w.rng.IntN(len(list))] }
	j.Overlap, j.Missed = pick("wait", "wait-all", "skip", "allow", "replace"), pick("latest", "all", "skip")
	if limit := 1 + w.rng.IntN(6); j.Missed == "all" {
		j.MissedLimit = limit
	}
	if j.Overlap == "allow" {
		j.MaxRunning = 1 + w.rng.IntN(3)
	}
	if w.rng.IntN(4) == 0 {
		j.MissedWithin = store.Duration(time.Duration(1+w.rng.IntN(300)) * time.Minute)
	}
	if w.rng.IntN(5) == 0 {
		j.MaxRuns = int64(1 + w.rng.IntN(30))
	}
	if w.rng.IntN(5) == 0 {
		j.NotBefore = w.now.Add(time.Duration(w.rng.IntN(600)) * time.Minute)
		j.NotAfter = j.NotBefore.Add(time.Duration(w.rng.IntN(6000)) * time.Minute)
	}
	if w.rng.IntN(4) == 0 {
		j.Jitter = store.Duration(time.Duration(w.rng.IntN(20)) * time.Minute)
	}
	j.Normalize()
	w.c = store.Snapshot{Plan: store.Plan{JobID: 1}, Job: j, Stale: true}
	for id := range int64(1 + w.rng.IntN(3)) {
		w.link(id + 1)
	}
	return w
}

var someRules = []string{"every 7m", "every 1h", "*/15 * * * *", "30 2 * * *", "0 */3 * * MON-FRI", "every 20m", "at 2026-03-29T03:00", "10,40 1-4 * * *"}
var someZones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}

func (w *world) schedule() store.Schedule {
	return store.Schedule{Name: "s", Rule: someRules[w.rng.IntN(len(someRules))], Zone: someZones[w.rng.IntN(len(someZones))], Nonexistent: "forward", Ambiguous: "first", CreatedAt: w.now}
}

func (w *world) link(id int64) {
	c := w.schedule()
	w.c.Rules = append(w.c.Rules, store.Rule{ScheduleID: id, Linked: true, LinkedAt: w.now, ChangedAt: w.now, NewInput: c.Rule + c.Zone, Schedule: c})
	w.era(id, c, w.now)
}

func (w *world) era(id int64, c store.Schedule, from time.Time) {
	r, err := w.pass.rules.defined(&store.Rule{Schedule: c}, &w.c.Job)
	if err != nil {
		panic(err)
	}
	w.rules = append(w.rules, ruleEra{schedule: id, rule: r, from: from})
}

func (w *world) logf(format string, a ...any) {
	fmt.Fprintf(&w.trace, "%s "+format+"\n", append([]any{w.now.Format("02 15:04:05")}, a...)...)
}

// decide is a tick's decision, and what the database makes of it.
func (w *world) decide(t *testing.T) {
	w.c.Runs = nil
	for _, r := range w.runs {
		if r.SettledAt.IsZero() {
			w.c.Runs = append(w.c.Runs, *r)
		}
	}
	d := Job(w.now, &w.c, w.pass)
	if d.Plan.Parked != "" {
		t.Fatalf("parked: %s", d.Plan.Parked)
	}
	w.c.Plan = d.Plan
	for _, m := range d.Updates {
		for i, r := range w.runs {
			if r.ID == m.Run.ID {
				w.logf("run %s %s -> %s %s", r.Occurrence, m.From, m.Run.State, m.Run.HeldBy)
				*w.runs[i] = m.Run
			}
		}
	}
	for _, r := range d.Made {
		w.nextID++
		r.ID = fmt.Sprintf("%08d", w.nextID)
		w.logf("made %s %s %s", r.Occurrence, r.State, r.HeldBy)
		w.runs = append(w.runs, &r)
	}
	for _, g := range d.Gaps {
		w.logf("gap %d (%s, %s] %s", g.ScheduleID, g.From.Format("02 15:04:05.000000"), g.Through.Format("02 15:04:05.000000"), g.Reason)
	}
	w.gaps = append(w.gaps, d.Gaps...)
	if d.Replan {
		w.c.Stale = false
		w.c.Rules = w.c.Rules[:0]
		for _, r := range d.Rules {
			r.LinkPlanned, r.NewInput = true, r.Input
			w.c.Rules = append(w.c.Rules, r)
		}
	}
	if n := d.Plan.NextRun; !n.IsZero() && !n.After(w.now) {
		t.Fatalf("the next decision at %s is not after %s", n, w.now)
	}
	running := 0
	for _, r := range w.runs {
		if r.State == store.Queued || r.State == store.Running {
			running++
		}
	}
	if limit := max(w.c.Job.MaxRunning, 1); running > limit {
		t.Fatalf("%d runs under way; %d are allowed", running, limit)
	}
}

// work moves runs on as workers would: takes, finishes, fails, dies.
func (w *world) work() {
	for _, r := range w.runs {
		switch x := w.rng.IntN(10); {
		case r.State == store.Queued && x < 7:
			r.State, r.Fence, r.Attempt, r.StartedAt = store.Running, r.Fence+1, 1, w.now
			r.LeaseUntil, r.Holder = w.now.Add(lease), "holder"
		case r.State == store.Running && x < 5:
			r.State, r.FinishedAt = []string{store.Succeeded, store.Failed}[w.rng.IntN(2)], w.now
		case r.State == store.Running && x < 7: // a holder that reports
			r.LeaseUntil = w.now.Add(lease)
		case r.State == store.Running && x == 7: // back-off
			r.State, r.ReadyAt = store.Waiting, w.now.Add(time.Minute)
		}
	}
}

// meddle does what people do: pauses, edits, schedules that come and go.
func (w *world) meddle() {
	switch w.rng.IntN(24) {
	case 0:
		if len(w.c.Pauses) == 0 || !w.c.Pauses[len(w.c.Pauses)-1].Holds(w.now) {
			p := store.Pause{Scope: "job", SubjectID: 1, Since: w.now}
			if w.rng.IntN(2) == 0 {
				p.Until = w.now.Add(time.Duration(w.rng.IntN(500)) * time.Minute)
			}
			w.logf("pause until %s", p.Until)
			w.c.Pauses = append(w.c.Pauses, p)
		}
	case 1:
		if n := len(w.c.Pauses); n > 0 && w.c.Pauses[n-1].ResumedAt.IsZero() && w.c.Pauses[n-1].Holds(w.now) {
			w.logf("resume")
			w.c.Pauses[n-1].ResumedAt = w.now
		}
	case 2: // an edit by a command, which says when
		i := w.rng.IntN(len(w.c.Rules))
		r := &w.c.Rules[i]
		if !r.Linked {
			return
		}
		r.Schedule = w.schedule()
		r.NewInput, r.ChangedAt = fmt.Sprint(r.Schedule, w.now), w.now
		w.logf("edit %d: %s", r.ScheduleID, r.Schedule.Rule)
		if r.Input == "" { // no tick has seen the old one
			w.rules = slices.DeleteFunc(w.rules, func(e ruleEra) bool { return e.schedule == r.ScheduleID })
		}
		for k := range w.rules {
			if w.rules[k].schedule == r.ScheduleID && w.rules[k].to.IsZero() {
				w.rules[k].to = w.now
			}
		}
		w.era(r.ScheduleID, r.Schedule, w.now)
	}
}

// drain ends all pauses and lets every run end: nothing may be left waiting for what never comes.
func (w *world) drain(t *testing.T) {
	for i := range w.c.Pauses {
		if w.c.Pauses[i].Holds(w.now) {
			w.c.Pauses[i].ResumedAt = w.now
		}
	}
	w.c.Job.NotAfter = w.now // else new ones come for ever
	for range len(w.runs) + 10 {
		w.now = w.now.Add(time.Hour)
		w.decide(t)
		for _, r := range w.runs {
			if r.State == store.Queued || r.State == store.Running {
				r.State, r.FinishedAt = store.Succeeded, w.now
			}
		}
	}
	for _, r := range w.runs {
		if r.SettledAt.IsZero() && r.FinishedAt.Before(w.now) {
			t.Errorf("%s is stuck: %s, held by %q", r.Occurrence, r.State, r.HeldBy)
		}
	}
}

// check holds the ledger against the nominal times of every rule: each in a run or in exactly one gap, none in both.
func (w *world) check(t *testing.T) {
	runs := map[time.Time]bool{}
	for _, r := range w.runs {
		if runs[r.ScheduledFor] {
			t.Errorf("two runs for %s", r.ScheduledFor)
		}
		runs[r.ScheduledFor] = true
	}
	seen := map[time.Time]bool{}
	for _, era := range w.rules {
		to := w.c.Plan.DecidedThrough
		if !era.to.IsZero() {
			to = earlier(to, era.to)
		}
		for at, err := era.rule.Next(era.from); !at.IsZero() && !at.After(to); at, err = era.rule.Next(at) {
			if err != nil {
				t.Fatal(err)
			}
			if !w.c.Job.NotBefore.IsZero() && at.Before(w.c.Job.NotBefore) || !w.c.Job.NotAfter.IsZero() && at.After(w.c.Job.NotAfter) {
				continue
			}
			seen[at] = true
			gaps := 0
			for _, g := range w.gaps {
				if g.ScheduleID == era.schedule && g.Rule == era.rule.String() && at.After(g.From) && !at.After(g.Through) {
					gaps++
				}
			}
			if !runs[at] && gaps != 1 {
				t.Errorf("%s of rule %d lies in no run and in %d gaps", at, era.schedule, gaps)
			}
		}
	}
	for at := range runs {
		if !seen[at] {
			t.Errorf("a run for %s, which is no nominal time", at)
		}
	}
}

// Jobs are edited, paused, requested and left to themselves at random, and the trigger fails now and then: each nominal
// time has one run, or lies in one gap.
func TestEveryNominalTimeIsDecidedOnce(t *testing.T) {
	few := 1000
	if testing.Short() {
		few = 250
	}
	for seed := range uint64(prove.Cases(few, 20_000)) {
		w := newWorld(seed)
		for range 40 {
			w.now = w.now.Add(time.Duration(1+w.rng.IntN(90)) * time.Minute / 2)
			if w.rng.IntN(30) == 0 { // the trigger was down
				w.now = w.now.Add(time.Duration(w.rng.IntN(72)) * time.Hour)
			}
			w.meddle()
			w.decide(t)
			w.work()
			w.now = w.now.Add(time.Second)
			w.decide(t)
		}
		w.check(t)
		w.drain(t)
		if t.Failed() {
			t.Fatalf("seed %d: %+v\n%s", seed, w.c.Job, w.trace.String())
		}
	}
}
