package load

import (
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// lists asks for all jobs. That reads each table of definitions and plans once, and a few more rows for each job,
// however many runs there were. No statement reads the whole ledger: such a statement would do so for each job.
func lists(t *testing.T, d *storetest.DB, c *storetest.Calls, n extent) {
	t.Helper()
	c.Reset()
	if list, err := d.Jobs(t.Context(), store.JobFilter{}); err != nil || len(list) != n.jobs {
		t.Fatalf("%v: %d jobs", err, len(list))
	}
	read := 0
	for _, call := range c.All() {
		if call.SQL == "" {
			continue
		}
		read += rowsRead(t, d, call)
		plan := explain(t, d, call)
		for _, problem := range wholeTables(d.Engine, call.SQL, plan, n) {
			for _, ledger := range []string{"runs", "attempts", "gaps", "changes", "pauses"} {
				if strings.HasSuffix(problem, " "+ledger) || strings.Contains(problem, " "+ledger+" ") {
					t.Errorf("all jobs: %s: %s:\n%s", call.SQL, problem, strings.Join(plan, "\n"))
				}
			}
		}
	}
	if most := 30 * n.jobs; read > most {
		t.Errorf("all %d jobs: %d rows are read, more than %d", n.jobs, read, most)
	}
	t.Logf("all %d jobs: %d rows read", n.jobs, read)
}

// rowsRead sends a statement once more. It returns how many rows of tables and indexes the server says
// that it read for that, or 0 if the server does not say.
func rowsRead(t *testing.T, d *storetest.DB, c storetest.Call) (n int) {
	t.Helper()
	tx, err := d.SQL.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // it has read
	var count string
	switch d.Engine {
	case "postgres":
		count = "SELECT COALESCE(sum(seq_tup_read + COALESCE(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables"
	case "mariadb":
		count = "SHOW SESSION STATUS LIKE 'Handler_read%'"
	default:
		return 0
	}
	total := func() (sum int) {
		rows, err := tx.QueryContext(t.Context(), count)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var value int
			into := []any{&value}
			if d.Engine == "mariadb" {
				into = []any{&name, &value}
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			sum += value
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	before := total()
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.Value
	}
	rows, err := tx.QueryContext(t.Context(), c.SQL, args...)
	if err != nil {
		t.Fatalf("%s: %v", c.SQL, err)
	}
	defer rows.Close()
	for rows.Next() {
		continue // a row that is not fetched may not have been read
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return total() - before
}
