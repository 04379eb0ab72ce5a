package tick_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Only the first pass after a silence says since when the trigger was silent. A trigger that comes once an hour, or has
// come only a few times, is not silent between two passes.
func TestSilenceOfATriggerIsTold(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk := ticktest.New(t, d.Store)
		tk.Late = 15 * time.Minute
		silent := func(after time.Duration) bool {
			t.Helper()
			before := d.Clock.Now()
			d.Clock.Add(after)
			r := ticktest.Pass(t, tk)
			if !r.SilentSince.IsZero() && !r.SilentSince.Equal(before) {
				t.Errorf("silent since %s, want %s", r.SilentSince, before)
			}
			return !r.SilentSince.IsZero()
		}
		for i := range 4 {
			if silent(time.Hour) || i == 0 && silent(time.Minute) {
				t.Error("a trigger that comes once an hour is silent")
			}
		}
		for range 12 {
			if silent(time.Minute) {
				t.Error("a trigger that comes each minute is silent")
			}
		}
		if silent(15 * time.Minute) {
			t.Error("silent within what is allowed")
		}
		for range 12 {
			silent(time.Minute)
		}
		if !silent(time.Hour) || silent(time.Minute) {
			t.Error("a silence of an hour is reported once")
		}
		for range 12 {
			silent(time.Minute)
		}
		if tk.Late = 0; silent(time.Hour) {
			t.Error("it was turned off")
		}
	})
}

// With alarms, the trigger comes when something is due. That it came each minute for a while shows nothing: afterwards nothing
// may be due until the safety trigger.
func TestSilenceIsNoneWithAlarms(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk, begun := silentHost(t, d, "tell"), d.Clock.Now()
		if r := ticktest.Pass(t, tk); r.SilentSince.IsZero() {
			t.Fatalf("without alarms: %+v", r)
		}
		tk.Alarm = bellFunc(func(time.Time) {})
		for range 2 {
			for range 12 {
				d.Clock.Add(time.Minute)
				ticktest.Pass(t, tk)
			}
			d.Clock.Add(46 * time.Minute)
			triggers, err := d.Triggers(t.Context())
			if err != nil || len(triggers) != 1 {
				t.Fatal(triggers, err)
			}
			list, err := d.Silences(t.Context(), triggers, d.Clock.Now(), begun)
			if err != nil || len(list) != 1 || !list[0].Until.Equal(begun) {
				t.Errorf("%v: %+v, want the silence before the alarms", err, list)
			}
			if r := ticktest.Pass(t, tk); !r.SilentSince.IsZero() {
				t.Errorf("silent since %s", r.SilentSince)
			}
		}
	})
}

// silentHost is a trigger of a host with a hook for late. It came each minute, and then did not come for an hour.
func silentHost(t *testing.T, d *storetest.DB, hook string) *tick.Tick {
	t.Helper()
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "tell", Steps: []store.Step{ticktest.Nop("")}}}})
	tk := ticktest.New(t, d.Store)
	tk.Late, tk.On = 15*time.Minute, store.Hooks{Late: hook}
	for range 12 {
		if r := ticktest.Pass(t, tk); len(r.Runs) != 0 || len(r.Unheard) != 0 {
			t.Fatalf("without a silence: %+v", r)
		}
		d.Clock.Add(time.Minute)
	}
	d.Clock.Add(time.Hour)
	return tk
}

