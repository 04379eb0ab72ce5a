package tick_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// bell is a platform that rings alarms, by a clock that the test moves. An alarm that is set twice is one alarm.
type bell struct {
	now   func() time.Time
	set   []time.Time // in their order
	asked int
	err   error
}

func (b *bell) Set(_ context.Context, at time.Time) (time.Time, error) {
	b.asked++
	if b.err != nil {
		return time.Time{}, b.err
	}
	at = later(at, b.now()).Truncate(time.Second)
	if at.Before(later(at, b.now())) {
		at = at.Add(time.Second)
	}
	if i, set := slices.BinarySearchFunc(b.set, at, time.Time.Compare); !set {
		b.set = slices.Insert(b.set, i, at)
	}
	return at, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// take returns the alarms that ring up to an instant, and removes them.
func (b *bell) take(until time.Time) (list []time.Time) {
	for len(b.set) > 0 && !b.set[0].After(until) {
		list, b.set = append(list, b.set[0]), b.set[1:]
	}
	return list
}

// waking is a tick that sets alarms, and sleeps by the test's clock.
func waking(t testing.TB, d *storetest.DB) (*tick.Tick, *bell) {
	t.Helper()
	tk, _ := repeating(t, d)
	b := &bell{now: d.Clock.Now}
	tk.Alarm = b
	return tk, b
}

// A day of three jobs, with the cost of their passes. It is measured with alarms and a safety trigger each hour, with a
// tick each quarter of an hour, and with DBJOBS_PROVE also with a tick each minute. Each pass is a process of its own,
// which opens the database.
func TestADayOfThreeJobs(t *testing.T) {
	often := 15 * time.Minute // with this interval, all due runs also come in time
	if prove.Whole() {
		often = time.Minute
	}
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		at := func(rule string) store.Job {
			return store.Job{Name: rule, Own: &store.Schedule{Rule: rule}, Steps: []store.Step{ticktest.Nop("")}}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{at("daily at 02:30"), at("every 4h"), at("45 9 * * 1-5")}})
		day := func(from time.Time, alarm bool) (passes, started, late int, calls *storetest.Calls) {
			calls = &storetest.Calls{}
			b := &bell{now: d.Clock.Now}
			pass := func() {
				passes++
				s, err := store.Open(t.Context(), d.URL, store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				tk := ticktest.New(t, s)
				tk.Now, tk.Sleep = d.Clock.Now, func(_ context.Context, wait time.Duration) { d.Clock.Add(wait) }
				if alarm {
					tk.Alarm = b
				}
				r := ticktest.Pass(t, tk)
				started += r.Started
				for _, e := range r.Runs {
					if now := d.Clock.Now(); now.Before(e.ScheduledFor) || now.Sub(e.ScheduledFor) > time.Second {
						late++
					}
				}
			}
			every := often
			if alarm {
				every = time.Hour
			}
			for at := from; at.Before(from.Add(24 * time.Hour)); at = at.Add(every) {
				d.Clock.Set(at)
				b.take(at)
				pass()
				for {
					list := b.take(at.Add(every - time.Second))
					if len(list) == 0 {
						break
					}
					for _, ring := range list {
						d.Clock.Set(ring)
						pass()
					}
				}
			}
			return passes, started, late, calls
		}
		from := time.Date(2026, 1, 6, 0, 0, 0, 0, time.UTC)
		d.Clock.Set(from.Add(-time.Minute))
		ticktest.Run(t, d) // plans
		passes, started, late, calls := day(from, true)
		t.Logf("with alarms: %d passes, %d connections, %d calls of the database", passes, calls.Count(storetest.Connect), calls.Count())
		if passes >= 40 || calls.Count(storetest.Connect) >= 80 || started != 8 || late != 0 {
			t.Errorf("%d passes, %d connections, %d runs, %d of them early or late", passes, calls.Count(storetest.Connect), started, late)
		}
		if d.Engine != "sqlite" {
			return
		}
		passes, started, late, calls = day(from.Add(24*time.Hour), false)
		t.Logf("with a tick each %s: %d passes, %d connections, %d calls of the database", often, passes, calls.Count(storetest.Connect), calls.Count())
		if passes != int(24*time.Hour/often) || started != 8 || late != 0 {
			t.Errorf("%d passes, %d runs, %d of them early or late", passes, started, late)
		}
	})
}

