package crash

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// connections are those of a store to its database.
type connections struct {
	driver.Connector
	mu  sync.Mutex
	all []driver.Conn
}

func (c *connections) wrap(inner driver.Connector) driver.Connector {
	c.Connector = inner
	return c
}

func (c *connections) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.all = append(c.all, conn)
	}
	return conn, err
}

// each executes a statement on each connection that is open, and adds up the numbers that it returns.
func (c *connections) each(t *testing.T, text string) (sum int64) {
	t.Helper()
	for _, conn := range c.all {
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

// The server keeps the plans of what records single ends, in sessions that are ours alone: never in one that a pooler lends.
// A session that has lost them is given up, and every end is recorded once.
func TestPlansAreKeptInOwnSessions(t *testing.T) {
	if !slices.Contains(storetest.Engines(t), "postgres") {
		t.Skip("the others keep none on the server")
	}
	for _, way := range []string{"direct", "pooled"} {
		t.Run(way, func(t *testing.T) {
			d := storetest.Open(t, "postgres", store.Options{})
			d.Exec(t, "CREATE TABLE effects (n int)")
			url := d.URL
			if way == "pooled" {
				url = behindPooler(t, d.URL, 1)
			}
			var c connections
			s, err := store.Open(t.Context(), url, store.Options{Clock: d.Clock.Now, Wrap: c.wrap})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			x, err := executor.Open(s, &executor.Host{Direct: &executor.Direct{URL: d.URL, From: "THE_DIRECT_URL"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(x.Close)
			const runs = 6
			var defs store.Definitions
			for i := range runs {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint(i), Steps: []store.Step{ticktest.Step("one", "INSERT INTO effects VALUES (1)")}})
			}
			ticktest.Apply(t, d, defs)
			pass := func() {
				t.Helper()
				for i := range runs {
					ticktest.Request(t, d, fmt.Sprint(i))
				}
				tk := ticktest.New(t, s)
				tk.Executors, tk.Concurrency = x, 1
				if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != runs {
					t.Fatalf("%v: %+v", err, r)
				}
			}
			const prepared = "SELECT count(*) FROM pg_prepared_statements"
			pass()
			if n := c.each(t, prepared); (n > 0) != (way == "direct") {
				t.Errorf("%d plans are kept", n)
			}
			c.each(t, "DEALLOCATE ALL")
			pass()
			if n := d.Int(t, "SELECT count(*) FROM effects"); n != 2*runs {
				t.Errorf("%d effects, want %d", n, 2*runs)
			}
			if n := d.Int(t, "SELECT count(*) FROM dbjobs.attempts WHERE state = 'succeeded'"); n != 2*runs {
				t.Errorf("%d attempts are recorded, want %d", n, 2*runs)
			}
		})
	}
}
