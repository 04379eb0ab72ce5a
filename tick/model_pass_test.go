package tick_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide/model"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// passes tells a scenario by the program itself: definitions through Apply and plain SQL, whole passes on an engine by a
// clock that the scenario moves, and its own worker that speaks SQL, like a worker in any language.
type passes struct {
	t     testing.TB
	s     *model.Scenario
	jobs  map[string]*model.Job // by name
	ids   map[uint64]int64      // of jobs, by seed
	names map[int64]uint64
	d     *storetest.DB
	pass  *tick.Tick
	owner string // of the jobs

	schedules map[string]int64 // by name
	trace     strings.Builder  // what every pass reported
}

func (p *passes) must(err error) {
	if err != nil {
		p.t.Helper()
		p.t.Fatal(err)
	}
}

func startPasses(t testing.TB, engine string, s *model.Scenario) *passes {
	p := &passes{t: t, s: s, d: storetest.Open(t, engine, store.Options{})}
	p.d.Clock.Set(s.Start)
	p.jobs, p.ids, p.names = map[string]*model.Job{}, map[uint64]int64{}, map[int64]uint64{}
	var d store.Definitions
	for i, c := range s.Calendars {
		d.Calendars = append(d.Calendars, c.Define(i+1))
	}
	for i, r := range s.Shared {
		d.Schedules = append(d.Schedules, r.Schedule(model.SharedName(i)))
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		p.jobs[j.Name()] = j
		d.Jobs = append(d.Jobs, j.Define(j.Policy, j.Links))
		if j.Own != nil {
			own := j.Own.Schedule("")
			d.Jobs[i].Own = &own
		}
	}
	_, err := p.d.Apply(context.Background(), d, store.ApplyOptions{})
	p.must(err)
	p.schedules = map[string]int64{}
	p.rows("SELECT id, name FROM dbjobs_schedules WHERE name IS NOT NULL", func(scan func(...any) error) {
		var id int64
		var name string
		p.must(scan(&id, &name))
		p.schedules[name] = id
	})
	p.rows("SELECT id, name, owner FROM dbjobs_jobs", func(scan func(...any) error) {
		var id int64
		var name string
		p.must(scan(&id, &name, &p.owner))
		p.ids[p.jobs[name].Seed], p.names[id] = id, p.jobs[name].Seed
	})
	if p.owner != s.Owner {
		p.t.Fatalf("the jobs belong to %q, not to %q", p.owner, s.Owner)
	}
	// One run at a time: the runs of one job must end in the order in which they were let go.
	p.pass = &tick.Tick{Store: p.d.Store, Name: "model", Holder: "model", Version: "test", Now: p.d.Clock.Now, Concurrency: 1, Executors: executor.Registry{"sql": p}}
	return p
}

// Execute returns at once, and fails if the scenario says so.
func (p *passes) Execute(_ context.Context, r executor.Request) (executor.Result, error) {
	if j := p.jobs[r.Task.Job.Name]; !j.Succeeds(r.Task.Run.Occurrence, r.Task.Run.Attempts) {
		return executor.Result{}, errors.New("failed as it should")
	}
	return executor.Result{}, nil
}

var placeholder = regexp.MustCompile(`\?(\d+)`)

// words is a statement in the words of the engine. It is written with SQLite's names of tables and places of arguments.
func (p *passes) words(query string, args []any) (string, []any) {
	query = strings.ReplaceAll(query, "dbjobs_", p.d.Table(""))
	switch p.d.Engine {
	case "postgres":
		query = placeholder.ReplaceAllString(query, "$$$1")
	case "mariadb":
		var each []any
		for _, m := range placeholder.FindAllStringSubmatch(query, -1) {
			n, err := strconv.Atoi(m[1])
			p.must(err)
			each = append(each, args[n-1])
		}
		return placeholder.ReplaceAllString(query, "?"), each
	}
	return query, args
}

func (p *passes) exec(query string, args ...any) {
	p.t.Helper()
	query, args = p.words(query, args)
	if _, err := p.d.SQL.Exec(query, args...); err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
}

func (p *passes) rows(query string, each func(scan func(...any) error), args ...any) {
	p.t.Helper()
	query, args = p.words(query, args)
	rows, err := p.d.SQL.Query(query, args...)
	p.must(err)
	defer rows.Close()
	for rows.Next() {
		each(rows.Scan)
	}
	p.must(rows.Err())
}

