//go:build unix

package crash

import (
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// throughPooler returns a tick whose ledger goes through a pooler. The SQL of its jobs goes to direct.
func throughPooler(t *testing.T, d *storetest.DB, pooled, direct string) *tick.Tick {
	t.Helper()
	s, err := store.Open(t.Context(), pooled, store.Options{Clock: d.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	x, err := executor.Open(s, &executor.Host{Direct: &executor.Direct{URL: direct, From: "THE_DIRECT_URL"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	tk := ticktest.New(t, s)
	tk.Executors = x
	return tk
}

// The next statement of a step that goes past the pooler finds what the session keeps, and no other
// step does. An atomic step ends its run in that session, in its own transaction.
func TestDirectWayHasSessions(t *testing.T) {
	storetest.Needs(t, "postgres") // PgBouncer stands before PostgreSQL
	d := storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, "CREATE TABLE effects (job text, n int)")
	const session = `CREATE TEMPORARY TABLE mine AS SELECT 1 AS n; SET work_mem = '3MB'; SELECT pg_advisory_lock(7)`
	const effect = `INSERT INTO effects SELECT '%', count(*) FROM mine WHERE current_setting('work_mem') = '3MB' AND pg_advisory_unlock(7)`
	var defs store.Definitions
	for _, name := range []string{"plain", "atomic"} {
		step := ticktest.Step("one", append(strings.Split(session, "; "), strings.Replace(effect, "%", name, 1))...)
		if name == "atomic" {
			step = ticktest.AtomicStep(append(strings.Split(session, "; "), strings.Replace(effect, "%", name, 1))...)
		}
		next := ticktest.Step("two", "INSERT INTO effects SELECT 'next', 1 WHERE to_regclass('mine') IS NULL AND current_setting('work_mem') <> '3MB'")
		defs.Jobs = append(defs.Jobs, store.Job{Name: name, Steps: []store.Step{step, next}})
	}
	ticktest.Apply(t, d, defs)
	for _, j := range defs.Jobs {
		ticktest.Request(t, d, j.Name)
	}
	r, err := throughPooler(t, d, behindPooler(t, d.URL, 1), d.URL).Run(t.Context())
	if err != nil || r.Succeeded != 2 || r.Failed != 0 {
		t.Fatalf("%v: %+v", err, r)
	}
	for job, want := range map[string]int{"plain": 1, "atomic": 1, "next": 2} {
		if sum := d.Int(t, "SELECT coalesce(sum(n), 0) FROM effects WHERE job = $1", job); sum != want {
			t.Errorf("%s: the effects add up to %d, want %d", job, sum, want)
		}
	}
}

// A direct URL that leads to another database, or to other rights, is not used, whatever the tables there
// say about themselves. Nothing is executed, and the run waits for somebody to correct the setting.
func TestDirectWayElsewhere(t *testing.T) {
	storetest.Needs(t, "postgres") // PgBouncer stands before PostgreSQL
	d, other := storetest.Open(t, "postgres", store.Options{}), storetest.Open(t, "postgres", store.Options{})
	cases := []struct{ name, direct, problem string }{
		{"another database", other.URL, "another database, where this run has not been handed out"},
		{"a database without tables", storetest.URL(t, "postgres"), "another database"},
		{"another login", d.Reader(t), "and not as"},
		{"another engine", "mysql://ann@127.0.0.1:1/d", "out of reach"},
		{"nobody is there", "postgres://ann@127.0.0.1:1/d", "out of reach"},
	}
	var defs store.Definitions
	for _, c := range cases {
		defs.Jobs = append(defs.Jobs, store.Job{Name: c.name, Steps: []store.Step{ticktest.Step("one", "INSERT INTO effects VALUES (1)")}})
	}
	for _, db := range []*storetest.DB{d, other} {
		db.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, db, defs)
	}
	pooled := behindPooler(t, d.URL, 2)
	for _, c := range cases {
		ticktest.Request(t, d, c.name)
		r, err := throughPooler(t, d, pooled, c.direct).Run(t.Context())
		if err != nil || r.Succeeded != 0 {
			t.Fatalf("%s: %v, %+v", c.name, err, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects") + other.Int(t, "SELECT count(*) FROM effects"); n != 0 {
			t.Fatalf("%s: %d effects", c.name, n)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: c.name})
		if err != nil || len(runs) == 0 {
			t.Fatal(err)
		}
		if told := runs[0].Error; runs[0].State != store.Waiting || !strings.Contains(told, "THE_DIRECT_URL") || !strings.Contains(told, c.problem) {
			t.Errorf("%s: %s with %q, want it waiting with %q", c.name, runs[0].State, told, c.problem)
		}
	}
}
