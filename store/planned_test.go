package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// apart has the columns of jobs that no decision looks at, or that identify the job.
var apart = []string{"id", "name", "description", "manifest", "created_at", "changed_at", "done_at", "plan_input", "planned", "stale", "live_name", "has_hooks"}

// Each column changes the field of plan_input that has its name in the list, and no other. So the test
// finds a column that was put in the middle of the expression, or left out of it.
func TestPlanInputIsReadByName(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		changes := others(d)
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
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET "+column+" = "+to)
			after := input()
			for i := range after {
				if name := store.PlanInput[i]; (after[i] != before[i]) != (name == column) {
					t.Errorf("%s changed: field %d, named %s, was %q and is %q", column, i, name, before[i], after[i])
				}
			}
			before = after
		}
		number := func(column string) (n int64) {
			if _, err := fmt.Sscan(changes[column], &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		at := time.Date(2031, 2, 3, 4, 5, 6, 789_012_000, time.UTC)
		want := store.PlannedPolicies{Known: true, Disabled: true, NotBefore: at, NotAfter: at, MaxRuns: number("max_runs"), RepeatAfter: store.Duration(number("repeat_after_ms")) * store.Duration(time.Millisecond),
			Start: "other start", StartZone: "other start_zone", Owner: "someone", Tags: []string{"other"}, Priority: int(number("priority"))}
		if got := store.ReadPlanned(strings.Join(before, "\x1f")); !reflect.DeepEqual(got, want) {
			t.Errorf("read as %+v, want %+v", got, want)
		}
		if got := store.ReadPlanned(strings.Join(append(before, ""), "\x1f")); !reflect.DeepEqual(got, store.PlannedPolicies{}) {
			t.Errorf("a text of another expression was read as %+v", got)
		}
	})
}

// columns returns the columns of the table jobs.
func columns(t *testing.T, d *storetest.DB) []string {
	t.Helper()
	rows, err := d.SQL.Query("SELECT * FROM " + d.Table("jobs") + " WHERE 1 = 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err := errors.Join(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	return names
}
