package tick_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A row may hold any value: somebody wrote it by hand or restored it from elsewhere, or the engine does not keep its
// own constraints. For each column of each table in the engine's catalogue, the test writes a list of values, one at a
// time, with three healthy jobs beside. Each time, a pass ends within a bounded number of statements, the healthy jobs
// run, and every command works, also on the job whose row was changed. The test does all this once with the constraints
// of the tables, and once without, for the values that they refuse. DBJOBS_PROVE tries all values everywhere, each by
// itself. Without it, each column has one value on one engine, and a few values are there at a time.
func TestHostileRows(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		for _, checked := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/checked=%t", e, checked), func(t *testing.T) {
				t.Parallel()
				hostileRows(t, e, checked)
			})
		}
	}
}

// hostile is a database with a culprit and three healthy jobs. It can be reset to its first state.
type hostile struct {
	*storetest.DB
	calls   storetest.Calls
	checked bool
	tables  []hostileTable
	now     time.Time
	tick    *tick.Tick // a process that stays: to log in is most of the work of a short pass
}

type hostileTable struct {
	name    string
	columns []hostileColumn
}

// hostileCase is one value in one column of one of the culprit's rows.
type hostileCase struct {
	table  string
	column hostileColumn
	value  string // as SQL
	row    string // which row
}

func (c hostileCase) String() string {
	return fmt.Sprintf("%s.%s = %.60s where %s", c.table, c.column.name, c.value, c.row)
}

const unharmed = 3

func hostileRows(t *testing.T, engine string, checked bool) {
	h := newHostile(t, engine, checked)
	var cases []hostileCase
	whole := prove.Whole()
	share := slices.Index([]string{"sqlite", "postgres", "mariadb"}, storetest.Dialect(engine)) * 2
	if checked {
		share++
	}
	n := 0
	for _, table := range h.tables {
		for _, column := range table.columns {
			values := h.values(column)
			for i, v := range values {
				// One value for each column, on one of the engines in one of the forms. The value differs from column
				// to column.
				if !whole && (n%6 != share || i != (n*7+len(engine))%len(values)) {
					continue
				}
				cases = append(cases, h.rowsOf(table.name, column, v, n, whole)...)
			}
			n++
		}
	}
	if one := os.Getenv("DBJOBS_HOSTILE"); one != "" {
		var some []hostileCase
		for _, c := range cases {
			if strings.Contains(c.String(), one) {
				some = append(some, c)
			}
		}
		cases = some
	}
	all := len(cases)
	if whole && !checked {
		cases = h.unchecked(t, cases)
	}
	if !checked && checksOf[engine] != "" {
		h.dropChecks(t)
	}
	refused, told := 0, 0
	var slowest time.Duration
	tried := 0
	changed := true
	for _, group := range together(cases, whole) {
		began := time.Now()
		if changed { // a refused value changes nothing but the next id
			h.restore(t)
		}
		before := len(group)
		changed = slices.ContainsFunc(group, func(c hostileCase) bool { return c.column.name == "id" })
		group = slices.DeleteFunc(group, func(c hostileCase) bool { return h.put(c) != nil })
		refused += before - len(group)
		if len(group) == 0 {
			continue
		}
		changed = true
		tried++
		named, problem := h.try(t, group)
		if named {
			told++
		}
		if slowest = max(slowest, time.Since(began)); problem != "" {
			t.Errorf("%s: %s", group, problem)
		}
	}
	t.Logf("hostile rows: %s, checked %t: %d columns, %d cases: %d are tried with the constraints; %d refused by the engine; of %d tries %d told by name, %d harmless; the slowest took %s",
		engine, checked, n, all, all-len(cases), refused, tried, told, tried-told, slowest.Round(time.Millisecond))
	if n < 120 || refused == len(cases) && len(cases) > 50 {
		t.Errorf("%d columns, %d of %d cases refused: too few to prove anything", n, refused, len(cases))
	}
}

