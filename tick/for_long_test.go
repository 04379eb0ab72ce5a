package tick_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A tick for an hour looks each minute, as a trigger of each minute would: it is not silent while it sleeps, neither for itself nor
// for status, and a request waits for a minute at most.
func TestForAnHourIsATriggerOfEachMinute(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		nop := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("hourly"), {Name: "asked", Steps: nop}, {Name: "tell", Steps: nop}}})
		tk, slept := repeating(t, d)
		tk.Late, tk.On = 15*time.Minute, store.Hooks{Late: "tell"}
		for range 12 {
			ticktest.Pass(t, tk)
			d.Clock.Add(time.Minute)
		}
		began, asked := d.Clock.Now(), time.Time{}
		sleep := tk.Sleep
		tk.Sleep = func(ctx context.Context, wait time.Duration) {
			if len(*slept) == 20 {
				asked = d.Clock.Now()
				ticktest.RunNow(t, d, "asked", store.Request{})
			}
			sleep(ctx, wait)
		}
		r, err := tk.RunFor(t.Context(), time.Hour)
		if err != nil || !r.SilentSince.IsZero() || r.Passes != 60 || !d.Clock.Now().Equal(began.Add(time.Hour)) {
			t.Errorf("%v: silent since %s, %d passes from %s to %s", err, r.SilentSince, r.Passes, began, d.Clock.Now())
		}
		if longest := slices.Max(*slept); longest > time.Minute {
			t.Errorf("slept for %s", longest)
		}
		if events := told(t, d, "tell"); len(events) > 0 {
			t.Errorf("the hook for a silence ran: %v", events)
		}
		if run := ticktest.LastRun(t, d, "hourly"); !run.ScheduledFor.Equal(ticktest.Morning(9, 0)) || !run.StartedAt.Equal(run.ScheduledFor) {
			t.Errorf("the hourly job of %s started at %s", run.ScheduledFor, run.StartedAt)
		}
		if run := ticktest.LastRun(t, d, "asked"); asked.IsZero() || run.StartedAt.Sub(asked) > time.Minute {
			t.Errorf("the run that was asked for at %s started at %s", asked, run.StartedAt)
		}
		triggers, err := d.Triggers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if list, err := d.Silences(t.Context(), triggers, d.Clock.Now(), began.Add(-time.Hour)); err != nil || len(list) > 0 {
			t.Errorf("%v: %+v", err, list)
		}
	})
}

// A tick for more than a minute lasts, also if nothing is due: where it is started again as soon as it ends, another end would be
// an endless row of starts. One for a minute at most ends at once, and so does one with alarms, which come for what is next.
func TestForAnHourLasts(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{every("daily at 03:00")}})
		for _, c := range []struct {
			what           string
			length, budget time.Duration
			alarm          bool
			lasts          time.Duration
		}{
			{"a minute", time.Minute, 0, false, 0},
			{"more", 90 * time.Second, 0, false, 90 * time.Second},
			{"an hour", time.Hour, 0, false, time.Hour},
			{"an hour with a budget", time.Hour, 102*time.Second + 500*time.Millisecond, false, 100 * time.Second},
			{"an hour with alarms", time.Hour, 0, true, 0},
		} {
			tk, slept := repeating(t, d)
			if tk.Budget = c.budget; c.alarm {
				tk.Alarm = bellFunc(func(time.Time) {})
			}
			began := d.Clock.Now()
			r, err := tk.RunFor(t.Context(), c.length)
			if lasted := d.Clock.Now().Sub(began); err != nil || lasted != c.lasts || r.Passes != max(1, len(*slept)) {
				t.Errorf("%s: %v: it lasted for %s, want %s: %d passes, slept %v", c.what, err, lasted, c.lasts, r.Passes, *slept)
			}
		}
	})
}

// A host that is suspended during a tick for an hour is silent. The report says from when to when.
func TestForAnHourTellsASilenceWithin(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk, slept := repeating(t, d)
		tk.Late = 15 * time.Minute
		sleep, since := tk.Sleep, time.Time{}
		tk.Sleep = func(ctx context.Context, wait time.Duration) {
			if len(*slept) == 15 {
				since = d.Clock.Now()
				d.Clock.Add(30 * time.Minute)
			}
			sleep(ctx, wait)
		}
		r, err := tk.RunFor(t.Context(), time.Hour)
		if until := since.Add(31 * time.Minute); err != nil || since.IsZero() || !r.SilentSince.Equal(since) || !r.SilentUntil.Equal(until) {
			t.Errorf("%v: silent from %s to %s, want %s to %s", err, r.SilentSince, r.SilentUntil, since, until)
		}
	})
}