func (p *passes) at(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return p.d.Store.Engine().Instant(t)
}

func (p *passes) Change(now time.Time, list []model.Change) {
	p.d.Clock.Set(now)
	var d store.Definitions
	var known []store.JobStatus
	job := func(seed uint64) *store.Job { // the current definition, to be applied with a change
		name := model.JobName(seed)
		for i := range d.Jobs {
			if d.Jobs[i].Name == name {
				return &d.Jobs[i]
			}
		}
		if known == nil {
			var err error
			known, err = p.d.Jobs(context.Background(), store.JobFilter{})
			p.must(err)
		}
		i := slices.IndexFunc(known, func(j store.JobStatus) bool { return j.Name == name })
		d.Jobs = append(d.Jobs, known[i].Job)
		return &d.Jobs[len(d.Jobs)-1]
	}
	apply := func() {
		if len(d.Calendars)+len(d.Schedules)+len(d.Jobs) > 0 {
			_, err := p.d.Apply(context.Background(), d, store.ApplyOptions{})
			p.must(err)
		}
		d, known = store.Definitions{}, nil
	}
	for _, c := range list {
		switch {
		case c.What == "skip", c.What == "unskip":
			apply()
			p.skip(c)
		case c.What == "cancel", c.What == "retry":
			apply()
			p.ask(c)
		case c.SQL, c.Scope != "", c.What == "request":
			p.bySQL(now, c)
		case c.What == "calendar":
			d.Calendars = append(d.Calendars, c.Closed.Define(c.Calendar))
			apply()
		case c.What == "rule" && c.Shared >= 0:
			d.Schedules = append(d.Schedules, c.Rule.Schedule(model.SharedName(c.Shared)))
		case c.What == "rule":
			own := c.Rule.Schedule("")
			job(c.Job).Own = &own
		case c.What == "link":
			j := job(c.Job)
			j.Schedules = append(slices.Clone(j.Schedules), model.SharedName(c.Shared))
		case c.What == "unlink":
			j := job(c.Job)
			j.Schedules = slices.DeleteFunc(slices.Clone(j.Schedules), func(name string) bool { return name == model.SharedName(c.Shared) })
		case c.What == "policy":
			j := job(c.Job)
			changed := model.AsWritten(c.Policy)
			changed.Name, changed.Schedules, changed.Own, changed.Queue, changed.Steps = j.Name, j.Schedules, j.Own, j.Queue, j.Steps
			*j = changed
		}
	}
	apply()
}

func (p *passes) Tick(now time.Time, startup string) []model.Hold {
	p.d.Clock.Set(now)
	p.pass.StartupID = startup
	r, err := p.pass.Run(context.Background())
	if err != nil {
		p.t.Fatalf("%s: %v", now, err)
	}
	if slices.ContainsFunc(r.Parked, func(k store.Parked) bool { return !strings.Contains(k.Error, model.Misspelling) }) {
		p.t.Fatalf("%s: parked: %v", now, r.Parked)
	}
	fmt.Fprintf(&p.trace, "%s decided %d made %d gaps %v started %d succeeded %d failed %d waiting %d next %s\n", now.Format(time.DateTime), r.Decided, r.Made, r.Gaps, r.Started,
		r.Succeeded, r.Failed, r.Waiting, r.NextRun.Format(time.DateTime))
	return p.stopped()
}

func (p *passes) holds(list *[]model.Hold) func(scan func(...any) error) {
	return func(scan func(...any) error) {
		var job int64
		var h model.Hold
		p.must(scan(&job, &h.Occurrence, &h.Fence))
		h.Job = p.names[job]
		*list = append(*list, h)
	}
}

func (p *passes) Take(now time.Time) (list []model.Hold) {
	const taken = ` WHERE state = 'queued' AND queue = 'worker'
		AND NOT EXISTS (SELECT 1 FROM dbjobs_pauses WHERE scope = 'all' AND resumed_at IS NULL AND (until_at IS NULL OR until_at > ?1))`
	p.rows("SELECT job_id, occurrence, fence + 1 FROM dbjobs_runs"+taken, p.holds(&list), p.at(now))
	p.exec(`UPDATE dbjobs_runs SET state = 'running', fence = fence + 1, holder = 'worker', lease_until = ?2, attempt = attempt + 1, attempts = attempts + 1,
		started_at = coalesce(started_at, ?1)`+taken, p.at(now), p.at(now.AddDate(10, 0, 0)))
	for _, h := range list {
		if j := p.jobs[model.JobName(h.Job)]; j.Vanishes(h) {
			p.exec("UPDATE dbjobs_runs SET lease_until = ?1 WHERE job_id = ?2 AND occurrence = ?3", p.at(j.Lease(now, h)), p.ids[h.Job], h.Occurrence)
		}
	}
	return list
}