func newHostile(t *testing.T, engine string, checked bool) *hostile {
	h := &hostile{checked: checked}
	h.DB = storetest.Open(t, engine, store.Options{Wrap: h.calls.Wrap})
	cull := ticktest.Hourly("culprit")
	cull.Tags, cull.Group, cull.Overlap, cull.MaxRunning = []string{"a"}, "g", "allow", 5
	cull.Own, cull.Schedules = nil, []string{"shared"}
	cull.Steps = []store.Step{ticktest.Step("", "SELECT 1")}
	cull.Steps[0].Timeout = store.Duration(time.Minute)
	jobs := []store.Job{cull}
	for i := range unharmed {
		jobs = append(jobs, ticktest.Hourly(fmt.Sprintf("healthy %d", i+1)))
	}
	follower := store.Job{Name: "follower", After: []store.After{{Job: "culprit"}}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}
	ticktest.Apply(t, h.DB, store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 5}}, Schedules: []store.Schedule{{Name: "shared", Rule: "every 1h"}}, Jobs: append(jobs, follower)})
	ticktest.Run(t, h.DB)
	h.Clock.Add(time.Hour)
	ticktest.Run(t, h.DB)
	subject := store.Subject{Scope: store.ScopeJob, Name: "culprit"}
	if _, err := h.Pause(t.Context(), subject, time.Time{}, store.Author{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Resume(t.Context(), subject, false, store.Author{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := h.RunNow(t.Context(), "culprit", store.Request{Args: map[string]string{"a": "b"}}); err != nil {
			t.Fatal(err)
		}
	}
	ticktest.DecideOnly(t, h.DB)
	if _, err := h.Take(t.Context(), "tick", 1, store.Holder{Name: "dead", Lease: time.Minute}); err != nil { // one is running
		t.Fatal(err)
	}
	last := map[bool]string{true: "max(id::text)::uuid", false: "MAX(id)"}[engine == "postgres"] // there is no greatest UUID
	h.Exec(t, fmt.Sprintf("CREATE TABLE one AS SELECT %s AS id FROM %s WHERE state = 'queued'", last, h.Table("runs")))
	h.Exec(t, fmt.Sprintf("UPDATE %s SET state = 'waiting', started_at = %s WHERE id = (SELECT id FROM one)", h.Table("runs"), ticktest.Literal(h.DB, h.Clock.Now())))
	h.Exec(t, fmt.Sprintf("INSERT INTO %s (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at) VALUES (1, 1, %s, %s, 'missed', 'x', %s)", h.Table("gaps"),
		ticktest.Literal(h.DB, h.Clock.Now().Add(-time.Minute)), ticktest.Literal(h.DB, h.Clock.Now()), ticktest.Literal(h.DB, h.Clock.Now())))
	h.now = h.Clock.Now()
	h.tick = ticktest.New(t, h.Store)
	uncounted, err := store.Open(t.Context(), h.URL, store.Options{Clock: h.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { uncounted.Close() })
	h.tick.Executors = ticktest.New(t, uncounted).Executors // only there are the sessions of steps used again
	h.catalogue(t)
	for _, table := range h.tables {
		h.Exec(t, fmt.Sprintf("CREATE TABLE %s AS SELECT %s FROM %s", h.kept(table.name), table.list(), h.Table(table.name)))
	}
	return h
}

func (h *hostile) kept(table string) string { return "kept_" + table }

func (t hostileTable) list() string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// checksOf finds our constraints on engines that have no setting that turns constraints off.
var checksOf = map[string]string{
	"postgres": "SELECT conrelid::regclass::text, conname::text FROM pg_constraint WHERE contype = 'c' AND connamespace = 'dbjobs'::regnamespace",
	"mysql":    "SELECT table_name, constraint_name FROM information_schema.table_constraints WHERE constraint_type = 'CHECK' AND table_schema = DATABASE()",
}

// unchecked returns the cases that are tried without the constraints. What they accept leaves the same row without them.
func (h *hostile) unchecked(t *testing.T, cases []hostileCase) []hostileCase {
	conn, err := h.SQL.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return slices.DeleteFunc(cases, func(c hostileCase) bool {
		tx, err := conn.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		_, err = tx.ExecContext(t.Context(), c.update(h))
		return err == nil
	})
}

func (h *hostile) dropChecks(t *testing.T) {
	rows, err := h.SQL.Query(checksOf[h.Server])
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var drop []string
	for rows.Next() {
		var table, name string
		if err := rows.Scan(&table, &name); err != nil {
			t.Fatal(err)
		}
		drop = append(drop, fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", table, name))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, statement := range drop {
		h.Exec(t, statement)
	}
}

// within runs SQL on its own connection.
func (h *hostile) within(statements ...string) error {
	conn, err := h.SQL.Conn(context.Background())
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, s := range statements {
		if _, err := conn.ExecContext(context.Background(), s); err != nil {
			return fmt.Errorf("%.200s: %w", s, err)
		}
	}
	return nil
}

func (h *hostile) restore(t *testing.T) {
	t.Helper()
	h.Clock.Set(h.now)
	statements := []string{"BEGIN"}
	for _, table := range h.tables {
		statements = append(statements, "DELETE FROM "+h.Table(table.name),
			fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s", h.Table(table.name), table.list(), table.list(), h.kept(table.name)))
	}
	statements = append(statements, "COMMIT")
	for _, table := range []string{"jobs", "schedules", "pauses", "changes"} { // a row that had the greatest id would leave no room for new ids
		switch h.Engine {
		case "mariadb":
			statements = append(statements, "ALTER TABLE "+h.Table(table)+" AUTO_INCREMENT = 1000")
		case "sqlite":
			statements = append(statements, "UPDATE sqlite_sequence SET seq = 1000 WHERE name = '"+h.Table(table)+"'")
		}
	}
	if err := h.within(statements...); err != nil {
		t.Fatal(err)
	}
}

func (c hostileCase) update(h *hostile) string {
	return fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", h.Table(c.table), c.column.name, c.value, c.row)
}

func (h *hostile) put(c hostileCase) error {
	update := c.update(h)
	before := map[string]string{"sqlite": "PRAGMA ignore_check_constraints = 1", "mariadb": "SET check_constraint_checks = 0, sql_mode = ''"}[h.Engine]
	if h.Server == "mysql" {
		before = "SET sql_mode = ''"
	}
	if h.checked || before == "" {
		return h.within(update)
	}
	return h.within(before, update)
}

// together returns the cases that are tried at the same time. In the whole form, each is tried by itself, and so is a
// case that changes a column by which rows are found. Otherwise there are eight, of different tables as far as
// possible.
func together(cases []hostileCase, whole bool) (groups [][]hostileCase) {
	var others []hostileCase
	for _, c := range cases {
		if whole || slices.Contains(keyColumns, c.column.name) {
			groups = append(groups, []hostileCase{c})
		} else {
			others = append(others, c)
		}
	}
	const atOnce = 8
	n := (len(others) + atOnce - 1) / atOnce
	for i := range n {
		var group []hostileCase
		for k := i; k < len(others); k += n {
			group = append(group, others[k])
		}
		groups = append(groups, group)
	}
	return groups
}

// try runs one pass, or two in the whole form, and all commands. named says whether the report or a list has named the
// culprit.
func (h *hostile) try(t *testing.T, group []hostileCase) (named bool, problem string) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // much longer than a slow machine needs
	defer cancel()
	count := fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE job_id IN (2, 3, 4) AND state = 'succeeded'", h.Table("runs"))
	before := h.Int(t, count)
	passes := 1 // in the whole form, the second pass shows what the first has left behind
	if prove.Whole() {
		passes = 2
	}
	for i := range passes {
		h.Clock.Add(time.Hour)
		h.calls.Reset()
		r, err := h.tick.Run(ctx)
		if n := h.calls.Count(); n > 700 {
			return named, fmt.Sprintf("pass %d took %d calls", i+1, n)
		}
		if err != nil {
			return named, fmt.Sprintf("pass %d: %v", i+1, err)
		}
		named = named || len(r.Parked)+r.Failed > 0
	}
	if ran := h.Int(t, count) - before; ran < passes*unharmed {
		return named, fmt.Sprintf("the healthy jobs have run %d times", ran)
	}
	shown, err := h.commands(ctx, group)
	if err != nil {
		return named, err.Error()
	}
	return named || strings.Contains(shown, "unreadable"), ""
}
