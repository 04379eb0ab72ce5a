package tick_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A pause that began while the clock was an hour ahead ends at the instant that was given, and no hour earlier.
func TestReplanKeepsTheInstantAtWhichAPauseEnds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{fiveMinutely("job")}})
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		end := right.Add(48 * time.Hour)
		d.Clock.Set(right.Add(time.Hour))
		for _, on := range []store.Subject{{Scope: store.ScopeAll}, {Scope: store.ScopeJob, Name: "job"}} {
			ticktest.Pause(t, d, on, end)
		}
		d.Clock.Set(right.Add(5 * time.Minute))
		if _, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []time.Time{end.Add(-57 * time.Minute), end.Add(-time.Minute), end.Add(10 * time.Minute)} {
			d.Clock.Set(at)
			want := 0
			if at.After(end) {
				want = 1
			}
			if r := ticktest.Run(t, d); r.Succeeded != want {
				t.Errorf("at %v: %+v", at, r)
			}
		}
	})
}

// The end of a pause that begins by the correct clock moves as its words say, and the change log has both ends.
func TestReplanMovesTheEndOfAPause(t *testing.T) {
	const day = 24 * time.Hour
	for i, c := range []struct {
		as           string
		ahead, until time.Duration // from the right time on
		becomes      time.Duration
	}{
		{"", time.Hour, 2 * day, 2 * day},
		{"", 365 * day, 366 * day, 366 * day},
		{store.UntilLength, time.Hour, 3 * time.Hour, 2*time.Hour + 5*time.Minute},
		{store.UntilLength, 365 * day, 365*day + 2*time.Hour, 2*time.Hour + 5*time.Minute},
		{store.UntilDay, time.Hour, day, day},
		{store.UntilDay, 14 * time.Hour, day, day},
		{store.UntilDay, 365*day + time.Hour, 366 * day, day},
		{store.UntilDay, 365 * day, 366 * day, 2 * day}, // the clock was corrected some minutes later: no shorter than it was to last
	} {
		t.Run(fmt.Sprintf("%q, ahead by %s", c.as, c.ahead), func(t *testing.T) {
			storetest.InTurn(t, i, func(t *testing.T, d *storetest.DB) {
				ticktest.DecideOnly(t, d)
				right := d.Clock.Now()
				d.Clock.Set(right.Add(c.ahead))
				if _, err := d.PauseUntil(t.Context(), store.Subject{Scope: store.ScopeAll}, right.Add(c.until), c.as, store.Author{}); err != nil {
					t.Fatal(err)
				}
				d.Clock.Set(right.Add(5 * time.Minute))
				n, err := d.Replan(t.Context(), "", decide.Start, store.Author{})
				if err != nil || len(n.Pauses) != 1 {
					t.Fatalf("%v: %+v", err, n)
				}
				want, was := right.Add(c.becomes), right.Add(c.until)
				moved := !want.Equal(was)
				if p := n.Pauses[0]; !p.Until.Equal(want) || !p.Since.Equal(d.Clock.Now()) || p.WasUntil.Equal(was) != moved {
					t.Errorf("%s, ahead by %s: ends at %v, and not at %v; want %v", c.as, c.ahead, p.Until, p.WasUntil, want)
				}
				if list, err := d.Pauses(t.Context(), false, 10); err != nil || len(list) != 1 || !list[0].Until.Equal(want) {
					t.Errorf("%v: %+v", err, list)
				}
				changes, err := d.Changes(t.Context(), "pause", "", 1)
				if err != nil || len(changes) != 1 || !strings.Contains(string(changes[0].Before), was.Format(time.RFC3339)) || !strings.Contains(string(changes[0].After), want.Format(time.RFC3339)) {
					t.Errorf("%v: %+v", err, changes)
				}
				if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || len(n.Pauses) != 0 {
					t.Errorf("again: %v: %+v", err, n)
				}
			})
		})
	}
}
