package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// BenchmarkNoOpTick starts the program, built as it is released, with nothing due among 1,000 jobs: the whole process, in
// turn with the engine's own client and its smallest query. Ratios are of medians within the same run; the aim on
// PostgreSQL is 0.75.
func BenchmarkNoOpTick(b *testing.B) {
	program := released(b)
	for _, e := range storetest.Engines(b) {
		b.Run(e, func(b *testing.B) {
			d := storetest.Open(b, e, store.Options{})
			d.Seed(b, storetest.Seed{Jobs: 1000, Rules: []string{"at 2099-01-01T00:00:00 UTC"}})
			tick := func() *exec.Cmd { return exec.CommandContext(b.Context(), program, "tick", "--database", d.URL) }
			if out, err := tick().CombinedOutput(); err != nil { // plans
				b.Fatalf("%v\n%s", err, out)
			}
			client := map[string]func() *exec.Cmd{
				"postgres": func() *exec.Cmd { return exec.CommandContext(b.Context(), "psql", d.URL, "-c", "select 1") },
			}[e]
			var ticks, clients []time.Duration
			for range b.N {
				for range 20 { // in turn, so that what else the machine does falls on both
					ticks = append(ticks, clocked(b, tick()))
					if client != nil {
						clients = append(clients, clocked(b, client()))
					}
				}
			}
			b.ReportMetric(float64(median(ticks).Microseconds())/1000, "ms/tick")
			if client != nil {
				b.ReportMetric(float64(median(clients).Microseconds())/1000, "ms/psql")
				b.ReportMetric(float64(median(ticks))/float64(median(clients)), "tick/psql")
			}
		})
	}
}

// released is the program, built as it is released.
func released(b *testing.B) string {
	program := filepath.Join(b.TempDir(), "dbjobs")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return program
}

// BenchmarkDueTick starts the program with some jobs of one small statement each due, on PostgreSQL: the figures that
// terraform/COST.md reckons with. The times on the wall are those of this machine and of what else it does; those of the
// processors, the program's and the database's, depend on it less.
func BenchmarkDueTick(b *testing.B) {
	program := released(b)
	for _, jobs := range []int{0, 10, 100} {
		b.Run(strconv.Itoa(jobs), func(b *testing.B) {
			d := storetest.Open(b, "postgres", store.Options{})
			d.Seed(b, storetest.Seed{Jobs: jobs, Rules: []string{"every 1s"}, Steps: []store.Step{{Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}})
			// The limit, because on a slow machine what is due each second would keep a pass from ever ending.
			tick := func() *exec.Cmd {
				return exec.CommandContext(b.Context(), program, "tick", "--database", d.URL, "--limit", strconv.Itoa(jobs))
			}
			if out, err := tick().CombinedOutput(); err != nil { // plans
				b.Fatalf("%v\n%s", err, out)
			}
			const active = "SELECT CAST(1000 * active_time AS bigint) FROM pg_stat_database WHERE datname = current_database()" // microseconds
			var walls, processors []time.Duration
			time.Sleep(2 * time.Second) // until the server has told what was before
			before, n := d.Int(b, active), 0
			for range b.N {
				for range 10 {
					time.Sleep(1100 * time.Millisecond) // all are due again
					t := tick()
					walls = append(walls, clocked(b, t))
					processors = append(processors, t.ProcessState.UserTime()+t.ProcessState.SystemTime())
					n++
				}
			}
			b.ReportMetric(float64(median(walls).Microseconds())/1000, "ms/tick")
			b.ReportMetric(float64(slices.Min(walls).Microseconds())/1000, "least-ms/tick")
			b.ReportMetric(float64(median(processors).Microseconds())/1000, "cpu-ms/tick")
			b.ReportMetric(float64(d.Int(b, active)-before)/1000/float64(n), "db-ms/tick")
		})
	}
}

func clocked(b *testing.B, c *exec.Cmd) time.Duration {
	b.Helper()
	began := time.Now()
	if err := c.Run(); err != nil {
		b.Fatalf("%s: %v", c.Path, err)
	}
	return time.Since(began)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
