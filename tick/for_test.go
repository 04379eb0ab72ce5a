package tick_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// repeating is a tick whose sleep moves the test's clock, which is also the host's clock.
func repeating(t testing.TB, d *storetest.DB) (*tick.Tick, *[]time.Duration) {
	t.Helper()
	var slept []time.Duration
	tk := ticktest.New(t, d.Store)
	tk.Now = d.Clock.Now
	tk.Sleep = func(_ context.Context, wait time.Duration) {
		slept = append(slept, wait)
		d.Clock.Add(wait)
	}
	return tk, &slept
}

func every(rule string) store.Job {
	return store.Job{Name: rule, Own: &store.Schedule{Rule: rule}, Steps: []store.Step{ticktest.Nop("")}}
}

// slowly is the test's database, where each statement takes time, by a clock that goes on.
func slowly(t *testing.T, d *storetest.DB, each time.Duration) *store.Store {
	t.Helper()
	var calls storetest.Calls
	calls.Before = func(storetest.Call) error { time.Sleep(each); return nil }
	began, base := time.Now(), d.Clock.Now()
	return ticktest.OpenBeside(t, d, "", store.Options{Clock: func() time.Time { return base.Add(time.Since(began)) }, Wrap: calls.Wrap})
}

// A trigger that comes once a minute can serve schedules of seconds: the tick sleeps until the next time.
func TestForServesAScheduleFinerThanAMinute(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{every("every 10s"), every("every 25s")}})
			tk, slept := repeating(t, d)
			r, err := tk.RunFor(t.Context(), 55*time.Second)
			if err != nil || r.Made != 7 || r.Succeeded != 7 || len(r.Runs) != 7 || r.Passes != 7 {
				t.Fatalf("%v: %+v", err, r)
			}
			s := time.Second
			if want := []time.Duration{10 * s, 10 * s, 5 * s, 5 * s, 10 * s, 10 * s}; !slices.Equal(*slept, want) {
				t.Errorf("slept %v, want %v", *slept, want)
			}
			if at := d.Clock.Now(); !at.Equal(time.Date(2026, 1, 5, 8, 0, 50, 0, time.UTC)) || !r.NextRun.Equal(at.Add(10*s)) {
				t.Errorf("it ended at %v, and the next is %v", at, r.NextRun)
			}
			// If another tick was faster, a wake costs only the probe and its record.
			calls.Reset()
			*slept = nil
			first := true
			tk.Sleep = func(_ context.Context, wait time.Duration) {
				d.Clock.Add(wait)
				if *slept = append(*slept, wait); first {
					first = false
					ticktest.Run(t, d)
					calls.Reset()
				}
			}
			tk.Limit = 1
			if r, err := tk.RunFor(t.Context(), 14*s); err != nil || r.Made != 0 || r.Passes != 2 {
				t.Fatalf("%v: %+v", err, r)
			}
			if n := calls.Count(); n != 2 || len(*slept) != 1 {
				t.Errorf("slept %v; %s", *slept, ticktest.Kinds(&calls))
			}
		})
	}
}

// A limit on runs counts for all passes of a tick together.
func TestForCountsItsLimitOverAllPasses(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{every("every 10s")}})
		tk, _ := repeating(t, d)
		tk.Limit = 2
		r, err := tk.RunFor(t.Context(), 55*time.Second)
		if err != nil || r.Started != 2 || r.Made < 3 {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

// If something is due and stays due, the tick rests between the passes.
func TestForRestsWhileAJobStaysDue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("locks no rows")
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{every("every 10s")}})
		ticktest.Run(t, d)
		ticktest.LockPlans(t, d)
		d.Clock.Add(10 * time.Second)
		tk, slept := repeating(t, d)
		r, err := tk.RunFor(t.Context(), 20*time.Second)
		if err != nil || r.Decided != 0 || r.Passes < 2 {
			t.Errorf("%v: %+v", err, r)
		}
		if n := len(*slept); n == 0 || n > 25 || slices.Min(*slept) < time.Second {
			t.Errorf("slept %v", *slept)
		}
	})
}