// The host's hook for late runs once for a silence, in the pass that finds the silence, and gets the facts.
func TestHookOfASilence(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk := silentHost(t, d, "tell")
		since := d.Clock.Now().Add(-time.Hour - time.Minute)
		if r := ticktest.Pass(t, tk); len(r.Runs) != 1 || r.Runs[0].State != store.Succeeded || !r.SilentSince.Equal(since) {
			t.Errorf("the pass after the silence: %+v", r)
		}
		for range 12 {
			d.Clock.Add(time.Minute)
			ticktest.Pass(t, tk)
		}
		got := told(t, d, "tell")
		if len(got) != 1 {
			t.Fatalf("%v", got)
		}
		for arg, want := range map[string]string{"event": "late", "trigger": tk.Name, "since": since.UTC().Format("2006-01-02T15:04:05.000000Z"), "seconds": "3660", "job": "",
			"error": fmt.Sprintf("the trigger %q was silent for 1h1m0s, since %s: it did not come, or did not reach the database", tk.Name, since.UTC().Format(time.RFC3339))} {
			if fmt.Sprint(got[0][arg]) != want {
				t.Errorf("%s is %v, want %s", arg, got[0][arg], want)
			}
		}
		d.Clock.Add(time.Hour)
		ticktest.Pass(t, tk)
		if got := told(t, d, "tell"); len(got) != 2 {
			t.Errorf("a second silence: %v", got)
		}
	})
}

// If several passes find the same silence, one of them makes the run. Here, other passes come after a pass has found
// the silence and before it makes the run.
func TestHookOfASilenceThatManyPassesFind(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk := silentHost(t, d, "tell")
		found := 0
		calls := &storetest.Calls{}
		calls.Before = func(c storetest.Call) error {
			if c.Kind == storetest.Begin && found == 0 {
				found = 1
				for range 2 {
					if r := ticktest.Pass(t, tk); !r.SilentSince.IsZero() {
						found++
					}
				}
			}
			return nil
		}
		beside := *tk
		beside.Store = ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap})
		if r := ticktest.Pass(t, &beside); r.SilentSince.IsZero() || found != 2 {
			t.Fatalf("%d passes found the silence: %+v", found, r)
		}
		if got := told(t, d, "tell"); len(got) != 1 {
			t.Errorf("%d runs: %v", len(got), got)
		}
	})
}

// A pass that is refused, since its clock is wrong, leaves the silence to the first pass with a right clock.
func TestHookOfASilenceAfterAWrongClock(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk := silentHost(t, d, "tell")
		since := d.Clock.Now().Add(-time.Hour - time.Minute)
		tk.MaxClockSkew = 10 * time.Minute
		for range 2 {
			tk.Now = func() time.Time { return d.Clock.Now().Add(-8 * time.Hour) }
			if r, err := tk.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing was done") || !r.SilentSince.Equal(since) {
				t.Fatalf("a wrong clock: %v; silent since %s, want %s", err, r.SilentSince, since)
			}
			d.Clock.Add(time.Minute)
		}
		tk.Now = d.Clock.Now
		if r := ticktest.Pass(t, tk); r.Succeeded != 1 || !r.SilentSince.Equal(since) {
			t.Errorf("a right clock: %d runs; silent since %s, want %s", r.Succeeded, r.SilentSince, since)
		}
		d.Clock.Add(time.Minute)
		if r := ticktest.Pass(t, tk); !r.SilentSince.IsZero() || len(told(t, d, "tell")) != 1 {
			t.Errorf("the pass after it: %+v; %v", r, told(t, d, "tell"))
		}
	})
}

// A hook that cannot run is reported and stops nothing. The same is true for a hook that is disabled. While everything
// is paused, the run waits.
func TestHookOfASilenceThatCannotRun(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk := silentHost(t, d, "nobody")
		if r := ticktest.Pass(t, tk); len(r.Unheard) != 1 || r.Unheard[0].Job != "" || !strings.HasSuffix(r.Unheard[0].Hook, "nobody") || r.Unheard[0].Error != "there is no such job" {
			t.Errorf("%+v", r.Unheard)
		}
		d.Exec(t, "UPDATE "+d.Table("ticks")+" SET passes = 20")
		d.Clock.Add(time.Hour)
		tk.On.Late = store.NoHook
		if r := ticktest.Pass(t, tk); r.SilentSince.IsZero() || len(r.Unheard) != 0 {
			t.Errorf("%+v", r)
		}
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, time.Time{})
		d.Exec(t, "UPDATE "+d.Table("ticks")+" SET passes = 20")
		d.Clock.Add(time.Hour)
		tk.On.Late = "tell"
		ticktest.Pass(t, tk)
		d.Clock.Add(time.Minute)
		if r := ticktest.Pass(t, tk); r.Started != 0 || len(told(t, d, "tell")) != 1 {
			t.Errorf("while everything is paused: %+v", r)
		}
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeAll}, false)
		if r := ticktest.Pass(t, tk); r.Succeeded != 1 {
			t.Errorf("resumed: %+v", r)
		}
	})
}