// While the database is away, a tick for an hour goes on trying. So its trigger was not silent, also for status, and what follows
// counts as before: the hook runs for a silence just afterwards.
func TestForAnHourIsNotSilentWhileTheDatabaseIsAway(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "tell", Steps: []store.Step{ticktest.Nop("")}}}})
		tk, slept := repeating(t, d)
		var calls storetest.Calls
		calls.Before = func(storetest.Call) error {
			return when(len(*slept) >= 20 && len(*slept) < 40, errors.New("the database is away"))
		}
		tk.Store = ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap})
		tk.Late, tk.On = 15*time.Minute, store.Hooks{Late: "tell"}
		sleep, since := tk.Sleep, time.Time{}
		tk.Sleep = func(ctx context.Context, wait time.Duration) {
			if len(*slept) == 45 {
				if events := told(t, d, "tell"); len(events) > 0 {
					t.Errorf("the hook for a silence ran: %v", events)
				}
				if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("ticks")); n != 1 {
					t.Errorf("%d rows of passes, want one without a silence", n)
				}
				since = d.Clock.Now()
				d.Clock.Add(time.Hour)
			}
			sleep(ctx, wait)
		}
		r, err := tk.RunFor(t.Context(), 2*time.Hour)
		if err == nil || r.Passes != 60 || since.IsZero() || !r.SilentSince.Equal(since) {
			t.Errorf("%v: %d passes, silent since %v, want %v", err, r.Passes, r.SilentSince, since)
		}
		if events := told(t, d, "tell"); len(events) != 1 {
			t.Errorf("the hook for a silence ran: %v", events)
		}
	})
}

// What is true at the end of a tick for an hour counts from its last look, and not from its first one. How late decisions came is that
// of the pass that came latest.
func TestForAnHourCountsFromItsLastLook(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("hourly"), {Name: "asked", Queue: "reports", Steps: []store.Step{ticktest.Nop("")}}}})
		d.Clock.Set(ticktest.Morning(8, 30))
		ticktest.Run(t, d)
		tk, slept := repeating(t, d)
		tk.Gauges = true
		sleep := tk.Sleep
		tk.Sleep = func(ctx context.Context, wait time.Duration) {
			switch len(*slept) {
			case 20:
				ticktest.RunNow(t, d, "asked", store.Request{})
			case 25: // the host is suspended while the hourly job becomes due
				d.Clock.Set(ticktest.Morning(9, 4))
			}
			sleep(ctx, wait)
		}
		r, err := tk.RunFor(t.Context(), time.Hour)
		if err != nil || r.Late() != 5*time.Minute || !r.States || r.QueuedFor() != 38*time.Minute || r.NextIn() != 31*time.Minute { // the next pass has queued it
			t.Errorf("%v: late by %s, queued for %s, the next in %s", err, r.Late(), r.QueuedFor(), r.NextIn())
		}
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, time.Time{})
		if r := ticktest.Pass(t, tk); r.Late() != 0 || r.QueuedFor() != 0 {
			t.Errorf("in a freeze, late by %s, queued for %s", r.Late(), r.QueuedFor())
		}
	})
}

// How late the pass was that came latest also counts where everything was paused for some passes afterwards, or before. If it
// is still paused at the end, nothing is late.
func TestForAnHourKeepsHowLateItCame(t *testing.T) {
	for _, c := range []struct {
		what           string
		pause, suspend int // after this many passes
		resume         int
		want           time.Duration
	}{
		{"paused afterwards", 30, 25, 32, 5 * time.Minute},
		{"paused before", 20, 25, 22, 5 * time.Minute},
		{"paused at the end", 30, 25, -1, 0},
		{"paused while it became due", 20, 25, 28, time.Second}, // after the end of the pause
	} {
		t.Run(c.what, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("hourly")}})
				d.Clock.Set(ticktest.Morning(8, 30))
				ticktest.Run(t, d)
				tk, slept := repeating(t, d)
				sleep := tk.Sleep
				tk.Sleep = func(ctx context.Context, wait time.Duration) {
					switch len(*slept) {
					case c.pause:
						ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, time.Time{})
					case c.suspend: // the host is suspended while the hourly job becomes due
						d.Clock.Set(ticktest.Morning(9, 4))
					case c.resume:
						ticktest.Resume(t, d, store.Subject{Scope: store.ScopeAll}, false)
					}
					sleep(ctx, wait)
				}
				r, err := tk.RunFor(t.Context(), time.Hour)
				if err != nil || r.Late() != c.want || r.Frozen != (c.resume < 0) {
					t.Errorf("%v: late by %s, want %s; paused %t", err, r.Late(), c.want, r.Frozen)
				}
			})
		})
	}
}

