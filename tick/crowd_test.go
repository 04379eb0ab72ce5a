package tick_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// crowd makes requests of a job by plain SQL, like a night in which many runs fail.
func crowd(t *testing.T, d *storetest.DB, job string, n int) {
	t.Helper()
	id := d.Int(t, "SELECT id FROM "+d.Table("jobs")+" WHERE name = '"+job+"'")
	at := ticktest.Literal(d, d.Clock.Now())
	for from := 0; from < n; from += 500 {
		var rows []string
		for i := from; i < min(n, from+500); i++ {
			rows = append(rows, fmt.Sprintf("('%s', %d, 'hook:failed:%d', 'waiting', 'tick', %s, %s)", store.NewRunID(d.Clock.Now(), i), id, i, at, at))
		}
		d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence, state, queue, ready_at, created_at) VALUES "+strings.Join(rows, ", "))
	}
}

// Any number of runs of a hook may wait: a pass reads all of them for its first two decisions only. It executes them in
// their order, one at a time. DBJOBS_CROWD=1000 has that number of them, and -v says how long it takes.
func TestCrowdIsReadOnce(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		n := 240
		if given := os.Getenv("DBJOBS_CROWD"); given != "" {
			n, _ = strconv.Atoi(given)
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "tell", Keep: store.Keep{Runs: 100_000}, Steps: []store.Step{ticktest.Call("")}}}})
		tk := failing(t, d, new(bool))
		ticktest.Pass(t, tk)
		crowd(t, d, "tell", n)
		d.Clock.Add(time.Second)
		calls := &storetest.Calls{}
		beside := *tk
		beside.Store = ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap})
		began := time.Now()
		r := ticktest.Pass(t, &beside)
		took := time.Since(began)
		if r.Succeeded != n {
			t.Fatalf("%d of %d runs: %+v", r.Succeeded, n, r)
		}
		whole, some := 0, 0
		for _, c := range calls.All() {
			open := strings.Contains(c.SQL, "settled_at IS NULL AND job_id") || strings.Contains(c.SQL, "open_job_id")
			switch {
			case c.Kind != storetest.Query || !strings.HasPrefix(c.SQL, "SELECT r.id, r.job_id") || !open:
			case !strings.Contains(c.SQL, "LIMIT"):
				whole++
			case fmt.Sprint(c.Args[len(c.Args)-1].Value) == "21": // the runs that may start, and 20 more
				some++
			}
		}
		t.Logf("%d runs: %s, %d calls; %d decisions read all runs, %d the first", r.Succeeded, took, calls.Count(), whole, some)
		t.Logf("%d runs: %s, %d calls; %d decisions read all runs, %d the first", r.Succeeded, took, calls.Count(), whole, some)
		if whole > 30 || some < n-30 {
			t.Errorf("%d decisions read all runs, %d the first that wait", whole, some)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" a JOIN "+d.Table("runs")+" b ON b.number = a.number + 1 WHERE b.started_at < a.started_at OR b.id < a.id"); n != 0 {
			t.Errorf("%d runs are out of order", n)
		}
	})
}

// Edits that people make while the first of many requests execute also hold for the requests that no decision has read:
// a run is cancelled, some are put off, more may run at a time, and the job is removed.
func TestCrowdThatChanges(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		const n = 330
		job := store.Job{Name: "tell", Steps: []store.Step{ticktest.Call("")}}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job}})
		id := func(i int) (id string) {
			query := fmt.Sprintf("SELECT id FROM %s WHERE occurrence = 'hook:failed:%d'", d.Table("runs"), i)
			if err := d.SQL.QueryRow(query).Scan(&id); err != nil {
				t.Fatal(err)
			}
			return id
		}
		executed := map[string]bool{}
		tk := ticktest.NewDoing(t, d, func(ctx context.Context, r executor.Request) (executor.Result, error) {
			d.Clock.Add(time.Millisecond)
			switch executed[r.Task.Run.ID] = true; len(executed) {
			case 20:
				if _, err := d.CancelRun(ctx, id(300), store.Author{}); err != nil {
					t.Error(err)
				}
			case 25:
				d.Exec(t, "UPDATE "+d.Table("runs")+" SET ready_at = "+ticktest.Literal(d, d.Clock.Now().Add(time.Hour))+" WHERE id > '"+id(29)+"' AND id < '"+id(60)+"'")
			case 60:
				job.Overlap, job.MaxRunning = store.OverlapAllow, 3
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job}})
			case 110:
				if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE state = 'succeeded' AND settled_at IS NULL"); n > 3 {
					t.Errorf("%d runs that ended are not settled", n)
				}
				if err := d.RemoveJob(ctx, "tell", store.Author{}); err != nil {
					t.Error(err)
				}
			}
			return executor.Result{}, nil
		})
		tk.Concurrency = 1
		ticktest.Pass(t, tk)
		crowd(t, d, "tell", n)
		cancelled, waits := id(300), id(40)
		d.Clock.Add(time.Second)
		for range 2 {
			ticktest.Pass(t, tk)
			d.Clock.Add(time.Minute)
		}
		states := map[string]int{}
		for _, s := range []string{store.Succeeded, store.Cancelled} {
			states[s] = d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE settled_at IS NOT NULL AND state = '"+s+"'")
		}
		if states[store.Succeeded] != len(executed) || states[store.Succeeded]+states[store.Cancelled] != n || len(executed) < 110 || len(executed) > 113 {
			t.Errorf("%d executed, of %d: %v", len(executed), n, states)
		}
		if executed[cancelled] || executed[waits] {
			t.Errorf("executed what was cancelled: %t, what was put off: %t", executed[cancelled], executed[waits])
		}
	})
}