// The alarm is for the next time, whatever it is. No alarm is set if there is no next time.
func TestAlarmForWhatIsNext(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk, b := waking(t, d)
		fail := true
		tk.Executors["doing"] = ticktest.Doing(func(context.Context, executor.Request) (executor.Result, error) {
			if fail {
				return executor.Result{}, errors.New("as it should")
			}
			return executor.Result{}, nil
		})
		expect := func(what string, at time.Time) {
			t.Helper()
			if r := ticktest.Pass(t, tk); !r.WakeAt.Equal(at) {
				t.Errorf("%s: the alarm is for %v, want %v", what, r.WakeAt, at)
			}
		}
		morning, tries, backoff, jitter := ticktest.Morning, store.Attempts(2), store.Duration(10*time.Minute), 0
		expect("nothing", time.Time{})
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: &store.Schedule{Rule: "every 1h"}, Retry: store.Retry{Attempts: &tries, Backoff: &backoff, Jitter: &jitter},
			Steps: []store.Step{ticktest.Call("")}}}})
		expect("a nominal time", morning(9, 0))
		expect("the same once more", morning(9, 0))
		if len(b.set) != 1 || b.asked < 2 {
			t.Errorf("set: %v, asked %d times", b.set, b.asked)
		}
		d.Clock.Set(morning(9, 0))
		expect("a retry", morning(9, 10))
		fail = false
		d.Clock.Set(morning(9, 10))
		expect("the next nominal time", morning(10, 0))
		tk.Lead = 2 * time.Minute
		expect("a lead", morning(9, 58))
		d.Clock.Set(morning(9, 58))
		if r := ticktest.Pass(t, tk); r.Started != 1 || d.Clock.Now().Before(morning(10, 0)) || !r.WakeAt.Equal(morning(10, 58)) {
			t.Errorf("after a lead: %d started, the alarm is for %v, now %v", r.Started, r.WakeAt, d.Clock.Now())
		}
		tk.Lead = 0
		d.Clock.Set(morning(10, 59).Add(57 * time.Second)) // too near for an alarm
		if r := ticktest.Pass(t, tk); r.Started != 1 || !r.WakeAt.Equal(morning(12, 0)) {
			t.Errorf("what is near: %d started, the alarm is for %v", r.Started, r.WakeAt)
		}
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, morning(20, 0))
		d.Clock.Set(morning(13, 0))
		expect("the end of a freeze", morning(20, 0))
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeAll}, false)
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, time.Time{})
		expect("a freeze without an end", time.Time{})
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeAll}, false)
		expect("after it", morning(14, 0))
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: &store.Schedule{Rule: "at 2026-03-01T00:00:00Z"}, Steps: []store.Step{ticktest.Call("")}}}})
		expect("what is far ahead", time.Time{})
	})
}

// Work that a pass leaves is looked at again: at once after a pass that made progress, otherwise after a wait about as
// long as the work has been due.
func TestAlarmForWhatIsLeft(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk, _ := waking(t, d)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("one"), ticktest.Hourly("two")}})
		ticktest.Pass(t, tk)
		d.Clock.Set(ticktest.Morning(9, 0))
		tk.Limit = 1
		if r := ticktest.Pass(t, tk); r.Started != 1 || r.WakeAt.Sub(d.Clock.Now()) > time.Second || r.WakeAt.IsZero() {
			t.Errorf("%d started, the alarm is for %v, now %v", r.Started, r.WakeAt, d.Clock.Now())
		}
		tk.Limit = -1 // a host that can start no run
		for _, step := range []struct{ after, want time.Duration }{{0, time.Minute}, {10 * time.Minute, 8 * time.Minute}, {40 * time.Minute, 32 * time.Minute}} {
			d.Clock.Set(ticktest.Morning(9, 0).Add(step.after))
			r := ticktest.Pass(t, tk)
			if wait := r.WakeAt.Sub(d.Clock.Now()); wait < step.want/2 || wait > 2*step.want {
				t.Errorf("after %s: it is looked at again after %s", step.after, wait)
			}
		}
		// What is due sooner does not wait for that.
		d.Clock.Set(ticktest.Morning(9, 50))
		if r := ticktest.Pass(t, tk); r.WakeAt.Sub(ticktest.Morning(10, 0)).Abs() > time.Second {
			t.Errorf("a job is due at 10:00, and the alarm is for %v", r.WakeAt)
		}
	})
}

