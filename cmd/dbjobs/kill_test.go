package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Ticks are killed, as by kill -9, at random moments while they decide and execute the runs of a few jobs that are due
// every second.
func TestKilledTicks(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			h := harass(t, engine, false)
			h.define("one", "two", "three")
			h.until(prove.Cases(5, 300), h.kill)
			h.check()
		})
	}
}

// Atomic steps on servers. Their connections are cut as often as the ticks are killed.
func TestAtomicStepsUnderKillsAndCuts(t *testing.T) {
	t.Parallel()
	servers := slices.DeleteFunc(storetest.Engines(t), func(engine string) bool { return engine == "sqlite" }) // SQLite has no connection
	if len(servers) == 0 {
		storetest.Skip(t, "needs a server: tick/README.md, The proofs, says how to run it with one")
	}
	for _, engine := range servers {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			h := harass(t, engine, true)
			h.define("one", "two", "three", "four", "five", "six")
			h.until(prove.Cases(4, 250), h.kill)
			h.until(prove.Cases(4, 250), h.cut)
			h.check()
		})
	}
}

// harassed is a database whose ticks are killed, or lose their connections.
type harassed struct {
	t      *testing.T
	engine string
	atomic bool // only atomic steps
	s      *store.Store
	db     *sql.DB
	env    []string
	proxy  *proxy        // in front of a server
	hits   int           // the number of processes or connections that were hit while they worked
	life   time.Duration // the approximate duration of a tick that nothing breaks
}

func harass(t *testing.T, engine string, atomic bool) *harassed {
	d := storetest.Open(t, engine, store.Options{})
	raw := d.URL
	h := &harassed{t: t, engine: storetest.Dialect(engine), atomic: atomic, db: d.SQL}
	through := raw
	if engine != "sqlite" {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal("the URL of the test's database does not parse")
		}
		h.proxy = newProxy(t, u.Host)
		u.Host = h.proxy.address
		through = u.String()
	}
	h.env = []string{"HOME=" + t.TempDir(), "DBJOBS_DATABASE_URL=" + through, "GORACE=" + os.Getenv("GORACE")}
	var err error
	if h.s, err = store.Open(t.Context(), raw, store.Options{}); err != nil { // with the database's clock, as the ticks
		t.Fatal(err)
	}
	t.Cleanup(func() { h.s.Close() })
	h.exec("CREATE TABLE effects (run varchar(40), step varchar(40), fence int)")
	return h
}

func (h *harassed) exec(query string) {
	h.t.Helper()
	if _, err := h.db.Exec(query); err != nil {
		h.t.Fatalf("%s: %v", query, err)
	}
}

func (h *harassed) step(name string, atomic bool, statement string, args ...any) store.Step {
	spec, err := json.Marshal(executor.SQLSpec{SQL: []executor.Statement{{Text: statement, Args: args}}, Atomic: atomic})
	if err != nil {
		h.t.Fatal(err)
	}
	return store.Step{Name: name, Executor: "sql", Spec: spec}
}

