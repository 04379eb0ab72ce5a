package storetest

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// Seed describes many jobs, which a few plain statements write at once. The definitions are like those
// that a user makes in SQL. They are not yet planned.
type Seed struct {
	Jobs  int          // their ids and names are 1 to this number
	Rules []string     // of the schedules; job i uses number i modulo their count
	Steps []store.Step // of the jobs, chosen in the same way
	Queue string       // of the jobs; empty: the tick's own
}

// Seed writes the definitions, at the time of the test's clock.
func (d *DB) Seed(t testing.TB, s Seed) {
	t.Helper()
	login, err := d.Login(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	layout, name := "2006-01-02T15:04:05.000000Z", "CAST(i AS text)"
	if d.Engine == "mariadb" {
		layout, name = "2006-01-02 15:04:05.000000", "CAST(i AS CHAR)"
	}
	now := quote(d.Clock.Now().UTC().Format(layout))
	numbers := Numbers(s.Jobs) + " ORDER BY n.i"

	for i, rule := range s.Rules {
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, name, rule, created_at, changed_at) VALUES (%d, 'schedule %d', %s, %s, %s)",
			d.Table("schedules"), i+1, i, quote(rule), now, now))
	}
	d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, owner, name, queue, created_at, changed_at) SELECT i, %s, %s, %s, %s, %s FROM %s",
		d.Table("jobs"), quote(login), name, quote(cmp.Or(s.Queue, "tick")), now, now, numbers))
	if len(s.Rules) > 0 {
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (job_id, schedule_id, created_at) SELECT i, i %% %d + 1, %s FROM %s",
			d.Table("job_schedules"), len(s.Rules), now, numbers))
	}
	for i, st := range s.Steps {
		d.Exec(t, fmt.Sprintf("INSERT INTO %s (job_id, position, name, executor, spec) SELECT i, 1, 'step', %s, %s FROM %s",
			d.Table("steps"), quote(st.Executor), quote(string(st.Spec)), strings.Replace(numbers, "WHERE", fmt.Sprintf("WHERE i %% %d = %d AND", len(s.Steps), i), 1)))
	}
	d.Analyze(t)
}

// Numbers returns a FROM clause, with WHERE, for the numbers i from 1 to most. A recursion would end
// at 1,000 on MariaDB.
func Numbers(most int) string {
	const digit = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	number, from, size := "1", "(SELECT 1 AS one) AS o", 1
	for size < most {
		number += fmt.Sprintf(" + %d * d%d.d", size, size)
		from += fmt.Sprintf(", %s AS d%d", digit, size)
		size *= 10
	}
	return fmt.Sprintf("(SELECT %s AS i FROM %s) AS n WHERE i <= %d", number, from, most)
}

// Analyze gathers statistics, as a server does by itself after a while. A file of SQLite stays without them, like those of users:
// nothing gathers statistics there.
func (d *DB) Analyze(t testing.TB) {
	t.Helper()
	switch d.Engine {
	case "mariadb":
		for _, table := range []string{"jobs", "job_schedules", "job_after", "steps", "plans", "plan_rules", "runs", "attempts", "changes"} {
			d.Exec(t, "ANALYZE TABLE "+d.Table(table))
		}
	case "postgres":
		d.Exec(t, "ANALYZE")
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
