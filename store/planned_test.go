package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// changes are another value for each column that jobs.plan_input joins.
var changes = map[string]string{
	"enabled": "NOT enabled", "removed_at": "INSTANT", "not_before": "INSTANT", "not_after": "INSTANT", "jitter_ms": "7001",
	"repeat_after_ms": "7002", "max_runs": "7003", "overlap": "'skip'", "max_running": "7004", "group_name": "'etl'", "queue": "'slow'",
	"priority": "7005", "missed": "'all'", "missed_limit": "7006", "missed_within_ms": "7007", "missed_grace_ms": "7008", "retry_attempts": "7009",
	"retry_backoff_ms": "7010", "retry_max_backoff_ms": "7011", "retry_jitter": "71", "max_deliveries": "7012", "on_error": "'pause'",
	"pause_after_failures": "7013", "timeout_ms": "7014", "on_startup": "NOT on_startup", "after_job_id": "7015", "keep_runs": "7016",
	"keep_age_ms": "7017", "remove_when_done": "NOT remove_when_done", "start_zone": "'Asia/Tokyo'", "start_rule": "'D 17:30'", "tags": "'[\"eu\"]'",
	"owner": "'someone'",
}

// apart are the columns of jobs that no decision looks at, or that tell which job it is.
var apart = []string{"id", "name", "description", "manifest", "created_at", "changed_at", "done_at", "plan_input", "planned", "stale", "live_name"}

// Each column changes the field of plan_input that has its name in the list, and no other: one put in the middle of the
// expression, or left out of it, is found.
func TestPlanInputIsReadByName(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		instant := "'2031-02-03T04:05:06.789012Z'"
		if d.Engine == "mariadb" {
			instant = "'2031-02-03 04:05:06.789012'"
		}
		d.Exec(t, "INSERT INTO "+d.Table("jobs")+" (name) VALUES ('job')")
		input := func() []string {
			var text string
			if err := d.SQL.QueryRow("SELECT plan_input FROM " + d.Table("jobs")).Scan(&text); err != nil {
				t.Fatal(err)
			}
			return strings.Split(text, "\x1f")
		}
		before := input()
		if len(before) != len(store.PlanInput) {
			t.Fatalf("%d fields, and %d names", len(before), len(store.PlanInput))
		}
		for _, column := range columns(t, d) {
			to, known := changes[column]
			if !known {
				if !slices.Contains(apart, column) {
					t.Errorf("nothing is known of the column %s: does a decision look at it?", column)
				}
				continue
			}
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET "+column+" = "+strings.ReplaceAll(to, "INSTANT", instant))
			after := input()
			for i := range after {
				if name := store.PlanInput[i]; (after[i] != before[i]) != (name == column) {
					t.Errorf("%s changed: field %d, named %s, was %q and is %q", column, i, name, before[i], after[i])
				}
			}
			before = after
		}
		at := time.Date(2031, 2, 3, 4, 5, 6, 789_012_000, time.UTC)
		want := store.Was{Known: true, Disabled: true, NotBefore: at, NotAfter: at, MaxRuns: 7003, RepeatAfter: store.Duration(7002 * time.Millisecond),
			Start: "D 17:30", StartZone: "Asia/Tokyo"}
		if got := store.ReadWas(strings.Join(before, "\x1f")); got != want {
			t.Errorf("read as %+v, want %+v", got, want)
		}
		if got := store.ReadWas(strings.Join(append(before, ""), "\x1f")); got != (store.Was{}) {
			t.Errorf("a text of another expression was read as %+v", got)
		}
	})
}

// columns are those of the table jobs.
func columns(t *testing.T, d *storetest.DB) []string {
	t.Helper()
	rows, err := d.SQL.Query("SELECT * FROM " + d.Table("jobs") + " WHERE 1 = 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	return names
}
