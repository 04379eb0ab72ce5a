//go:build unix

package crash

import (
	"database/sql/driver"
	"fmt"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// each executes a statement on each connection that is open, and adds up the numbers that it returns.
func each(t *testing.T, c *storetest.Connections, text string) (sum int64) {
	t.Helper()
	for _, conn := range c.All() {
		rows, err := conn.(driver.QueryerContext).QueryContext(t.Context(), text, nil)
		if err != nil {
			continue // it is closed
		}
		values := make([]driver.Value, len(rows.Columns()))
		for rows.Next(values) == nil {
			sum += values[0].(int64)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return sum
}

// keeping opens a store through a URL. It returns the store's connections, and a pass that executes
// runs, one at a time.
func keeping(t *testing.T, d *storetest.DB, url string) (c *storetest.Connections, pass func(runs int)) {
	t.Helper()
	d.Exec(t, "CREATE TABLE effects (n int)")
	c = &storetest.Connections{}
	s, err := store.Open(t.Context(), url, store.Options{Clock: d.Clock.Now, Wrap: c.Wrap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	x, err := executor.Open(s, &executor.Host{Direct: &executor.Direct{URL: d.URL, From: "THE_DIRECT_URL"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Overlap: store.OverlapAllow, MaxRunning: 500, Steps: []store.Step{ticktest.Step("one", "INSERT INTO effects VALUES (1)")}}}})
	return c, func(runs int) {
		t.Helper()
		for range runs {
			ticktest.Request(t, d, "job")
		}
		tk := ticktest.New(t, s)
		tk.Executors, tk.Concurrency = x, 1
		if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != runs {
			t.Fatalf("%v: %+v", err, r)
		}
	}
}

// The server keeps the plans of the statements that record ends. It keeps them in sessions that are ours alone,
// and never in one that a pooler lends. A session that has lost them is given up, and every end is recorded once.
func TestPlansAreKeptInOwnSessions(t *testing.T) {
	storetest.Needs(t, "postgres") // the others keep none on the server
	for _, way := range []string{"direct", "pooled"} {
		t.Run(way, func(t *testing.T) {
			d := storetest.Open(t, "postgres", store.Options{})
			url := d.URL
			if way == "pooled" {
				url = behindPooler(t, d.URL, 1)
			}
			const runs = 6
			c, pass := keeping(t, d, url)
			pass(runs)
			if n := each(t, c, "SELECT count(*) FROM pg_prepared_statements"); (n > 0) != (way == "direct") {
				t.Errorf("%d plans are kept", n)
			}
			each(t, c, "DEALLOCATE ALL")
			pass(runs)
			if n := d.Int(t, "SELECT count(*) FROM effects"); n != 2*runs {
				t.Errorf("%d effects, want %d", n, 2*runs)
			}
			if n := d.Int(t, "SELECT count(*) FROM dbjobs.attempts WHERE state = 'succeeded'"); n != 2*runs {
				t.Errorf("%d attempts are recorded, want %d", n, 2*runs)
			}
		})
	}
}

// A plan that was made for a table of a few rows reads the whole table. It is not kept for long.
// Otherwise each end would read the whole table, which has grown in the meantime.
func TestKeptPlansGrowWithTheTables(t *testing.T) {
	storetest.Needs(t, "postgres") // the others keep none on the server
	d := storetest.Open(t, "postgres", store.Options{})
	if d.Int(t, "SELECT current_setting('server_version_num')::int") < 150000 {
		t.Skip("it tells late what it has read")
	}
	c, pass := keeping(t, d, d.URL)
	const more, runs = 10_000, 200
	d.Exec(t, "VACUUM ANALYZE dbjobs.attempts") // else its size is guessed
	pass(20)
	d.Exec(t, "INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, started_at, state)"+
		fmt.Sprintf(" SELECT gen_random_uuid(), 1, 1, 'one', 1, 1, 'x', now(), 'succeeded' FROM generate_series(1, %d)", more))
	read := func() int {
		each(t, c, "SELECT 0::bigint FROM pg_stat_force_next_flush()")
		each(t, c, "SELECT 0::bigint")
		return d.Int(t, "SELECT seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'dbjobs' AND relname = 'attempts'")
	}
	before := read()
	pass(runs)
	if n := (read() - before) / more; n > runs/2 {
		t.Errorf("the table is read whole %d times for %d ends", n, runs)
	} else {
		t.Logf("the table is read whole %d times for %d ends", n, runs)
	}
}
