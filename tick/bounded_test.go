package tick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// lasting is an executor whose steps take a time by the database's clock. More of them than a pass may have end it.
type lasting struct {
	d    *storetest.DB
	took time.Duration
	most int
	fail func(run *store.Run) bool
	over context.CancelFunc

	mu   sync.Mutex
	done []string // jobs, in the order of their runs
}

func (l *lasting) Execute(_ context.Context, r executor.Request) (executor.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.d.Clock.Add(l.took)
	if l.done = append(l.done, r.Task.Job.Name); len(l.done) > l.most {
		l.over()
	}
	if l.fail != nil && l.fail(&r.Task.Run) {
		return executor.Result{}, errors.New("as the test wants it")
	}
	return executor.Result{}, nil
}

// lastingPass runs a pass of one run at a time, and fails the test where it does not end by itself.
func lastingPass(t *testing.T, d *storetest.DB, l *lasting) tick.Report {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.d, l.over, l.done = d, cancel, nil
	tk := ticktest.New(t, d.Store)
	tk.Executors, tk.Concurrency = executor.Registry{"lasting": l}, 1
	r, err := tk.Run(ctx)
	if err != nil {
		t.Fatalf("%v: %q: %+v", err, l.done, r)
	}
	return r
}

func lastingJob(name string) store.Job {
	return store.Job{Name: name, Steps: []store.Step{{Executor: "lasting", Spec: []byte("{}")}}}
}

// A job whose run is longer than its interval does not keep a pass going: what became due since the pass began is for the
// next one, which finds all of it.
func TestWhatBecomesDueDuringAPassIsForTheNext(t *testing.T) {
	for _, c := range []struct{ overlap, missed string }{{"wait", "latest"}, {"wait-all", "all"}, {"skip", "latest"}, {"replace", "latest"}, {"allow", "all"}} {
		t.Run(c.overlap, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				j := lastingJob("a")
				j.Own, j.Overlap, j.Missed = &store.Schedule{Rule: "every 5s"}, c.overlap, c.missed
				if c.overlap == "allow" {
					j.MaxRunning = 2
				}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
				ticktest.Run(t, d)
				d.Clock.Add(5 * time.Second)
				l := &lasting{took: 12 * time.Second, most: 1}
				// 08:00:10 is due at the end of the pass, 08:00:17.
				if r := lastingPass(t, d, l); r.Made != 1 || r.Succeeded != 1 || !r.MoreDue || !r.NextRun.Equal(r.StartedAt.Add(l.took)) {
					t.Fatalf("made %d, ended %d, next %v: %+v", r.Made, r.Succeeded, r.NextRun, r)
				}
				// 08:00:10 and :15 have come, and nothing of them was lost.
				want := map[string]int{"latest": 1, "all": 2}[c.missed]
				l.most = want
				r := lastingPass(t, d, l)
				if r.Made != want || r.Succeeded != want || r.Gaps[store.Missed] != 2-want {
					t.Errorf("the next pass: made %d, ended %d, gaps %v: want %d runs", r.Made, r.Succeeded, r.Gaps, want)
				}
			})
		})
	}
}

// What follows from the runs of a pass belongs to it: who waits for them, those after them, and further tries.
func TestWhatFollowsFromAPassBelongsToIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		attempts, backoff, jitter := store.Attempts(3), store.Duration(0), 0
		first, second, third := lastingJob("first"), lastingJob("second"), lastingJob("third")
		first.Own, first.Missed, first.Overlap = &store.Schedule{Rule: "every 5s"}, "all", "wait-all"
		second.After, third.After = "first", "second"
		second.Retry = store.Retry{Attempts: &attempts, Backoff: &backoff, Jitter: &jitter}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{first, second, third}})
		ticktest.Run(t, d)
		d.Clock.Add(10 * time.Second)
		l := &lasting{took: 7 * time.Second, most: 10, fail: func(r *store.Run) bool { return r.Job == "second" && r.Attempt < 3 }}
		lastingPass(t, d, l)
		slices.Sort(l.done)
		if got := strings.Join(l.done, " "); got != "first first second second second second second second third third" {
			t.Errorf("%s", got)
		}
	})
}

