package tick_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// nothing is an executor that does nothing, so that taking and finishing is all that is measured.
type nothing struct{}

func (nothing) Execute(context.Context, executor.Request) (executor.Result, error) {
	return executor.Result{}, nil
}

// waits counts, while it runs, which statements a look at the server finds waiting for a lock: on PostgreSQL, which
// tells it to those without rights.
func waits(d *storetest.DB) (stop func() string) {
	end, done := make(chan struct{}), make(chan struct{})
	found, looks := map[string]int{}, 0
	go func() {
		defer close(done)
		for d.Engine == "postgres" {
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
			}
			looks++
			var what sql.NullString
			err := d.SQL.QueryRow("SELECT string_agg(wait_event || ': ' || left(query, 60), '; ') FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&what)
			if err == nil && what.Valid {
				found[what.String]++
			}
		}
	}()
	return func() string {
		close(end)
		<-done
		return fmt.Sprintf("in %d looks these waited for a lock: %v", looks, found)
	}
}

// drain lets n processes work off runs that are all ready, and returns how long they took.
func drain(t testing.TB, d *storetest.DB, runs, n int) time.Duration {
	t.Helper()
	children := make([]child, n)
	for i := range children {
		children[i] = child{URL: d.URL, Engine: d.Engine, Now: d.Clock.Now(), Holder: fmt.Sprint("process ", i), Guards: allGuards}
	}
	stop := waits(d)
	began := time.Now()
	reports, errs := together(t, children)
	took := time.Since(began)
	seen := stop()
	shares, ended := []int{}, 0
	for i := range reports {
		if errs[i] != nil {
			t.Errorf("process %d of %d: %v", i, n, errs[i])
		}
		if reports[i].Failed+reports[i].Outdated+reports[i].Waiting > 0 {
			t.Errorf("process %d of %d: %+v", i, n, reports[i].Report)
		}
		shares, ended = append(shares, reports[i].Succeeded), ended+reports[i].Succeeded
	}
	attempts := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts"))
	succeeded := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'succeeded' AND fence = 1")
	if ended != runs || attempts != runs || succeeded != runs {
		t.Errorf("%d processes: %d runs ended, %d attempts, %d succeeded; want %d", n, ended, attempts, succeeded, runs)
	}
	t.Logf("%d processes: %.0f runs/s, shares %v; %s", n, float64(runs)/took.Seconds(), shares, seen)
	return took
}

// ready makes runs that are queued, of as many jobs.
func ready(t testing.TB, engine string, runs int) *storetest.DB {
	t.Helper()
	d := storetest.Open(t, engine, store.Options{})
	d.Seed(t, storetest.Seed{Jobs: runs, Rules: []string{"every 5m"}, Steps: []store.Step{{Executor: "nothing", Spec: []byte("{}")}}})
	tk := newTick(t, d.Store)
	tk.Limit = -1
	for range 2 {
		if _, err := tk.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(5 * time.Minute)
	}
	d.Clock.Add(-5 * time.Minute)
	d.Analyze(t)
	if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'queued'"); n != runs {
		t.Fatalf("%d runs are queued", n)
	}
	return d
}

// Several ticks over the same ready runs: each is executed once, and neither a deadlock nor a lost conflict escapes.
func TestSeveralTicksWorkOffReadyRuns(t *testing.T) {
	runs, processes := 800, []int{2, 8}
	if os.Getenv("DBJOBS_PROVE") != "" {
		runs, processes = 20_000, []int{1, 2, 4, 8}
	}
	for _, e := range storetest.Engines(t) {
		for _, n := range processes {
			t.Run(fmt.Sprint(e, "/", n), func(t *testing.T) { drain(t, ready(t, e, runs), runs, n) })
		}
	}
}

// BenchmarkWork works off 20,000 ready runs by one to eight processes. of/one is the rate in ratio to that of one.
func BenchmarkWork(b *testing.B) {
	const runs = 20_000
	for _, e := range storetest.Engines(b) {
		var one time.Duration
		for _, n := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprint(e, "/processes=", n), func(b *testing.B) {
				var took time.Duration
				for range b.N {
					b.StopTimer()
					d := ready(b, e, runs)
					b.StartTimer()
					took += drain(b, d, runs, n)
				}
				if took /= time.Duration(b.N); n == 1 {
					one = took
				}
				b.ReportMetric(runs/took.Seconds(), "runs/s")
				b.ReportMetric(one.Seconds()/took.Seconds(), "of/one")
			})
		}
	}
}
