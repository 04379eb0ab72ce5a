package main

import (
	"database/sql/driver"
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

// TestRoutinesHeedNoCompletionType: a session may say that each of its transactions is followed by another one, or by the end of
// the session. A call ends its own transaction, and no more: the session goes on, and commits what it does next.
func TestRoutinesHeedNoCompletionType(t *testing.T) {
	calls := []struct {
		before  string // what the session does first
		call    call
		refused string
	}{
		{"DO 1", routine("take", "reports", "me"), ""}, {"DO 1", routine("take", "nothing", "me"), ""}, {"DO 1", routine("take", "reports", "me", -1), "JB003"},
		{"DO 1", routine("pause", "report"), ""}, {"DO 1", routine("pause", "report"), "JB002"},
		{"START TRANSACTION; SAVEPOINT dbjobs_own", routine("take", "reports", "me"), ""},          // as a call that was killed leaves it on MySQL
		{"DO 1", routine("pause", nil, "all"), ""}, {"DO 1", routine("take", "reports", "me"), ""}, // in a freeze
	}
	for _, engine := range withRoutines(t) {
		if storetest.Dialect(engine) != "mariadb" {
			continue
		}
		for _, completion := range []string{"CHAIN", "RELEASE"} {
			t.Run(engine+"/"+completion, func(t *testing.T) {
				t.Parallel()
				d := storetest.Open(t, engine, store.Options{Clock: time.Now})
				if err := routine("create_job", "report", "SELECT 1", nil, `{"queue": "reports"}`).on(d); err != nil {
					t.Fatal(err)
				}
				many(t, d, 3, 0)
				d.Exec(t, "CREATE TABLE kept (n int)")
				for n, c := range calls {
					text, args := c.call.text(engine)
					session := strings.Split(c.before+"; SET completion_type = '"+completion+"'; "+text+"; INSERT INTO kept VALUES (1)", "; ")
					goesOn(t, d, session, args, c.refused, func() {
						if kept := d.Int(t, "SELECT COUNT(*) FROM kept"); kept != n+1 {
							t.Errorf("after %v the session has committed %d rows, want %d", c.call, kept, n+1)
						}
					})
				}
			})
		}
	}
}

// goesOn sends the statements of a session. The last but one of them is a call, which is refused with an SQLSTATE or does not
// fail. then is called before the session ends, whose open transaction is rolled back.
func goesOn(t *testing.T, d *storetest.DB, statements []string, args []any, refused string, then func()) {
	t.Helper()
	session, err := d.SQL.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = session.Raw(func(any) error { return driver.ErrBadConn }) // the pool closes it
		_ = session.Close()
	}()
	for i, st := range statements {
		if i != len(statements)-2 {
			if _, err := session.ExecContext(t.Context(), st); err != nil {
				t.Errorf("%s: %v", st, err)
			}
		} else if _, err := session.ExecContext(t.Context(), st, args...); (err != nil || refused != "") && sqlState(err) != refused {
			t.Errorf("%s: %v, want the state %q", st, err, refused)
		}
	}
	then()
}