func (h *harassed) apply(jobs []store.Job) {
	h.t.Helper()
	if _, err := h.s.Apply(h.t.Context(), store.Definitions{Jobs: jobs}, store.ApplyOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// define makes jobs that are due every second, and measures how long a tick with work takes.
func (h *harassed) define(names ...string) {
	h.t.Helper()
	h.apply(h.jobs(names, false))
	for range 2 {
		began := time.Now()
		if out, err := h.tick().CombinedOutput(); err != nil {
			h.t.Fatalf("a tick that nothing broke: %v: %s", err, out)
		}
		h.life = max(h.life, time.Since(began))
		time.Sleep(time.Second)
	}
}

func (h *harassed) jobs(names []string, disabled bool) []store.Job {
	marks := map[string]string{"postgres": "$1, $2, $3", "mariadb": "?, ?, ?", "sqlite": "?, ?, ?"}[h.engine]
	mark := func(name string, atomic bool) store.Step {
		return h.step(name, atomic, "INSERT INTO effects VALUES ("+marks+")", "${run_id}", name, "${fence}")
	}
	nap := h.step("nap", false, map[string]string{"postgres": "SELECT pg_sleep(0.02)", "mariadb": "DO SLEEP(0.02)",
		"sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT count(*) FROM n"}[h.engine])
	steps := []store.Step{mark("atomic", true), nap, mark("plain", false), mark("last", true)}
	if h.atomic {
		steps = []store.Step{mark("atomic", true)}
	}
	attempts, backoff := store.Attempts(1000), store.Duration(0)
	jobs := make([]store.Job, 0, len(names))
	for _, n := range names {
		jobs = append(jobs, store.Job{Name: n, Own: &store.Schedule{Rule: "every 1s"}, Disabled: disabled,
			MaxDeliveries: 10_000, Retry: store.Retry{Attempts: &attempts, Backoff: &backoff}, Steps: steps})
	}
	return jobs
}

func (h *harassed) tick() *exec.Cmd {
	cmd := exec.CommandContext(h.t.Context(), program(h.t), "tick", "--concurrency", "3")
	cmd.Env = h.env
	return cmd
}

// until does something to ticks until the given number of them was hit.
func (h *harassed) until(hits int, strike func(*exec.Cmd) bool) {
	h.t.Helper()
	for done, tries := 0, 0; done < hits; tries++ {
		if tries > 20*hits+100 {
			h.t.Fatalf("%d ticks, and only %d were at work when they were struck", tries, done)
		}
		tick := h.tick()
		if err := tick.Start(); err != nil {
			h.t.Fatal(err)
		}
		time.Sleep(rand.N(2 * h.life))
		if strike(tick) {
			done++
			h.hits++
		}
		h.passLeases()
	}
}

// kill kills a tick at any point. A tick that had ended by itself does not count.
func (h *harassed) kill(tick *exec.Cmd) bool {
	_ = tick.Process.Signal(syscall.SIGKILL)
	err := tick.Wait()
	var exit *exec.ExitError
	hit := errors.As(err, &exit) && exit.ExitCode() == -1
	if hit {
		h.life += h.life / 10
	} else { // the machine is faster now than before
		h.life = max(h.life-h.life/10, 10*time.Millisecond)
	}
	return hit
}

// cut breaks the connections of a tick until it has ended.
func (h *harassed) cut(tick *exec.Cmd) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = tick.Wait() // its end depends on the place of the cut
	}()
	hit := false
	for {
		hit = h.proxy.drop() > 0 || hit
		select {
		case <-ended:
			return hit
		case <-time.After(20*time.Millisecond + rand.N(h.life)):
		}
	}
}

// passLeases has the same effect as a wait of two minutes: leases end, and so do the pauses before another try.
func (h *harassed) passLeases() {
	h.t.Helper()
	table, past := "dbjobs_runs", "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR"
	switch h.engine {
	case "postgres":
		table, past = "dbjobs.runs", "now() - interval '1 hour'"
	case "sqlite":
		past = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now', '-1 hour')"
	}
	h.exec("UPDATE " + table + " SET lease_until = " + past + " WHERE state = 'running'")
	h.exec("UPDATE " + table + " SET ready_at = " + past + " WHERE state = 'waiting'")
}

// check lets ticks do the rest of the work, and compares ledger and effects with the promises.
func (h *harassed) check() {
	h.t.Helper()
	list, err := h.s.Jobs(h.t.Context(), store.JobFilter{})
	if err != nil {
		h.t.Fatal(err)
	}
	names := make([]string, 0, len(list))
	for i := range list {
		names = append(names, list[i].Name)
	}
	h.apply(h.jobs(names, true))
	for range 5 {
		if out, err := h.tick().CombinedOutput(); err != nil {
			h.t.Fatalf("a tick that nothing broke: %v: %s", err, out)
		}
		h.passLeases()
	}
	runs, nominal, redone := 0, 0, 0
	for _, n := range names {
		r, o := h.decided(n)
		runs, nominal = runs+r, nominal+o
	}
	for _, st := range h.jobs([]string{"any"}, false)[0].Steps {
		if st.Name != "nap" {
			redone += h.effects(st.Name, st.Name != "plain", runs)
		}
	}
	lost := h.count("SELECT count(*) FROM TABLE attempts WHERE state <> 'succeeded'", "")
	h.t.Logf("%s: %d times struck: %d occurrences decided, %d runs; %d attempts did not come back, %d plain effects were made again", h.engine, h.hits, nominal, runs, lost, redone)
	if lost == 0 && h.hits > 100 {
		h.t.Error("no attempt was ever struck")
	}
}

