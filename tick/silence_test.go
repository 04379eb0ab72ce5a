package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The first pass after a silence says since when the trigger was silent, and only that one. A trigger that comes once an
// hour, or has come a few times, is not silent in between.
func TestSilenceOfATriggerIsTold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk := ticktest.New(t, d.Store)
		tk.Late = 15 * time.Minute
		silent := func(after time.Duration) bool {
			t.Helper()
			before := d.Clock.Now()
			d.Clock.Add(after)
			r := pass(t, tk)
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