// An alarm that cannot be set is an error of the pass, which has still done its work. A database that does not answer
// is asked again in a minute. A wrong database is not asked again.
func TestAlarmThatCannotBeSet(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk, b := waking(t, d)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job")}})
		ticktest.Pass(t, tk)
		d.Clock.Set(ticktest.Morning(9, 0))
		b.err = errors.New("the platform refuses")
		r, err := tk.Run(t.Context())
		if !errors.Is(err, b.err) || r.Succeeded != 1 || !r.WakeAt.IsZero() {
			t.Errorf("%v: %+v", err, r)
		}
		if got := ticktest.States(t, d, "job"); !slices.Equal(got, []string{store.Succeeded}) {
			t.Errorf("the runs are %v", got)
		}
		b.err, b.set = nil, nil
		tk.Instance = "another"
		if r, err := tk.Run(t.Context()); err == nil || !r.WakeAt.IsZero() || len(b.set) > 0 {
			t.Errorf("of another database: %v, the alarms are %v", err, b.set)
		}
		tk.Instance = ""
		var calls storetest.Calls
		calls.Before = func(storetest.Call) error { return errors.New("connection refused") }
		broken, err := store.Open(t.Context(), d.URL, store.Options{Clock: d.Clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		broken.Close()
		tk.Store = broken
		if r, err := tk.Run(t.Context()); err == nil || errors.Is(err, store.ErrUnreachable) && !r.WakeAt.Equal(d.Clock.Now().Add(time.Minute)) {
			t.Errorf("of a database that is out of reach: %v, the alarm is for %v", err, r.WakeAt)
		}
	})
}

// A worker decides nothing, but its runs leave something to decide: the runs that follow them, and their retries. Its alarm is
// for that, and not only for what was due before it began.
func TestAlarmForWhatAWorkerLeaves(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk, _ := waking(t, d)
		var fault error
		tk.Executors["doing"] = ticktest.Doing(func(context.Context, executor.Request) (executor.Result, error) { return executor.Result{}, fault })
		tries, backoff, jitter := store.Attempts(2), store.Duration(10*time.Minute), 0
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "first", Queue: "elsewhere", Own: &store.Schedule{Rule: "daily at 20:00"}, Retry: store.Retry{Attempts: &tries, Backoff: &backoff, Jitter: &jitter},
				Steps: []store.Step{ticktest.Call("")}},
			{Name: "then", After: []store.After{{Job: "first"}}, Steps: []store.Step{ticktest.Nop("")}}}})
		for _, c := range []struct {
			fault error
			after time.Duration
		}{{nil, 0}, {errors.New("as it should"), 10 * time.Minute}} {
			ticktest.Request(t, d, "first")
			ticktest.Pass(t, tk)
			fault, tk.Queues = c.fault, []string{"elsewhere"}
			r, err := tk.Work(t.Context())
			if wait := r.WakeAt.Sub(d.Clock.Now()) - c.after; err != nil || r.Started != 1 || wait < 0 || wait > time.Second {
				t.Errorf("%v: %d started, the alarm is for %v, now %v, want %s after it", err, r.Started, r.WakeAt, d.Clock.Now(), c.after)
			}
			tk.Queues = nil
		}
		if r, err := tk.Work(t.Context()); err != nil || r.Started != 0 || r.WakeAt.Before(d.Clock.Now().Add(5*time.Minute)) {
			t.Errorf("of a worker without a run: %v: %d started, the alarm is for %v", err, r.Started, r.WakeAt)
		}
	})
}