// decided checks that each nominal time of a job became one run, which succeeded, or lies in a gap.
func (h *harassed) decided(job string) (runs, nominal int) {
	h.t.Helper()
	list, err := h.s.Runs(h.t.Context(), store.RunFilter{Job: job, Limit: 1_000_000})
	if err != nil {
		h.t.Fatal(err)
	}
	gaps, err := h.s.Gaps(h.t.Context(), job, 1_000_000)
	if err != nil {
		h.t.Fatal(err)
	}
	j, err := h.s.Job(h.t.Context(), job)
	if err != nil {
		h.t.Fatal(err)
	}
	ran := map[time.Time]int{}
	for _, r := range list {
		ran[r.ScheduledFor]++
		if r.State != store.Succeeded || r.SettledAt.IsZero() {
			h.t.Errorf("%s: run %s is %s (%s)", job, r.Occurrence, r.State, r.Error)
		}
	}
	rule, err := rules.Parse("every 1s", rules.Defaults{Zone: "UTC", Start: j.CreatedAt})
	if err != nil {
		h.t.Fatal(err)
	}
	for at := j.CreatedAt; ; nominal++ {
		if at, err = rule.Next(at); err != nil {
			h.t.Fatal(err)
		}
		if at.After(j.DecidedThrough) {
			return len(list), nominal
		}
		in := ran[at]
		for _, g := range gaps {
			if in == 0 && at.After(g.From) && !at.After(g.Through) {
				in++
			}
		}
		if in != 1 {
			h.t.Errorf("%s: %s was decided %d times", job, at, in)
		}
	}
}

// effects checks the effects of a step. An atomic step took effect once in each run. A plain step took effect at least
// once, and never in a delivery after the one in which its end was recorded.
func (h *harassed) effects(step string, atomic bool, runs int) (again int) {
	h.t.Helper()
	count := func(query string) int { return h.count(query, step) }
	all, distinct := count("SELECT count(*) FROM effects WHERE step = 'STEP'"), count("SELECT count(DISTINCT run) FROM effects WHERE step = 'STEP'")
	if distinct != runs || atomic && all != runs {
		h.t.Errorf("step %s: %d runs have %d effects in %d runs", step, runs, all, distinct)
	}
	if ends := count("SELECT count(*) FROM TABLE attempts WHERE step_name = 'STEP' AND state = 'succeeded'"); ends != runs {
		h.t.Errorf("step %s: %d runs have %d ends on record", step, runs, ends)
	}
	if late := count(`SELECT count(*) FROM effects e JOIN TABLE attempts a ON CAST(a.run_id AS CHAR(36)) = e.run AND a.step_name = e.step AND a.state = 'succeeded'
		WHERE e.step = 'STEP' AND e.fence > a.fence`); late != 0 {
		h.t.Errorf("step %s took effect %d times after its end was on record", step, late)
	}
	if open := count("SELECT count(*) FROM TABLE attempts WHERE step_name = 'STEP' AND state = 'running'"); open != 0 {
		h.t.Errorf("step %s: %d attempts are running still", step, open)
	}
	return all - distinct
}

// count reads a number. In the query, STEP is the step, and TABLE precedes the name of one of our tables.
func (h *harassed) count(query, step string) (n int) {
	h.t.Helper()
	prefix := "dbjobs_"
	if h.engine == "postgres" {
		prefix = "dbjobs."
	}
	query = strings.NewReplacer("STEP", step, "TABLE ", prefix).Replace(query)
	if err := h.db.QueryRow(query).Scan(&n); err != nil {
		h.t.Fatalf("%s: %v", query, err)
	}
	return n
}
