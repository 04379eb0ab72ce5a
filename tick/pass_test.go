package tick_test

import (
	"context"
	"errors"
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

// A pass runs the times that became due since the last pass, and the requests, and records failures.
func TestPassRunsWhatIsDue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "good", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("one", "INSERT INTO effects VALUES (1)"), ticktest.Step("two", "INSERT INTO effects VALUES (2)")}},
			{Name: "bad", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "INSERT INTO no_such_table VALUES (1)")}},
			{Name: "idle", Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (3)")}},
		}})
		if r := ticktest.Run(t, d); r.Decided != 3 || r.Made != 0 {
			t.Fatalf("first pass: %+v", r)
		}
		d.Clock.Add(12 * time.Minute)
		r := ticktest.Run(t, d)
		if r.Made != 2 || r.Succeeded != 1 || r.Failed != 1 || r.Gaps[store.Missed] != 2 {
			t.Fatalf("second pass: %+v", r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 2 {
			t.Fatalf("%d effects", n)
		}
		if r := ticktest.Run(t, d); r.Decided != 0 || r.Started != 0 {
			t.Fatalf("third pass: %+v", r)
		}
		ticktest.RunNow(t, d, "idle", store.Request{})
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("run-now: %+v", r)
		}
		j, err := d.Job(t.Context(), "bad")
		if err != nil || j.LastState != store.Failed || j.Streak != 1 || !j.NextRun.Equal(time.Date(2026, 1, 5, 8, 15, 0, 0, time.UTC)) {
			t.Fatalf("%v: %+v", err, j)
		}
	})
}

// lasting is an executor whose steps take time by the database's clock. If there are more steps than a pass may have,
// they end the pass.
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

// lastingPass makes a pass that executes one run at a time, and fails the test if the pass does not end by itself.
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

// A job whose run is longer than its interval does not keep a pass going. Times that became due since the pass began
// are for the next pass, which finds all of them.
func TestPassLeavesWhatBecomesDueToTheNext(t *testing.T) {
	for _, c := range []struct{ overlap, missed string }{{"wait", "latest"}, {"wait-all", "all"}, {"skip", "latest"}, {"replace", "latest"}, {"allow", "all"}} {
		t.Run(c.overlap, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
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
				// 08:00:10 and :15 have come, and none of their runs was lost.
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

// The runs that follow from the runs of a pass belong to it: the runs that wait for them, the runs of jobs that run
// after them, and further tries.
func TestPassRunsWhatFollowsFromIt(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		attempts, backoff, jitter := store.Attempts(3), store.Duration(0), 0
		first, second, third, both := lastingJob("first"), lastingJob("second"), lastingJob("third"), lastingJob("both")
		first.Own, first.Missed, first.Overlap = &store.Schedule{Rule: "every 5s"}, "all", "wait-all"
		second.After, third.After = []store.After{{Job: "first"}}, []store.After{{Job: "second"}}
		both.After = []store.After{{Job: "first"}, {Job: "second"}}
		second.Retry = store.Retry{Attempts: &attempts, Backoff: &backoff, Jitter: &jitter}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{first, second, third, both}})
		ticktest.Run(t, d)
		d.Clock.Add(10 * time.Second)
		l := &lasting{took: 7 * time.Second, most: 12, fail: func(r *store.Run) bool { return r.Job == "second" && r.Attempt < 3 }}
		lastingPass(t, d, l)
		slices.Sort(l.done)
		if got := strings.Join(l.done, " "); got != "both both first first second second second second second second third third" {
			t.Errorf("%s", got)
		}
	})
}

// overlapped is an executor whose steps take twelve seconds. Two of these are left when the next tick comes.
type overlapped struct {
	t      *testing.T
	d      *storetest.DB
	within int // steps of the pass that is under way
	most   int // a limit, so that the test ends if a pass does not
}

func (o *overlapped) pass() *tick.Tick {
	tk := ticktest.New(o.t, o.d.Store)
	tk.Now, tk.Executors["overlapped"] = o.d.Clock.Now, o
	return tk
}

func (o *overlapped) Execute(ctx context.Context, _ executor.Request) (executor.Result, error) {
	if o.within++; o.within > o.most {
		o.t.Errorf("step %d of one pass", o.within)
		return executor.Result{}, nil
	}
	o.d.Clock.Add(10 * time.Second)
	before := o.within
	tk := o.pass()
	tk.Holder = "beside " + o.d.Clock.Now().String()
	if _, err := tk.Run(ctx); err != nil {
		o.t.Error(err)
	}
	o.within = before // a step of that pass does not count for this one
	o.d.Clock.Add(2 * time.Second)
	return executor.Result{}, nil
}