// Alarms that several passes set for the same thing fall together: otherwise, each pass that the platform tries again while the
// database does not answer, and each safety trigger while a run cannot be taken, would begin a chain of passes of its own.
func TestAlarmsFallTogether(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk, b := waking(t, d)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: &store.Schedule{Rule: "daily at 09:00"}, Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Pass(t, tk)
		b.set, tk.Limit = nil, -1 // a host that can start no run
		for at := ticktest.Morning(9, 0); at.Before(ticktest.Morning(15, 0)); at = at.Add(13*time.Minute + 7*time.Second) {
			d.Clock.Set(at)
			if r := ticktest.Pass(t, tk); at.After(ticktest.Morning(10, 30)) {
				if wait := r.WakeAt.Sub(at); !r.WakeAt.Equal(r.WakeAt.Truncate(time.Hour)) || wait < 29*time.Minute || wait > 91*time.Minute {
					t.Errorf("at %v: what is left is looked at again at %v", at, r.WakeAt)
				}
			}
		}
		for second := range 120 {
			d.Clock.Set(ticktest.Morning(15, 0).Add(time.Duration(second)*time.Second + 10*time.Millisecond))
			r, err := tk.Unreached(t.Context(), store.ErrUnreachable)
			if wait := r.WakeAt.Sub(d.Clock.Now()); !errors.Is(err, store.ErrUnreachable) || r.WakeAt.Second() != 0 || wait < time.Minute || wait > 2*time.Minute {
				t.Fatalf("%v: second %d: a pass follows after %s, at %v", err, second, wait, r.WakeAt)
			}
		}
	})
}

// A platform that does not answer must not hold up a pass that has to stop: nothing else bounds the end of its process.
func TestAlarmOfAStoppedPass(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk, _ := waking(t, d)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job")}})
		ticktest.Pass(t, tk)
		d.Clock.Set(ticktest.Morning(9, 0))
		ctx, stop := context.WithCancel(t.Context())
		tk.Alarm = silentBell(stop)
		_, err := tk.Run(ctx)
		if unset, ok := errors.AsType[*tick.UnsetAlarmError](err); !ok || !errors.Is(err, context.Canceled) || !unset.At.Equal(ticktest.Morning(10, 0)) {
			t.Errorf("%v: want an alarm for ten o'clock that was given up before its own patience was over", err)
		}
	})
}

// silentBell is a platform that does not answer. The pass has to stop as soon as it is asked.
type silentBell func()

func (stop silentBell) Set(ctx context.Context, _ time.Time) (time.Time, error) {
	stop()
	<-ctx.Done()
	return time.Time{}, ctx.Err()
}

// While a run executes, there is an alarm for the next due time, and for the recovery of the run. The platform starts
// another pass, which goes on from there.
func TestAlarmWhileARunExecutes(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk, _ := waking(t, d)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "long", Own: &store.Schedule{Rule: "every 1h"}, Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Pass(t, tk)
		d.Clock.Set(ticktest.Morning(9, 0))
		rings := make(chan time.Time, 8)
		tk.Alarm = bellFunc(func(at time.Time) { rings <- at })
		first := time.Time{}
		tk.Executors["doing"] = ticktest.Doing(func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			select {
			case first = <-rings:
			case <-ctx.Done():
			}
			return executor.Result{}, nil
		})
		r := ticktest.Pass(t, tk)
		if want := ticktest.Morning(9, 2); !first.Equal(want) || r.Succeeded != 1 {
			t.Errorf("while it executes, the alarm is for %v, want that at which the lease counts as expired, %v; %+v", first, want, r)
		}
		if at := <-rings; !at.Equal(ticktest.Morning(10, 0)) {
			t.Errorf("at the end of the pass it is for %v", at)
		}
	})
}

type bellFunc func(time.Time)

func (f bellFunc) Set(_ context.Context, at time.Time) (time.Time, error) { f(at); return at, nil }
