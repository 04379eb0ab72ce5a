package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// arming lets do happen once, before the store sends the first statement that has one of the texts. An error of do stands for a
// connection that breaks.
type arming func(do func() error, texts ...string)

// beside runs a test on each engine to which several sessions write at once, in a database that has one job.
func beside(t *testing.T, job store.Job, fn func(t *testing.T, d *storetest.DB, arm arming)) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if storetest.Dialect(e) == "sqlite" {
			continue // one writer at a time
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			var armed func() error
			var at []string
			calls.Before = func(c storetest.Call) error {
				for _, text := range at {
					if do := armed; do != nil && strings.Contains(c.SQL, text) {
						armed = nil
						return do()
					}
				}
				return nil
			}
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			job.Name, job.Steps = "job", []store.Step{{Name: "a", Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
			if _, err := d.Apply(t.Context(), store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 1}}, Jobs: []store.Job{job}}, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			fn(t, d, func(do func() error, texts ...string) { armed, at = do, texts })
		})
	}
}

// other opens the database of a test once more.
func other(t *testing.T, d *storetest.DB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), d.URL, store.Options{Clock: d.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// holds begins a transaction of another session, and executes statements in it.
func holds(t *testing.T, d *storetest.DB, statements ...string) *sql.Tx {
	t.Helper()
	tx, err := d.SQL.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	for _, text := range statements {
		if _, err := tx.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return tx
}

// blocked returns when N sessions wait for a lock, or one of them has answered. MariaDB tells this only to a login that sees the
// sessions of others: there, they get time to begin.
func blocked[T any](t *testing.T, d *storetest.DB, n int, answer chan T) {
	t.Helper()
	if d.Engine != "postgres" {
		time.Sleep(300 * time.Millisecond)
		return
	}
	for range 12_000 {
		if len(answer) > 0 || d.Int(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") >= n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("no %d sessions wait for a lock, and none has answered", n)
}

// A job is altered while another command is about to change it. The change log says what that command changed, and what the
// definition became: with that, an apply compares the definition of a job that is done.
func TestAJobThatIsAlteredMeanwhile(t *testing.T) {
	beside(t, store.Job{}, func(t *testing.T, d *storetest.DB, arm arming) {
		alters := other(t, d)
		for i, c := range []struct {
			action string
			do     func() error
		}{
			{"disable", func() error { return d.EnableJob(t.Context(), "job", false, store.Author{}) }},
			{"enable", func() error { return d.EnableJob(t.Context(), "job", true, store.Author{}) }},
			{"abort", func() error { _, err := d.AbortJob(t.Context(), "job", false, store.Author{}); return err }},
		} {
			arm(func() error {
				if _, err := alters.AlterJob(t.Context(), "job", store.AlterOptions{}, func(j store.Job) (store.Job, error) {
					j.Priority = i + 1
					return j, nil
				}); err != nil {
					t.Error(err)
				}
				return nil
			}, "SET enabled = ", "ORDER BY id FOR UPDATE")
			if err := c.do(); err != nil {
				t.Fatal(c.action, err)
			}
			list, err := d.Changes(t.Context(), "job", "", 1)
			if err != nil || len(list) != 1 || list[0].Action != c.action {
				t.Fatal(c.action, list, err)
			}
			if l := list[0]; len(l.Fields) != 1 || l.Fields[0].Field != "disabled" || !strings.Contains(strings.ReplaceAll(string(l.After), " ", ""), fmt.Sprintf(`"priority":%d`, i+1)) {
				t.Errorf("%s: changed %v, became %s", c.action, l.Fields, l.After)
			}
		}
	})
}

// Two sessions end one pause: the second one hears that nothing is paused, and not that the pause is somebody else's.
func TestAPauseThatIsEndedMeanwhile(t *testing.T) {
	beside(t, store.Job{}, func(t *testing.T, d *storetest.DB, arm arming) {
		everything := store.Subject{Scope: store.ScopeAll}
		if _, err := d.Pause(t.Context(), everything, time.Time{}, store.Author{}); err != nil {
			t.Fatal(err)
		}
		ends := other(t, d)
		arm(func() error {
			if _, err := ends.Resume(t.Context(), everything, false, store.Author{}); err != nil {
				t.Error(err)
			}
			return nil
		}, "SET resumed_at = ")
		if _, err := d.Resume(t.Context(), everything, false, store.Author{}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v, want that nothing is paused", err)
		}
	})
}

// The connection breaks while a command looks its job up. The command tries again, with the name that it was given.
func TestAPauseWhoseConnectionBreaks(t *testing.T) {
	beside(t, store.Job{}, func(t *testing.T, d *storetest.DB, arm arming) {
		broken := false
		arm(func() error {
			broken = true
			return io.ErrUnexpectedEOF
		}, "SELECT id, owner, name, manifest FROM")
		if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "job"}, time.Time{}, store.Author{}); err != nil || !broken {
			t.Errorf("broken: %t, then %v", broken, err)
		}
	})
}

// A run is opened again while a pass removes its job as done. Then there is no such job any more. Otherwise the run would be open,
// and the next pass would cancel it.
func TestARetryWhileTheJobIsRemoved(t *testing.T) {
	beside(t, store.Job{RemoveDone: true, Own: &store.Schedule{Rule: "at 2026-01-05T08:05:00Z"}}, func(t *testing.T, d *storetest.DB, _ arming) {
		r, err := d.RunNow(t.Context(), "job", store.Request{}) // it makes the plan, too
		if err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'failed', finished_at = created_at, settled_at = created_at")
		routine := map[string]string{"postgres": "SELECT dbjobs.retry('" + r.ID + "')", "mariadb": "CALL dbjobs_retry('" + r.ID + "', NULL, NULL)"}[d.Engine]
		for name, retry := range map[string]func() error{
			"the command": func() error { _, err := d.RetryRun(t.Context(), r.ID, "", store.Author{}); return err },
			"the routine": func() error { _, err := d.SQL.ExecContext(t.Context(), routine); return err },
		} {
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET removed_at = NULL")
			pass := holds(t, d, "SELECT job_id FROM "+d.Table("plans")+" FOR UPDATE", "UPDATE "+d.Table("jobs")+" SET removed_at = created_at")
			answer := make(chan error, 1)
			go func() { answer <- retry() }()
			blocked(t, d, 1, answer)
			if err := pass.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-answer; err == nil || !strings.Contains(err.Error(), "was removed") {
				t.Errorf("%s: %v, want that the job was removed", name, err)
			}
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'failed', finished_at = created_at, settled_at = created_at")
		}
	})
}

// A run is opened again while a pass counts its end, which the retry waits for. Then nothing speaks against the retry.
func TestARetryWhileTheEndIsCounted(t *testing.T) {
	beside(t, store.Job{RemoveDone: true, Own: &store.Schedule{Rule: "at 2026-01-05T08:05:00Z"}}, func(t *testing.T, d *storetest.DB, _ arming) {
		r, err := d.RunNow(t.Context(), "job", store.Request{}) // it makes the plan, too
		if err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'failed', finished_at = created_at")
		pass := holds(t, d, "SELECT job_id FROM "+d.Table("plans")+" FOR UPDATE", "UPDATE "+d.Table("runs")+" SET settled_at = created_at")
		answer := make(chan error, 1)
		go func() { _, err := d.RetryRun(t.Context(), r.ID, "", store.Author{}); answer <- err }()
		blocked(t, d, 1, answer)
		if err := pass.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-answer; err != nil {
			t.Error(err)
		}
	})
}

// A decision for a job of a group, which has read the cap, lets a run wait for the group while a file is applied that raises the
// cap. The run is woken, too: otherwise it would wait, though there is room, until something else in the group happens. If the
// file lowers the cap, a run that the decision queues asks for a place again. The new cap is committed before that, so that a
// large file keeps no pass waiting.
func TestACapThatIsChangedBesideADecision(t *testing.T) {
	for most, decided := range map[int]string{2: "held_by = 'group'", 1: "state = 'queued'"} {
		t.Run(fmt.Sprint(most), func(t *testing.T) { capChanges(t, 3-most, most, decided) })
	}
}

// capChanges changes a cap beside a decision that sets the state of a run. It is not the state that is left.
func capChanges(t *testing.T, was, is int, decided string) {
	beside(t, store.Job{Group: "g"}, func(t *testing.T, d *storetest.DB, arm arming) {
		if _, err := d.RunNow(t.Context(), "job", store.Request{}); err != nil {
			t.Fatal(err)
		}
		for _, first := range []bool{true, false} { // the first decision in the group makes its plan
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET held_by = NULL")
			d.Exec(t, fmt.Sprintf("UPDATE %s SET max_running = %d", d.Table("groups"), was))
			statements := []string{"SELECT name FROM " + d.Table("group_plans") + " FOR UPDATE"}
			if first {
				statements[0] = "INSERT INTO " + d.Table("group_plans") + " (name) VALUES ('g')"
			}
			decision := holds(t, d, statements...)
			arm(func() error {
				if n := d.Int(t, "SELECT max_running FROM "+d.Table("groups")); n != is {
					t.Errorf("the cap is %d while the file waits for the decision", n)
				}
				return nil
			}, "FROM "+d.Table("group_plans"))
			answer := make(chan error, 1)
			go func() {
				_, err := d.Apply(t.Context(), store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: is}}}, store.ApplyOptions{})
				answer <- err
			}()
			blocked(t, d, 1, answer)
			if _, err := decision.Exec("UPDATE " + d.Table("runs") + " SET number = 1, " + decided); err != nil {
				t.Fatal(err)
			}
			if err := decision.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-answer; err != nil {
				t.Fatal(err)
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE "+decided); n != 0 {
				t.Errorf("first %t: the run still has %s, and nothing wakes it", first, decided)
			}
		}
	})
}

