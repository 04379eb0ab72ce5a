package tick_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// spoil writes an instant that no program can read, in the form that the engine allows.
func spoil(t *testing.T, d *storetest.DB, table, column, where string) {
	t.Helper()
	first, value := "SELECT 1", "'infinity'"
	switch {
	case d.Engine == "sqlite":
		first, value = "PRAGMA ignore_check_constraints = 1", "'x'"
	case d.Server == "mariadb":
		first, value = "SET check_constraint_checks = 0, sql_mode = ''", "'2026-00-00'"
	case d.Server == "mysql":
		first, value = "SET sql_mode = ''", "'2026-00-00'"
	}
	if checksOf[d.Server] != "" {
		(&hostile{DB: d}).dropChecks(t)
	}
	conn, err := d.SQL.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{first, fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", d.Table(table), column, value, where)} {
		if _, err := conn.ExecContext(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// A job whose definition or plan cannot be read is parked, and does not run: no value is guessed. It goes on when the
// row is repaired.
func TestUnreadableJobIsParked(t *testing.T) {
	for _, c := range []struct{ table, column, where, want string }{
		{"jobs", "not_before", "id = 1", "cannot be read: its definition: column not_before: "},
		{"plans", "last_success_at", "job_id = 1", "cannot be read: column last_success_at: "},
	} {
		t.Run(c.table, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job")}})
				ticktest.Run(t, d) // 08:00
				spoil(t, d, c.table, c.column, c.where)
				d.Clock.Add(time.Hour)
				ticktest.Run(t, d)
				if v, err := d.Job(t.Context(), "job"); err != nil || !strings.Contains(v.Parked, c.want) {
					t.Errorf("%v: parked: %q, want %q", err, v.Parked, c.want)
				}
				if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE job_id = 1"); n != 0 {
					t.Errorf("%d runs of a job that cannot be read", n)
				}
				d.Exec(t, fmt.Sprintf("UPDATE %s SET %s = NULL WHERE %s", d.Table(c.table), c.column, c.where))
				d.Clock.Add(store.Recheck)
				ticktest.Run(t, d)
				if got := ticktest.ToldIn(t, d, "job", "15:04"); got != "09:00 succeeded; next 10:00" {
					t.Error(got)
				}
			})
		})
	}
}

// A run that cannot be read fails. If a process holds it, the run stays, and uses up the room of the job, until its
// lease has ended.
func TestUnreadableRunFails(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Server == "mariadb" {
			return // the engine checks all constraints of a changed row, so such a row stays as it is
		}
		job := ticktest.Hourly("job")
		job.Overlap, job.MaxRunning, job.Queue = store.OverlapAllow, 1, "another"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job}})
		ticktest.DecideOnly(t, d)
		states := func() (first, second string) {
			t.Helper()
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
			if err != nil || len(runs) != 2 {
				t.Fatalf("%v: %d runs", err, len(runs))
			}
			for _, r := range runs {
				state := strings.TrimSpace(r.State + " " + cmp.Or(r.HeldBy, r.Error))
				if strings.HasPrefix(r.Occurrence, "at:") {
					first = state
				} else {
					second = state
				}
			}
			return first, second
		}
		d.Clock.Add(time.Hour)
		ticktest.DecideOnly(t, d)
		if _, err := d.Take(t.Context(), "another", 1, store.Holder{Name: "worker", Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		spoil(t, d, "runs", "interval_start", "state = 'running'")
		ticktest.RunNow(t, d, "job", store.Request{})
		ticktest.DecideOnly(t, d)
		if first, second := states(); first != "running" || !strings.HasPrefix(second, "waiting") {
			t.Errorf("%s, %s; want the first one running, the second one waiting", first, second)
		}
		d.Clock.Add(2 * time.Minute)
		ticktest.DecideOnly(t, d)
		if first, second := states(); !strings.HasPrefix(first, "failed its row cannot be read: column interval_start: ") || second != "queued" {
			t.Errorf("%s, %s; want the first one failed, the second one queued", first, second)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")+" WHERE state = 'lost'"); n != 1 {
			t.Errorf("%d attempts are lost, want that of the first run", n)
		}
	})
}

// A run that cannot be read stays with its holder, if the holder has extended the lease since the decision has read it.
func TestUnreadableRunStaysWithItsHolder(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Server == "mariadb" || d.Engine == "sqlite" {
			return // such a row stays as it is; and no other session writes during a decision
		}
		job := ticktest.Hourly("job")
		job.Queue = "another"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job}})
		ticktest.DecideOnly(t, d)
		d.Clock.Add(time.Hour)
		ticktest.DecideOnly(t, d)
		if _, err := d.Take(t.Context(), "another", 1, store.Holder{Name: "worker", Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		spoil(t, d, "runs", "interval_start", "state = 'running'")
		d.Clock.Add(2 * time.Minute)
		var calls storetest.Calls
		extended := false
		calls.Before = func(c storetest.Call) error {
			if !extended && strings.HasPrefix(c.SQL, "SELECT id FROM "+d.Table("runs")+" WHERE ") {
				extended = true
				d.Exec(t, "UPDATE "+d.Table("runs")+" SET lease_until = "+ticktest.Literal(d, d.Clock.Now().Add(time.Minute)))
			}
			return nil
		}
		if _, err := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap})).Run(t.Context()); err != nil || !extended {
			t.Fatal(err, extended)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE state = 'running'"); n != 1 {
			t.Errorf("%d runs are running, want that of the holder", n)
		}
	})
}

// A worker takes from all queues, also if the name of one cannot be read. The runs of that queue fail, and their jobs go
// on.
func TestUnreadableQueue(t *testing.T) {
	storetest.Needs(t, "sqlite") // the others store no such text
	d := storetest.Open(t, "sqlite", store.Options{})
	inQueues(t, d, 1, "a", "b", "c", "d")
	d.Exec(t, "UPDATE "+d.Table("runs")+" SET queue = CAST(X'62ff' AS text) WHERE queue = 'b'")
	d.Exec(t, "UPDATE "+d.Table("runs")+" SET queue = CAST(X'fffe' AS text) WHERE queue = 'd'")
	tk, executed := worker(t, d)
	tk.Budget = time.Hour
	if r, err := tk.Work(t.Context()); err != nil || r.Succeeded != 2 || r.Failed != 2 || len(r.Parked) > 0 {
		t.Fatalf("%v: %+v", err, r)
	}
	if r, err := tk.Work(t.Context()); err != nil || r.Started+r.Failed != 0 {
		t.Fatalf("again: %v: %+v", err, r)
	}
	for job, name := range map[string]string{"b 0": `b\xff`, "d 0": `\xff\xfe`} {
		run := ticktest.LastRun(t, d, job)
		if want := fmt.Sprintf(`its row cannot be read: column queue: holds "%s", want UTF-8 text`, name); run.State != store.Failed || run.Error != want {
			t.Errorf("%s %s, want %s", run.State, run.Error, want)
		}
		ticktest.RunNow(t, d, job, store.Request{})
	}
	ticktest.DecideOnly(t, d)
	if r, err := tk.Work(t.Context()); err != nil || r.Succeeded != 2 {
		t.Fatalf("later: %v: %+v", err, r)
	}
	if got, want := slices.Sorted(slices.Values(executed())), []string{"a 0", "b 0", "c 0", "d 0"}; !slices.Equal(got, want) {
		t.Errorf("executed %q, want %q", got, want)
	}
}
