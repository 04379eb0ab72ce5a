package tick_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// In a freeze no pass decides. What became due or ready meanwhile is late from the end of the freeze on, and not before, whether
// the freeze ends by itself or by hand: the first pass after it may be a minute away.
func TestNothingIsLateJustAfterAFreeze(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "due", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}},
			{Name: "left", Own: ticktest.EveryFiveMinutes(), Queue: "never", Steps: []store.Step{ticktest.Nop("")}},
		}})
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.Run(t, d)
		expect := func(when string, overdue, stuck int, late store.Duration) {
			t.Helper()
			st, err := d.Standing(t.Context(), 2*time.Minute, 0, 5)
			if err != nil || st.Overdue.Count != overdue {
				t.Errorf("%s: %v: %d jobs are overdue, not %d", when, err, st.Overdue.Count, overdue)
			}
			if coming := 2 - overdue; len(st.Coming) != coming {
				t.Errorf("%s: %d jobs are due and not late, want %d", when, len(st.Coming), coming)
			}
			f, err := d.Figures(t.Context(), time.Hour)
			if err != nil || f.Stuck != stuck {
				t.Errorf("%s: %v: %d runs are stuck, not %d", when, err, f.Stuck, stuck)
			}
			v, err := d.Job(t.Context(), "due")
			if err != nil || v.Overdue != late {
				t.Errorf("%s: %v: overdue since %s, not %s", when, err, v.Overdue, late)
			}
		}
		for _, byHand := range []bool{false, true} {
			until := d.Clock.Now().Add(3 * time.Hour)
			if byHand {
				until = time.Time{}
			}
			freeze := store.Subject{Scope: store.ScopeAll}
			ticktest.Pause(t, d, freeze, until)
			d.Clock.Add(3 * time.Hour)
			if byHand {
				ticktest.Resume(t, d, freeze, false)
			}
			d.Clock.Add(time.Minute)
			expect("after a minute", 0, 0, store.Duration(time.Minute))
			d.Clock.Add(time.Hour)
			expect("after an hour", 2, 1, store.Duration(time.Hour+time.Minute))
			tk := ticktest.New(t, d.Store)
			tk.Gauges = true
			r, err := tk.Run(t.Context())
			if thaw := d.Clock.Now().Add(-time.Hour - time.Minute); err != nil || !r.OldestDue.Equal(thaw) || !r.OldestQueued.Equal(thaw) {
				t.Errorf("%v: the pass counts from %s and %s, want the end of the freeze, %s", err, r.OldestDue, r.OldestQueued, thaw)
			}
			st, err := d.Standing(t.Context(), 0, 0, 5)
			if err != nil || st.Overdue.Count != 0 {
				t.Errorf("%v: after a pass, %d jobs are overdue", err, st.Overdue.Count)
			}
		}
	})
}

// A pass does not fail because a job that became due in a freeze is locked just after it: another pass may be deciding for it.
func TestLocksJustAfterAFreeze(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job")}})
		ticktest.Run(t, d)
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, d.Clock.Now().Add(3*time.Hour))
		ticktest.LockPlans(t, d)
		d.Clock.Add(3*time.Hour + time.Minute)
		for _, fails := range []bool{false, true} {
			if r, err := ticktest.New(t, d.Store).Run(t.Context()); errors.Is(err, store.ErrLocked) != fails || r.LockedJobs != 1 {
				t.Errorf("%v: %d are locked, and the pass should fail: %t", err, r.LockedJobs, fails)
			}
			d.Clock.Add(5 * time.Minute)
		}
	})
}

// Nor is the first pass after a freeze late, by what it has found: the figures that alarms look at count from the end of the freeze.
func TestPassJustAfterAFreezeIsNotLate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("due"), {Name: "left", Queue: "never", Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Request(t, d, "left")
		tk := ticktest.New(t, d.Store)
		tk.Gauges = true
		ticktest.Pass(t, tk)
		queued, thaw := d.Clock.Now(), d.Clock.Now().Add(3*time.Hour)
		for _, frozen := range []bool{false, true} {
			if frozen {
				ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, thaw)
			}
			due := d.Clock.Now().Truncate(time.Hour).Add(time.Hour)
			if frozen {
				due, queued = thaw, thaw
			}
			d.Clock.Set(due.Add(time.Minute))
			if r, err := tk.Run(t.Context()); err != nil || !r.OldestDue.Equal(due) || !r.OldestQueued.Equal(queued) {
				t.Errorf("after a freeze: %t: %v: due since %v, want %v; queued since %v, want %v", frozen, err, r.OldestDue, due, r.OldestQueued, queued)
			}
		}
	})
}
