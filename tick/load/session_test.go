package load

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A statement that returns 150 MB of rows, a million rows in the long form, is executed, and its
// rows are dropped as they come.
func TestSessionDropsRowsAsTheyCome(t *testing.T) {
	t.Parallel() // the memory that is measured is that of another process
	rows, width := 75_000, 2000
	if prove.Whole() {
		rows, width = 1_000_000, 400
	}
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			d := storetest.Open(t, e, store.Options{})
			d.Exec(t, "CREATE TABLE effects (n int)")
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{
				ticktest.Step("", fmt.Sprintf(map[string]string{
					"sqlite":   "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %[1]d) SELECT x, printf('%%%[2]dd', x) FROM c",
					"postgres": "SELECT x, repeat('x', %[2]d) FROM generate_series(1, %[1]d) AS x",
					"mariadb":  "SELECT i, REPEAT('x', %[2]d) FROM " + storetest.Numbers(rows) + " AND i <= %[1]d",
				}[storetest.Dialect(e)], rows, width), "INSERT INTO effects VALUES (1)"),
			}}}})
			ticktest.Request(t, d, "job")
			reports, errs := ticktest.Together(t, []ticktest.Child{{URL: d.URL, Engine: e, Now: d.Clock.Now(), Holder: "child"}})
			if errs[0] != nil || reports[0].Succeeded != 1 || d.Int(t, "SELECT count(*) FROM effects") != 1 {
				t.Fatalf("%v: %+v", errs[0], reports[0])
			}
			if t.Logf("%d MB", reports[0].Peak>>20); reports[0].Peak > 100<<20 {
				t.Errorf("it took %d MB", reports[0].Peak>>20)
			}
		})
	}
}

// The connections of a pass do not grow with its runs.
func TestConnectionsAreBounded(t *testing.T) {
	const runs, side = 60, 3
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" { // it has no connections that could run out
			continue
		}
		t.Run(e, func(t *testing.T) {
			d := storetest.Open(t, e, store.Options{})
			d.Exec(t, "CREATE TABLE seen (n int)")
			count := map[string]string{
				"postgres": "(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database())",
				"mariadb":  "(SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE())",
			}[storetest.Dialect(e)]
			var defs store.Definitions
			for i := range runs {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint(i), Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "INSERT INTO seen SELECT "+count)}})
			}
			ticktest.Apply(t, d, defs)
			ticktest.Run(t, d)
			d.Clock.Add(5 * time.Minute)
			tk := ticktest.New(t, d.Store)
			tk.Concurrency = side
			if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != runs {
				t.Fatalf("%v: %+v", err, r)
			}
			// Each run side by side has one connection for its statements and one for its ledger. There is also
			// one to take and one to look on, and there are those that the server has not yet seen closed.
			most, seen := d.Int(t, "SELECT max(n) FROM seen"), d.Int(t, "SELECT count(*) FROM seen")
			if t.Logf("%d connections", most); seen != runs || most > 4*side+4 {
				t.Errorf("%d connections at once, seen by %d runs", most, seen)
			}
		})
	}
}