// A routine waits for a session that has locked what it is about to change, and finds what is there then. Other things that
// routines find then are in TestRoutinesChangeWhatIsThereNow (cmd/dbjobs).
func TestARoutineThatWaitsFindsWhatIsThereThen(t *testing.T) {
	beside(t, store.Job{}, func(t *testing.T, d *storetest.DB, _ arming) {
		r, err := d.RunNow(t.Context(), "job", store.Request{})
		if err != nil {
			t.Fatal(err)
		}
		table := d.Table
		for _, c := range []struct{ before, meanwhile, postgres, mariadb, answer string }{
			{"UPDATE " + table("runs") + " SET state = 'waiting'", "UPDATE " + table("runs") + " SET state = 'succeeded'",
				"SELECT dbjobs.cancel('" + r.ID + "')", "CALL dbjobs_cancel('" + r.ID + "', NULL)", "has ended: succeeded"},
			{"UPDATE " + table("runs") + " SET state = 'failed', settled_at = created_at", "UPDATE " + table("runs") + " SET state = 'waiting', settled_at = NULL",
				"SELECT dbjobs.retry('" + r.ID + "')", "CALL dbjobs_retry('" + r.ID + "', NULL, NULL)", "is waiting"},
			{"UPDATE " + table("runs") + " SET state = 'waiting'", "UPDATE " + table("runs") + " SET state = 'succeeded'",
				"SELECT dbjobs.abort('job', true)", "CALL dbjobs_abort('job', true, NULL)", "0"},
			{"UPDATE " + table("jobs") + " SET priority = 0", "UPDATE " + table("jobs") + " SET priority = 7",
				"SELECT dbjobs.disable('job')", "CALL dbjobs_disable('job', NULL)", ""},
			{"UPDATE " + table("jobs") + " SET enabled = true", "UPDATE " + table("jobs") + " SET removed_at = created_at",
				"SELECT dbjobs.disable('job')", "CALL dbjobs_disable('job', NULL)", "not found"},
		} {
			call := map[string]string{"postgres": c.postgres, "mariadb": c.mariadb}[d.Engine]
			d.Exec(t, c.before)
			theirs := holds(t, d, c.meanwhile)
			answer := make(chan string, 1)
			go func() {
				var text string
				if err := d.SQL.QueryRow(call).Scan(&text); err != nil && !errors.Is(err, sql.ErrNoRows) {
					text = err.Error()
				}
				answer <- text
			}()
			blocked(t, d, 1, answer)
			if err := theirs.Commit(); err != nil {
				t.Fatal(err)
			}
			if text := <-answer; !strings.Contains(text, c.answer) {
				t.Errorf("%s answers %q, want %q", call, text, c.answer)
			}
		}
		list, err := d.Changes(t.Context(), "job", "", 10)
		if err != nil || len(list) == 0 || list[0].Action != "disable" || len(list[0].Fields) != 1 || list[0].Fields[0].Field != "disabled" {
			t.Errorf("the change log has %+v, %v; want that only disabled has changed", list, err)
		}
	})
}

// Two sessions disable a job that a third one has locked. One of them does it, and the other hears that it is done: they do not wait
// for each other.
func TestTwoRoutinesDisableAJob(t *testing.T) {
	beside(t, store.Job{}, func(t *testing.T, d *storetest.DB, _ arming) {
		call := map[string]string{"postgres": "SELECT dbjobs.disable('job')", "mariadb": "CALL dbjobs_disable('job', NULL)"}[d.Engine]
		theirs := holds(t, d, "UPDATE "+d.Table("jobs")+" SET priority = 7")
		answers := make(chan string, 2)
		for range 2 {
			go func() {
				text := "done"
				if _, err := d.SQL.ExecContext(t.Context(), call); err != nil {
					text = err.Error()
				}
				answers <- text
			}()
		}
		blocked(t, d, 2, answers)
		if err := theirs.Commit(); err != nil {
			t.Fatal(err)
		}
		first, second := <-answers, <-answers
		if all := first + ", " + second; !strings.Contains(all, "done") || !strings.Contains(all, "is disabled already") {
			t.Errorf("they hear: %s", all)
		}
	})
}