// If the database refuses the run, that is reported. If the pass would have to wait for a lock, it leaves the silence
// to the next pass.
func TestHookOfASilenceThatIsRefused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk := silentHost(t, d, "tell")
		refuse(t, d, "INSERT", "runs", "1 = 1")
		if r := ticktest.Pass(t, tk); len(r.Unheard) != 1 || !strings.Contains(r.Unheard[0].Error, "refused") {
			t.Errorf("%+v", r.Unheard)
		}
	})
}

// A trigger that has died is silent for status, also if it had come only a few times: after it was set up, or after a silence.
// One pass shows no trigger of each minute. One that came a few times after a pass long ago may be somebody who ticks by hand.
func TestSilenceOfATriggerThatCameAFewTimes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk := ticktest.New(t, d.Store)
		come := func(times int) time.Time {
			var last time.Time
			for range times {
				d.Clock.Add(time.Minute)
				ticktest.Pass(t, tk)
				last = d.Clock.Now()
			}
			return last
		}
		silent := func(what string, want time.Time) {
			t.Helper()
			d.Clock.Add(time.Hour)
			triggers, err := d.Triggers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			list, err := d.Silences(t.Context(), triggers, d.Clock.Now(), d.Clock.Now().Add(-7*24*time.Hour))
			var since time.Time
			for _, v := range list {
				if v.Until.IsZero() {
					since = v.From
				}
			}
			if err != nil || !since.Equal(want) {
				t.Errorf("%s: %v: silent since %s, want %s", what, err, since, want)
			}
		}
		tk.Name = "new"
		come(1)
		silent("one pass", time.Time{})
		come(3)
		silent("a few passes after one", time.Time{})
		tk.Name = "cron"
		silent("a few passes", come(3))
		d.Exec(t, "DELETE FROM "+d.Table("ticks"))
		silent("many passes", come(12))
		silent("a few passes after many", come(3))
		come(2)
		silent("a few passes after a few", time.Time{})
	})
}

// A pass for another instance leaves no record: it hides no silence of the trigger of the same name, and the first right pass
// of the hour still looks at all plans.
func TestPassForAnotherInstanceIsNotOnRecord(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk := silentHost(t, d, "tell")
		since := d.Clock.Now().Add(-time.Hour - time.Minute)
		records := "SELECT COALESCE(SUM(passes), 0) FROM " + d.Table("ticks")
		before := d.Int(t, records)
		wrong := ticktest.New(t, d.Store)
		wrong.Instance, wrong.Holder, wrong.Version = "elsewhere", "another host", "v0"
		if _, err := wrong.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing was done") {
			t.Fatal(err)
		}
		if n := d.Int(t, records); n != before {
			t.Errorf("%d passes are on record, %d before", n, before)
		}
		if triggers, err := d.Triggers(t.Context()); err != nil || len(triggers) != 1 || triggers[0].Holder == wrong.Holder || !triggers[0].LastAt.Equal(since) {
			t.Errorf("%v: %+v, want the last pass at %s", err, triggers, since)
		}
		if probe, err := d.Probe(t.Context(), tk.Name, tick.OwnQueue); err != nil || !probe.CheckDue() {
			t.Errorf("%v: the check of the hour is no longer due", err)
		}
		if r := ticktest.Pass(t, tk); !r.SilentSince.Equal(since) {
			t.Errorf("silent since %v, want %s", r.SilentSince, since)
		}
	})
}