func (p *passes) End(now time.Time, h model.Hold, state string) {
	p.exec("UPDATE dbjobs_runs SET state = ?1, finished_at = ?2, lease_until = NULL WHERE job_id = ?3 AND occurrence = ?4 AND state = 'running'", state, p.at(now), p.ids[h.Job], h.Occurrence)
}

func (p *passes) stopped() (list []model.Hold) {
	p.rows("SELECT job_id, occurrence, fence FROM dbjobs_runs WHERE settled_at IS NULL AND state = 'running' AND cancel_at IS NOT NULL ORDER BY id", p.holds(&list))
	return list
}

func (p *passes) Ledger() map[uint64][]string {
	ctx := context.Background()
	rulesOf := p.s.Rules()
	schedules := map[int64]int{}
	p.rows("SELECT id, name FROM dbjobs_schedules ORDER BY id", func(scan func(...any) error) {
		var id int64
		var name sql.NullString
		p.must(scan(&id, &name))
		schedules[id] = -1
		if _, number, ok := strings.Cut(name.String, " "); ok {
			n, err := strconv.Atoi(number)
			p.must(err)
			schedules[id] = n
		}
	})
	all, ran := map[uint64][]string{}, map[uint64]map[int64]bool{}
	runs, err := p.d.Runs(ctx, store.RunFilter{Limit: 1 << 30})
	p.must(err)
	heldBy := map[string]string{} // after the last decision: a list of runs shows what holds them now
	p.rows("SELECT id, held_by FROM dbjobs_runs WHERE held_by IS NOT NULL", func(scan func(...any) error) {
		var id, by string
		p.must(scan(&id, &by))
		heldBy[id] = by
	})
	for i := range runs {
		r := &runs[i]
		r.HeldBy = heldBy[r.ID]
		seed := p.names[r.JobID]
		if ran[seed] == nil {
			ran[seed] = map[int64]bool{}
		}
		ran[seed][r.ScheduledFor.Unix()] = true
		all[seed] = append(all[seed], model.RunLine(r))
	}
	for seed, id := range p.ids {
		gaps, err := p.d.Gaps(ctx, model.JobName(seed), 1<<30)
		p.must(err)
		var list []model.Skipped
		for _, g := range gaps {
			rule, ok := rulesOf[g.Rule]
			if !ok {
				p.t.Fatalf("job %d: the ledger has the rule %q, which nobody gave it", id, g.Rule)
			}
			for _, at := range rule.Within(p.s.Span, model.Window{From: g.From, To: g.Through}) {
				list = append(list, model.Skipped{Schedule: schedules[g.ScheduleID], Rule: rule, At: at, Reason: g.Reason})
			}
		}
		all[seed] = append(all[seed], model.Stretches(p.s.Span, list, ran[seed])...)
	}
	return all
}

// For each nominal time, both ledgers have a run or, for each of its rules, one reason. A time that is missing, or is
// there twice, is a difference.
func TestPassesKeepTheLedgerOfTheNaiveWalk(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		cases, crowds, owner := 20, 100, ""
		if e != "sqlite" { // where a pass takes several times as long
			cases, crowds, owner = 6, 25, "dbjobs" // the login of the test servers
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			model.Compare(t, os.Getenv, prove.Cases(cases, crowds*model.Crowd), owner, func(t testing.TB, s *model.Scenario) model.Narrator { return startPasses(t, e, s) })
		})
	}
}

func TestEqualSeedsGiveEqualTraces(t *testing.T) {
	trace := func() string {
		s := model.NewScenario(model.Crowd, 8)
		s.Steps = s.Steps[:20]
		p := startPasses(t, "sqlite", s)
		ledger := model.Tell(s, p)
		return s.String() + p.trace.String() + fmt.Sprint(ledger)
	}
	if first, second := trace(), trace(); first != second || len(first) < 5_000 {
		t.Fatalf("two traces of one seed, of %d and %d bytes, differ", len(first), len(second))
	}
}
