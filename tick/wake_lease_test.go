package tick_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The run of a process that has died is taken over a heartbeat after the end of its lease, also beside a job that stays due:
// until then, nothing can be decided about the run.
func TestAlarmForTheRunOfADeadProcess(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk, _ := waking(t, d)
		stuck := ticktest.Hourly("stuck")
		stuck.Group = "g"
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "g", MaxRunning: 1}}, Jobs: []store.Job{ticktest.Hourly("job"), stuck}})
		ticktest.DecideOnly(t, d)
		for _, c := range []struct {
			hour int
			what string
		}{{9, "alone"}, {10, "beside a job that stays due"}, {13, "beside a job that stays due for hours"}} {
			at := func(minute, second int) time.Time {
				return ticktest.Morning(c.hour, minute).Add(time.Duration(second) * time.Second)
			}
			d.Clock.Set(at(0, 0))
			ticktest.DecideOnly(t, d)
			if tasks, err := d.Take(t.Context(), "tick", 9, store.Holder{Name: "dead", Lease: 90 * time.Second}); err != nil || len(tasks) == 0 {
				t.Fatalf("%d taken, %v", len(tasks), err)
			}
			for _, step := range []struct{ now, next time.Time }{{at(0, 10), at(2, 0)}, {at(1, 30), at(2, 0)}} {
				d.Clock.Set(step.now)
				if r := ticktest.Pass(t, tk); r.Started > 0 || r.WakeAt.After(step.next.Add(time.Second)) || r.WakeAt.Before(step.now.Add(time.Second)) {
					t.Errorf("%s, at %v: %d started, the alarm is for %v, want %v", c.what, step.now, r.Started, r.WakeAt, step.next)
				}
			}
			d.Clock.Set(at(2, 0))
			if r := ticktest.Pass(t, tk); r.Started == 0 {
				t.Errorf("%s: the run was not taken over", c.what)
			}
			if c.hour == 9 {
				d.Exec(t, "DELETE FROM "+d.Table("groups"))
			}
		}
	})
}

// A process has died with a run. It is taken for dead half a minute after the end of its lease. Until then, nothing can be
// decided about the run, so nothing looks at it: no pass of a tick --for, and no alarm.
func TestLeaseWakesNothingBeforeItCountsAsOver(t *testing.T) {
	const lease = 20 * time.Second
	abandon := func(t *testing.T, d *storetest.DB) (recovered time.Time) {
		t.Helper()
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Request(t, d, "job")
		ticktest.DecideOnly(t, d)
		if tasks, err := d.Take(t.Context(), "tick", 1, store.Holder{Name: "dead", Lease: lease}); err != nil || len(tasks) != 1 {
			t.Fatalf("%v: %d taken", err, len(tasks))
		}
		return d.Clock.Now().Add(lease + 30*time.Second)
	}
	t.Run("for", func(t *testing.T) {
		storetest.Each(t, func(t *testing.T, d *storetest.DB) {
			at := abandon(t, d)
			tk, slept := repeating(t, d)
			r, err := tk.RunFor(t.Context(), 55*time.Second)
			if err != nil || r.Passes != 2 || r.Succeeded != 1 || !slices.Equal(*slept, []time.Duration{50 * time.Second}) {
				t.Errorf("%v: %d passes, %d succeeded, slept %v, want one sleep until %v", err, r.Passes, r.Succeeded, *slept, at)
			}
		})
	})
	t.Run("alarm", func(t *testing.T) {
		storetest.Each(t, func(t *testing.T, d *storetest.DB) {
			at := abandon(t, d)
			tk, b := waking(t, d)
			tk.Lead = 20 * time.Second
			if r := ticktest.Pass(t, tk); !r.WakeAt.Equal(at.Add(-tk.Lead)) {
				t.Errorf("the alarm is for %v, want %v", r.WakeAt, at.Add(-tk.Lead))
			}
			passes := 0
			for succeeded := 0; succeeded == 0 && len(b.set) > 0; {
				ring := b.set[0]
				d.Clock.Set(ring)
				b.take(ring)
				r := ticktest.Pass(t, tk)
				succeeded += r.Succeeded
				passes += r.Passes
			}
			if passes != 2 || d.Clock.Now().Before(at) {
				t.Errorf("%d passes until the run is recovered, at %v, want one that waits and one more", passes, d.Clock.Now())
			}
		})
	})
}
