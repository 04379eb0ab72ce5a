package tick_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A silence lasts until a pass is on record that has raised it. So a tick for an hour raises it later if the first pass after the
// silence could not, met no database, or was refused since its clock was wrong: whether the trigger came late, or the host was suspended during the tick.
func TestForAnHourRaisesASilenceLater(t *testing.T) {
	for _, c := range []struct {
		what  string
		after int // how many passes come before the silence
		fails func(storetest.Call) bool
	}{
		{"the trigger came late, and the run of the hook fails", 0, func(c storetest.Call) bool { return c.Kind == storetest.Begin }},
		{"suspended, and the run of the hook fails", 15, func(c storetest.Call) bool { return c.Kind == storetest.Begin }},
		{"suspended, and the database is away", 15, func(storetest.Call) bool { return true }},
		{"suspended, and the pass is not on record", 15, func(c storetest.Call) bool { return strings.Contains(c.SQL, "took_ms") }},
		{"the trigger came late, and its clock is wrong", 0, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "tell", Steps: []store.Step{ticktest.Nop("")}}}})
				tk, slept := repeating(t, d)
				for range 12 {
					ticktest.Pass(t, tk)
					d.Clock.Add(time.Minute)
				}
				since, runs, failed := d.Clock.Now().Add(-time.Minute), false, 0
				var calls storetest.Calls
				calls.Before = func(call storetest.Call) error {
					fails := runs && len(*slept) == c.after && c.fails != nil && c.fails(call)
					if fails {
						failed++
					}
					return when(fails, errors.New("the database is away"))
				}
				sleep := tk.Sleep
				tk.Sleep = func(ctx context.Context, wait time.Duration) {
					if len(*slept) == c.after-1 {
						since = d.Clock.Now()
						d.Clock.Add(time.Hour)
					}
					sleep(ctx, wait)
				}
				tk.Store = ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap})
				tk.Late, tk.On, tk.MaxClockSkew = 15*time.Minute, store.Hooks{Late: "tell"}, 10*time.Minute
				tk.Now = func() time.Time {
					if runs && len(*slept) == c.after && c.fails == nil { // it stood still in the silence
						failed++
						return d.Clock.Now().Add(-time.Hour)
					}
					return d.Clock.Now()
				}
				if runs = true; c.after == 0 {
					d.Clock.Add(time.Hour)
				}
				r, err := tk.RunFor(t.Context(), 90*time.Minute)
				if err == nil || failed == 0 || !r.SilentSince.Equal(since) {
					t.Errorf("%v: %d times a call failed or the clock was wrong; silent since %v, want %v", err, failed, r.SilentSince, since)
				}
				if events := told(t, d, "tell"); len(events) != 1 {
					t.Errorf("the hook for a silence ran for %v", events)
				}
				if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("ticks")); n != 2 {
					t.Errorf("%d rows of passes, want those before and after the silence", n)
				}
			})
		})
	}
}

// The clock of a machine that is paused stands still, and is put right only some time later. By the clock of the database the trigger
// was silent, whether the pass in between is refused or not, and whether the host has a hook or not.
func TestForAnHourIsSilentWhileItsClockStandsStill(t *testing.T) {
	for _, c := range []struct {
		what  string
		most  time.Duration // that the clocks may differ by
		hooks store.Hooks
	}{
		{"refused", 10 * time.Minute, store.Hooks{Late: "tell"}},
		{"refused, without a hook", 10 * time.Minute, store.Hooks{}},
		{"not refused", 0, store.Hooks{Late: "tell"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "tell", Steps: []store.Step{ticktest.Nop("")}}}})
				tk, slept := repeating(t, d)
				tk.Late, tk.On, tk.MaxClockSkew = 15*time.Minute, c.hooks, c.most
				var since time.Time
				var behind time.Duration
				tk.Now = func() time.Time { return d.Clock.Now().Add(-behind) }
				sleep := tk.Sleep
				tk.Sleep = func(ctx context.Context, wait time.Duration) {
					if behind = 0; len(*slept) == 14 {
						since, behind = d.Clock.Now(), time.Hour
						d.Clock.Add(behind)
					}
					sleep(ctx, wait)
				}
				r, err := tk.RunFor(t.Context(), 90*time.Minute)
				if refused := err != nil && strings.Contains(err.Error(), "nothing was done"); refused != (c.most > 0) || !r.SilentSince.Equal(since) {
					t.Errorf("%v; silent since %v, want %v", err, r.SilentSince, since)
				}
				if events := told(t, d, "tell"); len(events) != 1 && c.hooks.Late != "" {
					t.Errorf("the hook for a silence ran for %v", events)
				}
				if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("ticks")); n != 2 {
					t.Errorf("%d rows of passes, want those before and after the silence", n)
				}
			})
		})
	}
}
