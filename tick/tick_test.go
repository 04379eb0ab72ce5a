package tick_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// newTick is a tick over the test's database, by the test's clock.
func newTick(t testing.TB, d *storetest.DB, s *store.Store) *tick.Tick {
	t.Helper()
	login, err := s.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &tick.Tick{
		Store: s, Login: login, Name: "test", Holder: t.Name(), Version: "test", Now: time.Now,
		Executors: executor.Registry{"sql": &executor.SQL{DB: d.SQL, Login: login, Instant: s.Instant}},
	}
}

func run(t testing.TB, d *storetest.DB) tick.Report {
	t.Helper()
	r, err := newTick(t, d, d.Store).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func apply(t testing.TB, d *storetest.DB, defs store.Definitions) {
	t.Helper()
	if _, err := d.Apply(t.Context(), defs, store.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
}

func step(name string, statements ...string) store.Step {
	b, err := json.Marshal(store.SQLSpec{SQL: statements})
	if err != nil {
		panic(err)
	}
	return store.Step{Name: name, Executor: "sql", Spec: b}
}

func atomicStep(statement string, args ...any) store.Step {
	b, err := json.Marshal(store.SQLSpec{SQL: []string{statement}, Args: args, Atomic: true})
	if err != nil {
		panic(err)
	}
	return store.Step{Executor: "sql", Spec: b}
}

func every(rule string) *store.Schedule { return &store.Schedule{Rule: rule} }

func TestAPassRunsWhatIsDue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "good", Own: every("every 5m"), Steps: []store.Step{step("one", "INSERT INTO effects VALUES (1)"), step("two", "INSERT INTO effects VALUES (2)")}},
			{Name: "bad", Own: every("every 5m"), Steps: []store.Step{step("", "INSERT INTO no_such_table VALUES (1)")}},
			{Name: "idle", Steps: []store.Step{step("", "INSERT INTO effects VALUES (3)")}},
		}})
		if r := run(t, d); r.Decided != 3 || r.Made != 0 {
			t.Fatalf("first pass: %+v", r)
		}
		d.Clock.Add(12 * time.Minute)
		r := run(t, d)
		if r.Made != 2 || r.Succeeded != 1 || r.Failed != 1 || r.Gaps[store.Missed] != 2 {
			t.Fatalf("second pass: %+v", r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 2 {
			t.Fatalf("%d effects", n)
		}
		if r := run(t, d); r.Decided != 0 || r.Started != 0 {
			t.Fatalf("third pass: %+v", r)
		}
		if _, err := d.RunNow(t.Context(), "idle", nil); err != nil {
			t.Fatal(err)
		}
		if r := run(t, d); r.Succeeded != 1 {
			t.Fatalf("run-now: %+v", r)
		}
		j, err := d.Job(t.Context(), "bad")
		if err != nil || j.LastState != store.Failed || j.Streak != 1 || !j.NextRun.Equal(time.Date(2026, 1, 5, 8, 15, 0, 0, time.UTC)) {
			t.Fatalf("%v: %+v", err, j)
		}
	})
}
