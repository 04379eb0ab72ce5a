package tick_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

type hostileColumn struct{ name, kind string }

var instants = regexp.MustCompile(`(_at|_for|_start|_end|_until|_from|_through|^from_at|^next_run|^since|^not_before|^not_after|_finished_at)$`)

// catalogue reads the writable columns.
func (h *hostile) catalogue(t *testing.T) {
	tables := []string{"schedules", "jobs", "steps", "job_schedules", "job_after", "groups", "calendars", "pauses", "plans", "plan_rules", "group_plans", "runs", "attempts", "gaps", "changes", "ticks"}
	for _, name := range tables { // all tables but installation, which says whose database it is, and would refuse everything
		query := fmt.Sprintf("SELECT name, type FROM pragma_table_xinfo('%s') WHERE hidden = 0", h.Table(name))
		switch h.Engine {
		case "postgres":
			query = fmt.Sprintf("SELECT column_name::text, data_type::text FROM information_schema.columns WHERE table_schema = 'dbjobs' AND table_name = '%s' AND is_generated = 'NEVER'", name)
		case "mariadb":
			query = fmt.Sprintf("SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '%s' AND COALESCE(generation_expression, '') = ''", h.Table(name))
		}
		rows, err := h.SQL.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		table := hostileTable{name: name}
		for rows.Next() {
			var c hostileColumn
			if err := rows.Scan(&c.name, &c.kind); err != nil {
				t.Fatal(err)
			}
			switch kind := strings.ToLower(c.kind); {
			case instants.MatchString(c.name):
				c.kind = "instant"
			case strings.Contains(kind, "int"):
				c.kind = "number"
			case kind == "boolean" || kind == "uuid":
				c.kind = kind
			case c.name == "tags" || c.name == "spec" || c.name == "args" || c.name == "was" || c.name == "became":
				c.kind = "json"
			default:
				c.kind = "text"
			}
			table.columns = append(table.columns, c)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		h.tables = append(h.tables, table)
	}
}

// values are the values that are written into a column, as SQL.
func (h *hostile) values(c hostileColumn) []string {
	large := map[string]string{"postgres": "repeat('x', 2000000)", "mariadb": "REPEAT('x', 2000000)", "sqlite": "printf('%.2000000c', 'x')"}[h.Engine]
	id := "'00000000-0000-0000-0000-000000000000'"
	other := fmt.Sprintf("(SELECT %s FROM %s WHERE job_id = 2)", map[bool]string{true: "min(id::text)::uuid", false: "MIN(id)"}[h.Engine == "postgres"], h.kept("runs"))
	switch c.kind {
	case "number":
		return []string{"9223372036854775807", "-9223372036854775808", "2147483647", "-2147483648", "0", "-1", "2", "5", "999999", "NULL"}
	case "boolean":
		return []string{"true", "false", "NULL"}
	case "uuid":
		return []string{id, other, "NULL"}
	case "instant":
		list := []string{"NULL"}
		for _, v := range map[string][]string{
			"postgres": {"infinity", "-infinity", "0044-03-15 BC", "0001-01-01", "294276-12-31", "9999-12-31 23:59:59.999999+00", "10000-01-01", "1970-01-01", "2500-01-01"},
			"mariadb":  {"0000-00-00", "2026-00-00", "2026-01-00", "0001-01-01", "1000-01-01", "9999-12-31 23:59:59.999999", "1970-01-01", "2500-01-01"},
			"sqlite": {"", "x", "2026-02-31T00:00:00.000000Z", "2026-01-05T24:00:00.000000Z", "99999-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z",
				"2026-01-05 08:00:00", "2026-01-05T08:00:00Z", "1", "-infinity", "1970-01-01T00:00:00.000000Z", "2500-01-01T00:00:00.000000Z"},
		}[h.Engine] {
			list = append(list, "'"+v+"'")
		}
		return append(list, large)
	case "json":
		deep := fmt.Sprintf("'%s%s'", strings.Repeat("[", 12_000), strings.Repeat("]", 12_000))
		return []string{deep, "'{}'", "'[]'", "'null'", "'[1, null, {}, \"\"]'", "'{\"sql\": 1}'", "'1'", "''", "'x'", "NULL", "'[\"" + strings.Repeat("y", 1_000_000) + "\"]'"}
	}
	list := []string{"''", "NULL", "'x'", "' '", "'culprit'", "'healthy 1'", "'all'", "'a/b'", "'tick'", "'9223372036854775807'", "'\u001b[31m'", "'" + strings.Repeat("é", 180) + "'", id, large}
	if h.Engine == "sqlite" {
		list = append(list, "CAST(X'ff00fe' AS text)", "CAST(X'c3' AS text)", "3.5", "X'00'")
	}
	return list
}

// keyColumns are the columns by which rows are found, in this test and by the commands that it tries.
var keyColumns = []string{"id", "job_id", "run_id", "after_job_id", "subject_id", "name", "owner", "state"}

// rowsOf returns the culprit's rows of a table. Of its runs, it returns one for each state.
func (h *hostile) rowsOf(table string, c hostileColumn, value string, n int, all bool) (list []hostileCase) {
	where := []string{"1 = 1"}
	switch table {
	case "jobs":
		where = []string{"id = 1"}
	case "steps", "plans", "plan_rules", "job_schedules", "gaps":
		where = []string{"job_id = 1"}
	case "job_after":
		where = []string{"after_job_id = 1"}
	case "schedules":
		where = []string{"name = 'shared'"}
	case "runs":
		where = []string{"job_id = 1 AND state = 'waiting'", "job_id = 1 AND state = 'queued'", "job_id = 1 AND state = 'running'", "job_id = 1 AND state = 'succeeded'"}
	case "attempts":
		where = []string{"run_id IN (SELECT id FROM " + h.kept("runs") + " WHERE job_id = 1 AND state = 'running')", "run_id IN (SELECT id FROM " + h.kept("runs") + " WHERE job_id = 1 AND state = 'succeeded')"}
	case "changes":
		where = []string{"subject_id = 1"}
	}
	if !all {
		where = where[n%len(where) : n%len(where)+1]
	}
	for _, w := range where {
		list = append(list, hostileCase{table, c, value, w})
	}
	return list
}
