package tick_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// dueOnce returns a job with one nominal time.
func dueOnce(name string, due time.Time) store.Job {
	return store.Job{Name: name, Own: &store.Schedule{Rule: "at " + due.UTC().Format(time.RFC3339)}, Steps: []store.Step{ticktest.Call("")}}
}

// The pass that an alarm has started early waits for what the alarm was for, and then for what is so near that an alarm for it would
// come too late: all of them start on time.
func TestAlarmForWhatIsNear(t *testing.T) {
	nine := ticktest.Morning(9, 0)
	for _, c := range []struct {
		what                       string
		lead, budget, takes, after time.Duration
		least                      time.Duration // of the platform
	}{
		{"half a minute later", time.Minute, 177 * time.Second, time.Second, 30 * time.Second, 0},
		{"a minute later", time.Minute, 177 * time.Second, time.Second, time.Minute, 0},
		{"without a budget", time.Minute, 0, time.Second, time.Minute, 0},
		{"without a lead, after a run that takes a while", 0, 0, 4500 * time.Millisecond, 8 * time.Second, 0},
		{"a minute and a half later, where alarms need fifty seconds", time.Minute, 177 * time.Second, time.Second, 90 * time.Second, 50 * time.Second},
	} {
		t.Run(c.what, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{dueOnce("first", nine), dueOnce("second", nine.Add(c.after))}})
				tk, b := waking(t, d)
				tk.Alarm = farBell{b, c.least}
				tk.Executors["doing"] = ticktest.Doing(func(context.Context, executor.Request) (executor.Result, error) {
					d.Clock.Add(c.takes)
					return executor.Result{}, nil
				})
				ticktest.Pass(t, tk)
				tk.Lead, tk.Budget = c.lead, c.budget
				d.Clock.Set(nine.Add(-c.lead))
				if r := ticktest.Pass(t, tk); r.Started != 2 {
					t.Fatalf("%d started, and the alarm is for %v", r.Started, r.WakeAt)
				}
				for _, name := range []string{"first", "second"} {
					if run := ticktest.LastRun(t, d, name); run.StartedAt.Sub(run.ScheduledFor).Abs() > time.Second {
						t.Errorf("%s is due at %v, and starts at %v", name, run.ScheduledFor, run.StartedAt)
					}
				}
			})
		})
	}
}

// farBell is a platform that puts off alarms which are nearer than a time.
type farBell struct {
	*bell
	least time.Duration
}

func (b farBell) Least() time.Duration { return b.least }

// Where something is always near, a pass does not go on for good: its process would never end.
func TestAlarmForWhatIsAlwaysNear(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{every("every 30s")}})
		tk, _ := waking(t, d)
		tk.Lead = time.Minute
		began := d.Clock.Now()
		r := ticktest.Pass(t, tk)
		if lasted := d.Clock.Now().Sub(began); lasted > 7*time.Minute || r.Started < 3 || r.WakeAt.IsZero() {
			t.Errorf("it lasted for %s: %d started, the alarm is for %v", lasted, r.Started, r.WakeAt)
		}
	})
}

// What is due already and stays due is looked at again after a wait: the pass that an alarm has started early does not look at it
// again and again while it could wait for something else, nor does it in a freeze.
func TestAlarmForWhatStaysDueIsNotNear(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		stuck := ticktest.Hourly("stuck")
		stuck.Group = "g"
		other := store.Job{Name: "other", Own: &store.Schedule{Rule: "25 * * * *"}, Steps: []store.Step{ticktest.Nop("")}}
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 1}}, Jobs: []store.Job{stuck, other}})
		tk, _ := waking(t, d)
		d.Clock.Set(ticktest.Morning(8, 30))
		ticktest.Pass(t, tk)
		d.Exec(t, "DELETE FROM "+d.Table("groups"))
		d.Clock.Set(ticktest.Morning(9, 0))
		ticktest.Pass(t, tk)
		tk.Lead = time.Minute
		expect := func(what string, at, ends time.Time, passes, started int) {
			t.Helper()
			d.Clock.Set(at)
			r := ticktest.Pass(t, tk)
			if now := d.Clock.Now(); r.Passes > passes || r.Started != started || now.Sub(ends).Abs() > time.Second {
				t.Errorf("%s: %d passes from %v to %v, %d started", what, r.Passes, at, now, r.Started)
			}
		}
		expect("nothing is near", ticktest.Morning(9, 10), ticktest.Morning(9, 10), 1, 0)
		expect("another job is near", ticktest.Morning(9, 24), ticktest.Morning(9, 25), 2, 1)
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, ticktest.Morning(10, 40))
		expect("in a freeze", ticktest.Morning(10, 30), ticktest.Morning(10, 30), 1, 0)
		expect("a freeze ends", ticktest.Morning(10, 39), ticktest.Morning(10, 40), 2, 0)
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, time.Time{})
		expect("in a freeze without an end", ticktest.Morning(11, 30), ticktest.Morning(11, 30), 1, 0)
	})
}