// A pass that takes long counts what it finds at its end up to then.
func TestPassCountsFromItsLastLook(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "asked", Queue: "reports", Steps: []store.Step{ticktest.Nop("")}}, {Name: "long", Steps: []store.Step{ticktest.Call("")}}}})
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			d.Clock.Add(14 * time.Minute)
			return executor.Result{}, nil
		})
		tk.Gauges = true
		ticktest.RunNow(t, d, "asked", store.Request{})
		ticktest.RunNow(t, d, "long", store.Request{})
		if r := ticktest.Pass(t, tk); r.Succeeded != 1 || r.QueuedFor() != 14*time.Minute || r.Late() != 0 {
			t.Errorf("%d runs succeeded; late by %s, queued for %s", r.Succeeded, r.Late(), r.QueuedFor())
		}
	})
}

// The database is away for some minutes of a tick for an hour, or refuses a part of a pass: the tick goes on, as a trigger of each
// minute would, and returns the error in the end. It ends at once if its first pass meets no database, or a later one another
// schema. For some minutes, the clock of the database may be wrong: such a pass does nothing, and the next one may.
func TestForAnHourOutlastsAnError(t *testing.T) {
	away := errors.New("the database is away")
	for _, c := range []struct {
		what   string
		fails  func(minute int, sql string) error
		wrong  []int // the minutes in which the clock of the database is wrong
		passes int
		lasts  time.Duration
	}{
		{"away", func(minute int, _ string) error { return when(minute >= 3 && minute < 20, away) }, nil, 60, time.Hour},
		{"a part of a pass", func(minute int, sql string) error { return when(minute == 0 && strings.Contains(sql, "skips"), away) }, nil, 60, time.Hour},
		{"away at first", func(minute int, _ string) error { return when(minute == 0, away) }, nil, 1, 0},
		{"another schema", func(minute int, _ string) error { return when(minute == 3, store.ErrSchema) }, nil, 4, 3 * time.Minute},
		{"a wrong clock", func(int, string) error { return nil }, []int{0, 3, 4}, 60, time.Hour},
		{"away after a wrong clock", func(minute int, _ string) error { return when(minute == 5, away) }, []int{4}, 60, time.Hour},
	} {
		t.Run(c.what, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("hourly")}})
				began, runs := d.Clock.Now(), false
				minute := func() int { return int(d.Clock.Now().Sub(began) / time.Minute) }
				clock := func() time.Time {
					if runs && slices.Contains(c.wrong, minute()) {
						return d.Clock.Now().Add(-time.Hour)
					}
					return d.Clock.Now()
				}
				var calls storetest.Calls
				calls.Before = func(call storetest.Call) error {
					if !runs {
						return nil
					}
					return c.fails(minute(), call.SQL)
				}
				tk, slept := repeating(t, d)
				tk.MaxClockSkew = 10 * time.Minute
				tk.Store = ticktest.OpenBeside(t, d, "", store.Options{Clock: clock, Wrap: calls.Wrap})
				runs = true
				r, err := tk.RunFor(t.Context(), time.Hour)
				if err == nil || r.Passes != c.passes {
					t.Errorf("%d passes, want %d: %v", r.Passes, c.passes, err)
				}
				if lasted := d.Clock.Now().Sub(began); lasted != c.lasts || len(*slept) > 0 && slices.Max(*slept) > time.Minute {
					t.Errorf("it lasted for %s, and slept %v", lasted, *slept)
				}
			})
		})
	}
}

// when returns the error if the condition holds.
func when(holds bool, err error) error {
	if holds {
		return err
	}
	return nil
}