// A job takes twelve seconds and is due every ten, with a tick every ten. Whatever other passes make meanwhile, a pass
// ends with the runs that it found and the runs that follow from them. The next tick takes the rest.
func TestPassIsNotKeptAliveByOthers(t *testing.T) {
	long := []store.Step{{Executor: "overlapped", Spec: []byte("{}")}}
	quick := []store.Step{ticktest.Nop("")}
	rule := &store.Schedule{Rule: "every 10s"}
	for name, jobs := range map[string][]store.Job{
		"own run":            {{Name: "a", Own: rule, Steps: long}},
		"what follows on it": {{Name: "a", Own: rule, Steps: quick}, {Name: "f", After: []store.After{{Job: "a"}}, Steps: long}},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
				ticktest.Run(t, d)
				d.Clock.Add(10 * time.Second)
				for range 4 {
					// The run that it finds, its own run, and the runs that follow from these.
					most := 2 + d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE settled_at IS NULL")
					began := d.Clock.Now()
					o := &overlapped{t: t, d: d, most: most}
					r, err := o.pass().Run(t.Context())
					if err != nil || r.Started == 0 {
						t.Fatalf("%v: %+v", err, r)
					}
					if took := d.Clock.Now().Sub(began); took > time.Duration(most)*12*time.Second {
						t.Errorf("a pass took %s", took)
					}
					d.Clock.Set(d.Clock.Now().Add(10 * time.Second).Truncate(10 * time.Second))
				}
				if name != "own run" { // in the other case, the number of waiting runs grows
					return
				}
				began := d.Clock.Now()
				o := &overlapped{t: t, d: d, most: 8}
				tk := o.pass()
				tk.Sleep = func(_ context.Context, for_ time.Duration) { d.Clock.Add(for_) }
				if _, err := tk.RunFor(t.Context(), 55*time.Second); err != nil {
					t.Fatal(err)
				}
				if took := d.Clock.Now().Sub(began); took > (55+2*12)*time.Second {
					t.Errorf("for 55s it took %s", took)
				}
			})
		})
	}
}

// A batch that was not written is not reported.
func TestPassReportsNoBatchThatFailed(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d)
		d.Clock.Add(6 * time.Minute)
		before := d.Int(t, "SELECT sum(decided) FROM "+d.Table("ticks"))
		var calls storetest.Calls
		broken := errors.New("broken by the test")
		calls.Before = func(c storetest.Call) error {
			if c.Kind == storetest.Exec && strings.Contains(c.SQL, "INSERT INTO "+d.Table("runs")) {
				return storetest.RefusedError{Err: broken}
			}
			return nil
		}
		r, err := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap})).Run(t.Context())
		if !errors.Is(err, broken) || r.Decided != 0 || r.Made != 0 {
			t.Fatalf("%v: %+v", err, r)
		}
		if n := d.Int(t, "SELECT sum(decided) FROM "+d.Table("ticks")); n != before {
			t.Errorf("the record has %d decided more", n-before)
		}
	})
}

// One pass reads its page, another pass decides two seconds later, and the first goes on with the values that it had
// read.
func TestPassBesideAnotherLosesNothing(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			var d *storetest.DB
			armed := false
			calls.Before = func(c storetest.Call) error {
				if armed && c.Kind == storetest.Begin {
					armed = false
					d.Clock.Add(2 * time.Second)
					ticktest.Run(t, d)
				}
				return nil
			}
			d = storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Queue: "others", Overlap: "replace", Own: &store.Schedule{Rule: "every 1m"},
				Steps: []store.Step{ticktest.Nop("")}}}})
			ticktest.Request(t, d, "job")
			d.Clock.Add(2*time.Minute - time.Second)
			armed = true
			ticktest.Run(t, d)
			if armed {
				t.Fatal("no other pass came between")
			}
			through := d.Int(t, "SELECT count(*) FROM "+d.Table("plans")+" WHERE decided_through < "+ticktest.Literal(d, d.Clock.Now()))
			if through != 0 {
				t.Error("the plan went back")
			}
			ticktest.Run(t, d)
			got := ticktest.States(t, d, "job") // the request, and 08:02, which has replaced nothing
			if !slices.Equal(got, []string{store.Queued, store.Waiting}) {
				t.Fatalf("%v", got)
			}
			d.Clock.Add(time.Minute)
			if r := ticktest.Run(t, d); r.Made != 1 {
				t.Fatalf("the next one: %+v", r)
			}
		})
	}
}

// A time that became due during a pass is for the next one. The summary says so, and names no time that is over.
func TestPassReportsANextTimeToCome(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		own := func(rule string) *store.Schedule { return &store.Schedule{Rule: rule} }
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "slow", Own: own("every 1h"), Steps: []store.Step{ticktest.Call("")}},
			{Name: "often", Own: own("every 5m"), Steps: []store.Step{ticktest.Nop("")}},
		}})
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			d.Clock.Add(7 * time.Minute)
			return executor.Result{}, nil
		})
		pass := func() (r struct {
			next, now time.Time
			more      bool
		}) {
			t.Helper()
			told := ticktest.Pass(t, tk)
			r.next, r.now, r.more = told.NextRun, d.Clock.Now(), told.MoreDue
			return r
		}
		if r := pass(); !r.next.After(r.now) || r.more {
			t.Fatalf("nothing is due: %+v", r)
		}
		d.Clock.Add(time.Hour)
		if r := pass(); r.next.Before(r.now) || !r.more {
			t.Fatalf("5-minute times came during the pass: %+v", r)
		}
		if r := pass(); !r.next.After(r.now) || r.more {
			t.Fatalf("after another pass: %+v", r)
		}
	})
}