// The rest keeps a tick from asking a database again and again. It does not delay the times that became due during a
// pass.
func TestForGoesOnAtOnceAfterALongPass(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
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

// The end of its context ends a sleep, and is no error. A run may outlive the length of the tick, but not the budget.
func TestForEndsInTime(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{every("every 10s")}})
		ctx, cancel := context.WithCancel(t.Context())
		tk := ticktest.NewDoing(t, d, nil)
		real := tk.Now
		tk.Now = d.Clock.Now
		tk.Log = slog.New(onMessage{"sleeps", cancel})
		if r, err := tk.RunFor(ctx, time.Hour); err != nil || r.Passes != 1 {
			t.Fatalf("%v: %+v", err, r)
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "endless", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "endless")
		for _, budget := range []time.Duration{5 * time.Second, time.Minute} { // a slow machine cannot return the run in the share of 5 s
			tk = ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
				if end, ok := ctx.Deadline(); !ok || time.Until(end) > budget {
					return executor.Result{}, fmt.Errorf("it may run until %v", end)
				}
				<-ctx.Done()
				return executor.Result{}, ctx.Err()
			})
			tk.Now, tk.Budget = real, budget
			r, err := tk.RunFor(t.Context(), time.Hour)
			if err == nil && r.Started-r.Succeeded == 1 && r.Waiting == 1 { // the other job is due in the second try
				break
			}
			if budget == time.Minute {
				t.Fatalf("%v: %+v", err, r)
			}
			d.Clock.Add(time.Hour) // the lease of a run that could not be returned is over
		}
		d.Clock.Add(time.Minute)
		tk = ticktest.NewDoing(t, d, func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			if end, ok := ctx.Deadline(); ok {
				return executor.Result{}, fmt.Errorf("it may run until %v", end)
			}
			time.Sleep(100 * time.Millisecond)
			return executor.Result{}, nil
		})
		tk.Now = real
		if r, err := tk.RunFor(t.Context(), 50*time.Millisecond); err != nil || r.Started == 0 || r.Succeeded != r.Started {
			t.Fatalf("%v: %+v", err, r)
		}
	})
}

// onMessage calls a function when a message is logged.
type onMessage struct {
	message string
	do      func()
}

func (onMessage) Enabled(context.Context, slog.Level) bool { return true }
func (h onMessage) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h onMessage) WithGroup(string) slog.Handler          { return h }
func (h onMessage) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		h.do()
	}
	return nil
}

// At whatever point of a pass the budget ends, that end is no error, and no pass begins without a budget.
func TestForEndsWithItsBudget(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{every("every 1s")}})
		ticktest.Run(t, d)
		for i := range 2 {
			// A tenth of the budget is for the work at its end. That work takes four calls of 10 ms, or of 100 ms on a
			// busy machine.
			budget := time.Duration(5000+i*310) * time.Millisecond
			for _, budget := range []time.Duration{budget, 10 * budget} { // calls of a machine that is too slow take longer
				s := slowly(t, d, 10*time.Millisecond)
				tk := ticktest.New(t, s)
				tk.Budget = budget
				r, err := tk.RunFor(t.Context(), time.Minute)
				d.Clock.Add(tk.Budget)
				if err == nil {
					break
				}
				if budget > 10*time.Second {
					t.Errorf("budget %s: %v: %+v", tk.Budget, err, r)
				}
			}
		}
	})
}

// A later pass whose budget ends before the database has answered is no error, and leaves what the earlier passes have reported.
func TestForWhoseBudgetEndsBeforeAnAnswer(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		const budget, left = 20 * time.Second, time.Second
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{every("every 1s")}})
		var late atomic.Bool
		calls := &storetest.Calls{Before: func(storetest.Call) error {
			if late.Load() {
				time.Sleep(left)
			}
			return nil
		}}
		tk, _ := repeating(t, d)
		tk.Store, tk.Budget = ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap}), budget
		tk.Sleep = func(context.Context, time.Duration) {
			d.Clock.Add(budget - budget/7) // the rest is little more than what a pass keeps for its end
			late.Store(true)
		}
		r, err := tk.RunFor(t.Context(), time.Minute)
		if err != nil || r.Passes != 2 || r.Decided != 1 || r.CutShort == "" {
			t.Errorf("%v: %+v", err, r)
		}
	})
}