// Runs that are tried until the next occurrence are not tried beyond it, though another pass decides that one: two of
// them, each ready again while the other runs, would keep a pass for ever.
func TestATryUntilTheNextOccurrenceEndsWithThePass(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		attempts, backoff, jitter := store.Attempts(0), store.Duration(time.Second), 0
		jobs := []store.Job{lastingJob("a"), lastingJob("b")}
		for i := range jobs {
			jobs[i].Own = &store.Schedule{Rule: "every 10s"}
			jobs[i].Retry = store.Retry{Attempts: &attempts, Backoff: &backoff, MaxBackoff: &backoff, Jitter: &jitter}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
		ticktest.Run(t, d)
		d.Clock.Add(10 * time.Second)
		l := &lasting{took: 2 * time.Second, most: 6, fail: func(*store.Run) bool { return true }}
		if r := lastingPass(t, d, l); len(l.done) < 4 || r.Failed != 0 {
			t.Fatalf("%q: %+v", l.done, r)
		}
		l.most, l.fail = 2, nil
		r := lastingPass(t, d, l)
		if failed := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'failed'"); r.Made != 2 || r.Succeeded != 2 || failed != 2 {
			t.Errorf("%d runs given up: %+v", failed, r)
		}
	})
}

// What became due while a pass went on does not wait for the rest that keeps a database from being asked for nothing.
func TestAFurtherPassFollowsAtOnceOnOneThatLasted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j := lastingJob("a")
		j.Own = &store.Schedule{Rule: "every 5s"}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Second)
		tk, slept := repeating(t, d)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tk.Executors = executor.Registry{"lasting": &lasting{d: d, took: 7 * time.Second, most: 9, over: cancel}}
		r, err := tk.RunFor(ctx, 20*time.Second)
		if err != nil || r.Passes != 3 || r.Succeeded != 3 {
			t.Fatalf("%v: %+v", err, r)
		}
		for _, wait := range *slept {
			if wait >= time.Second {
				t.Errorf("slept %v beside what was due", *slept)
			}
		}
	})
}

// Deciding has a third of the budget while runs are queued: then they go first, and it goes on when none is left.
func TestDecidingGivesWayToWhatIsQueued(t *testing.T) {
	t.Parallel()
	const jobs, page, eachPage, budget = 30, 5, 40 * time.Second, 300 * time.Second
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, e, store.Options{})
			d.Seed(t, storetest.Seed{Jobs: jobs, Rules: []string{"every 5m"}, Steps: []store.Step{{Executor: "nothing", Spec: []byte("{}")}}})
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET timeout_ms = 1000") // or none would start in the second half
			ticktest.Run(t, d)
			d.Clock.Add(5 * time.Minute)

			host := storetest.NewClock(time.Now()) // by which a page takes a time
			var pages []string
			beyond := 0
			var calls storetest.Calls
			calls.Before = func(c storetest.Call) error {
				if c.Kind != storetest.Query || !strings.Contains(c.SQL, "next_run <=") || !strings.Contains(c.SQL, "LIMIT") {
					return nil
				}
				queued := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'queued'")
				ended := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state NOT IN ('waiting', 'queued')")
				pages = append(pages, fmt.Sprintf("%d queued, %d started", queued, ended))
				if time.Duration(len(pages)-1)*eachPage >= budget/3 {
					beyond++
					under := page // a batch that was under way beside this page has written its runs since
					if e == "sqlite" {
						under = 0
					}
					if queued > under {
						t.Errorf("page %d: %d are queued", len(pages), queued)
					}
				}
				host.Add(eachPage)
				return nil
			}
			tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
			tk.Executors["nothing"] = ticktest.Nothing{}
			tk.Now, tk.Batch, tk.Budget = host.Now, page, budget
			r, err := tk.Run(t.Context())
			if err != nil || r.Made != jobs || beyond < 3 {
				t.Fatalf("%v: %q: %+v", err, pages, r)
			}
			if left := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'queued'"); left > 0 && r.Started != jobs-left {
				t.Errorf("%d are left: %+v", left, r)
			}
			t.Logf("%q", pages)
		})
	}
}
