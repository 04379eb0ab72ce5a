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
	"github.com/dbjobs/dbjobs/tick/decide"
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

// crowdOf makes 240 runs of a job that wait for each other, or as many as DBJOBS_CROWD says.
type crowdOf struct {
	job  store.Job
	make func(t *testing.T, d *storetest.DB, n int)
}

func crowds() map[string]crowdOf {
	steps, minute := []store.Step{ticktest.Call("")}, &store.Schedule{Rule: "every 1m"}
	missed := func(_ *testing.T, d *storetest.DB, n int) { d.Clock.Add(time.Duration(n) * time.Minute) }
	return map[string]crowdOf{
		"requests": {store.Job{Steps: steps}, func(t *testing.T, d *storetest.DB, n int) { crowd(t, d, "tell", n) }},
		"times":    {store.Job{Own: minute, Missed: store.MissedAll, MissedLimit: 10080, Steps: steps}, missed},
		"at once": {store.Job{Own: minute, Missed: store.MissedAll, MissedLimit: 10080, Overlap: store.OverlapAllow, MaxRunning: 1, Steps: steps},
			missed},
	}
}

// Any number of runs may wait for each other, such as those of a hook, or of the nominal times of an outage: a pass reads all of
// them for its first two decisions only. It executes them in their order, one at a time. DBJOBS_CROWD=1000 has that number of
// them, and -v says how long it takes.
func TestCrowdIsReadOnce(t *testing.T) {
	n := 240
	if given := os.Getenv("DBJOBS_CROWD"); given != "" {
		n, _ = strconv.Atoi(given)
	}
	for name, c := range crowds() {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) { readOnce(t, d, c, n) })
		})
	}
}

func readOnce(t *testing.T, d *storetest.DB, c crowdOf, n int) {
	c.job.Name, c.job.Keep = "tell", store.Keep{Runs: 100_000}
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{c.job}})
	tk := failing(t, d, new(bool))
	ticktest.Pass(t, tk)
	c.make(t, d, n)
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
		case !strings.Contains(c.SQL, "r.id LIMIT"):
			whole++
		case fmt.Sprint(c.Args[len(c.Args)-1].Value) == "21": // the runs that may start, and 20 more
			some++
		}
	}
	t.Logf("%d runs: %s, %d calls; %d decisions read all runs, %d the first", r.Succeeded, took, calls.Count(), whole, some)
	if whole > 30 || some < n-30 {
		t.Errorf("%d decisions read all runs, %d the first that wait", whole, some)
	}
	if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" a JOIN "+d.Table("runs")+" b ON b.number = a.number + 1 WHERE b.started_at < a.started_at OR b.id < a.id"); n != 0 {
		t.Errorf("%d runs are out of order", n)
	}
}

// Edits that people make while the first of many runs execute also hold for the runs that no decision has read:
// a run is cancelled, some are put off, more may run at a time, and the job is removed.
func TestCrowdThatChanges(t *testing.T) {
	for _, name := range []string{"requests", "times"} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) { changes(t, d, crowds()[name]) })
		})
	}
}

