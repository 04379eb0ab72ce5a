package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestSessionsOfOtherSystems: the usual tasks of a session with each of the other systems need only a few statements
// here. At most three create and schedule a job, one pauses it, one shows its schedules, and one aborts it.
func TestSessionsOfOtherSystems(t *testing.T) {
	t.Parallel()
	sessions := []struct {
		system        string
		create        []call
		pause, resume call
		shows         string // the view that shows the paused thing, and its name
	}{
		{"job$ procedures", []call{routine("create_schedule", "nightly", "0 2 * * *", "Europe/Berlin"), routine("create_job", "rollup", "SELECT 1", nil, `{"timeout": "1h"}`), routine("add_job_schedule", "rollup", "nightly")},
			routine("pause", "rollup"), routine("resume", "rollup"), "jobs rollup"},
		{"CREATE SCHEDULE", []call{routine("create_schedule", "nightly", "@daily"), routine("create_job", "rollup", "SELECT 1", nil, `{"schedule": "nightly", "on_error": "pause"}`)},
			routine("pause", "nightly", "schedule"), routine("resume", "nightly", "schedule"), "schedules nightly"},
		{"a queue in a table", []call{routine("create_job", "rollup", "SELECT 1", nil, `{"queue": "reports", "priority": 5}`), routine("run_now", "rollup", `{"order": "17"}`, nil, "order 17")},
			routine("pause", "rollup"), routine("resume", "rollup"), "jobs rollup"},
		{"usp_ procedures", []call{routine("create_schedule", "nightly", "every 1h"), routine("create_job", "rollup", "SELECT 1", nil, `{"schedules": ["nightly"]}`), routine("add_step", "rollup", "second", "SELECT 2")},
			routine("pause", "rollup"), routine("resume", "rollup", nil, true), "jobs rollup"},
		{"pgj_ functions", []call{routine("create_job", "rollup", "SELECT 1", "D 02:00", `{"zone": "Europe/Berlin"}`)},
			routine("pause", "rollup", nil, nil, "the vendor asked"), routine("resume", "rollup"), "jobs rollup"},
	}
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			for _, s := range sessions {
				if len(s.create) > 3 {
					t.Errorf("%s: %d statements", s.system, len(s.create))
				}
				view, name, _ := strings.Cut(s.shows, " ")
				show := func() (state string) {
					t.Helper()
					dbjobs(t, d.URL, "", exitDone, "tick")
					if err := d.SQL.QueryRow("SELECT state FROM " + d.Table("v_"+view) + " WHERE name = '" + name + "'").Scan(&state); err != nil {
						t.Fatalf("%s: %v", s.system, err)
					}
					return state
				}
				do := func(calls ...call) {
					t.Helper()
					for _, c := range calls {
						if err := c.on(d); err != nil {
							t.Fatalf("%s: %v: %v", s.system, c, err)
						}
					}
				}
				do(s.create...)
				if state := show(); state != "active" && state != "sleeping" {
					t.Errorf("%s: it is %s at first", s.system, state)
				}
				do(s.pause)
				if state := show(); state != "paused" {
					t.Errorf("%s: it is %s after a pause", s.system, state)
				}
				do(s.resume)
				if state := show(); state != "active" && state != "resumed" {
					t.Errorf("%s: it is %s after a resume", s.system, state)
				}
				do(routine("abort", "rollup"))
				if state := show(); view == "jobs" && state != "aborted" {
					t.Errorf("%s: it is %s after an abort", s.system, state)
				}
				do(routine("drop_job", "rollup"), routine("drop_unused_schedules"))
			}
		})
	}
}