func changes(t *testing.T, d *storetest.DB, c crowdOf) {
	const n = 330
	job := c.job
	job.Name = "tell"
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job}})
	id := func(i int) (id string) {
		query := fmt.Sprintf("SELECT id FROM %s ORDER BY id LIMIT 1 OFFSET %d", d.Table("runs"), i)
		if err := d.SQL.QueryRow(query).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	executed := map[string]bool{}
	cancelled, waits := "", ""
	tk := ticktest.NewDoing(t, d, func(ctx context.Context, r executor.Request) (executor.Result, error) {
		d.Clock.Add(time.Millisecond)
		switch executed[r.Task.Run.ID] = true; len(executed) {
		case 20:
			cancelled, waits = id(300), id(40)
			if _, err := d.CancelRun(ctx, cancelled, store.Author{}); err != nil {
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
	c.make(t, d, n)
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
}

// A decision counts the runs that it leaves in the queue, however many there are: it does not read them, and keeps none of them in
// memory, also in the first decision of a pass, since a trigger starts one each minute. They take up room in their job and in
// its group. A job that pauses after failures is no exception, as long as none of its runs fails.
func TestBacklogInAQueueIsCounted(t *testing.T) {
	const n, ended, more, behind = 300, 10, 32, 2 // of those who ask in the end, two have to wait
	groups := []store.Group{{Name: "shippers", MaxRunning: n}}
	for name, job := range map[string]store.Job{"of a job": {MaxRunning: n}, "of a group": {MaxRunning: 1_000_000, Group: "shippers"},
		"of a job that may pause": {MaxRunning: n, PauseAfterFailures: 5}, "of a job that a failure pauses": {MaxRunning: n, OnError: store.OnErrorPause}} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				job.Name, job.Queue, job.Overlap, job.Steps = "orders", "reports", store.OverlapAllow, []store.Step{ticktest.Nop("")}
				ticktest.Apply(t, d, store.Definitions{Groups: groups, Jobs: []store.Job{job}})
				ticktest.DecideOnly(t, d)
				crowd(t, d, "orders", n)
				d.Clock.Add(time.Second)
				ticktest.DecideOnly(t, d)
				var calls storetest.Calls
				beside := *d
				beside.Store = ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap})
				for round := range 3 {
					var crowds store.Crowds
					endSome(t, d, ended, store.Succeeded)
					if round == 2 { // somebody asks for more than have ended
						for range more {
							ticktest.Request(t, d, "orders")
						}
						d.Clock.Add(time.Second)
					}
					calls.Reset()
					if read := mostRead(t, &beside, &crowds); read > ended+more {
						t.Errorf("round %d: a decision has %d runs", round, read)
					}
					whole := 0
					for _, c := range calls.All() {
						if c.Kind == storetest.Query && strings.Contains(c.SQL, "ORDER BY") && strings.HasPrefix(c.SQL, "SELECT r.id, r.job_id") && !strings.Contains(c.SQL, "r.id LIMIT") {
							whole++
						}
					}
					if whole > 0 {
						t.Errorf("round %d: %d statements read all runs", round, whole)
					}
				}
				count := func(where string) int { return d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE "+where) }
				queued, waiting, settled := count("state = 'queued'"), count("state = 'waiting'"), count("settled_at IS NOT NULL")
				if queued != n || waiting != behind || settled != 3*ended {
					t.Errorf("%d queued, %d waiting, %d settled", queued, waiting, settled)
				}
			})
		})
	}
}

// A pause that comes while a pass decides takes each run out of the queue, with the next end of a run: one that somebody made,
// and one that follows from that end. Where several failures pause the job, the first ones leave the queue as it is, and unread.
func TestBacklogIsHeldByAPause(t *testing.T) {
	const n = 250
	for name, job := range map[string]store.Job{"of a person": {}, "of the job itself": {OnError: store.OnErrorPause}, "of the job after failures": {PauseAfterFailures: 3}} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				job.Name, job.Queue, job.Overlap, job.MaxRunning, job.Steps = "orders", "reports", store.OverlapAllow, 1_000_000, []store.Step{ticktest.Nop("")}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job}})
				ticktest.DecideOnly(t, d)
				crowd(t, d, "orders", n)
				d.Clock.Add(time.Second)
				ticktest.DecideOnly(t, d)
				var crowds store.Crowds
				endSome(t, d, 1, store.Succeeded)
				mostRead(t, d, &crowds)
				early := max(job.PauseAfterFailures-1, 0)
				for range early {
					endSome(t, d, 1, store.Failed)
					if read := mostRead(t, d, &crowds); read != 1 {
						t.Errorf("a decision has %d runs", read)
					}
				}
				if job.OnError != store.OnErrorPause && early == 0 {
					ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "orders"}, time.Time{})
				}
				endSome(t, d, 1, store.Failed)
				mostRead(t, d, &crowds)
				if held := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE state = 'waiting' AND held_by = 'pause'"); held != n-2-early {
					t.Errorf("%d runs are held", held)
				}
			})
		})
	}
}

// endSome takes runs of the queue "reports", and ends them in this state.
func endSome(t *testing.T, d *storetest.DB, n int, state string) {
	t.Helper()
	h := store.Holder{Name: "another", Lease: time.Hour}
	tasks, err := d.Take(t.Context(), "reports", n, h)
	if err != nil || len(tasks) != n {
		t.Fatalf("%d runs, %v", len(tasks), err)
	}
	d.Clock.Add(time.Second)
	for i := range tasks {
		if err := d.EndStep(t.Context(), &tasks[i], store.StepEnd{State: state, Final: state}, h); err != nil {
			t.Fatal(err)
		}
	}
}

// mostRead decides for the jobs that a run has woken, and returns the largest number of runs that a decision had.
func mostRead(t *testing.T, d *storetest.DB, crowds *store.Crowds) (most int) {
	t.Helper()
	page := pageOf(t, d, store.RunWakes)
	page.Crowds = crowds
	pass := &decide.Pass{Heartbeat: 30 * time.Second}
	job := func(now time.Time, c *store.Snapshot) store.Decision {
		most = max(most, len(c.Runs))
		return decide.Job(now, c, pass)
	}
	if _, err := d.Decide(t.Context(), page, store.Decider{Job: job, Groups: decide.Groups}); err != nil {
		t.Fatal(err)
	}
	return most
}
