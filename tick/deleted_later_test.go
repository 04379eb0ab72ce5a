package tick_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The look for deleted rows comes once an hour, and in a pass whose work comes to it: what ends the first pass of each hour early does
// not put it off for ever.
func TestDeletedScheduleIsFoundByThePassThatComesToIt(t *testing.T) {
	for what, first := range map[string]func(t *testing.T, d *storetest.DB, tk *tick.Tick, calls *storetest.Calls){
		"the pass fails": func(t *testing.T, _ *storetest.DB, tk *tick.Tick, calls *storetest.Calls) {
			before := calls.Before
			calls.Before = func(c storetest.Call) error {
				return errors.Join(before(c), when(c.Kind == storetest.Begin, errors.New("the database is away")))
			}
			if _, err := tk.Run(t.Context()); err == nil {
				t.Error("the pass has not failed")
			}
			calls.Before = before
		},
		"the pass is refused": func(t *testing.T, d *storetest.DB, tk *tick.Tick, _ *storetest.Calls) {
			wrong := *tk
			wrong.Now, wrong.MaxClockSkew = func() time.Time { return d.Clock.Now().Add(-time.Hour) }, time.Minute
			if _, err := wrong.Run(t.Context()); err == nil {
				t.Error("the clock was not refused")
			}
		},
		"a freeze": func(t *testing.T, d *storetest.DB, tk *tick.Tick, _ *storetest.Calls) {
			ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, time.Time{})
			if r := ticktest.Pass(t, tk); !r.Frozen {
				t.Error("no freeze")
			}
			ticktest.Resume(t, d, store.Subject{Scope: store.ScopeAll}, false)
		},
	} {
		t.Run(what, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) { deletedSchedule(t, d, first) })
		})
	}
}

// The same where the budget ends before.
func TestDeletedScheduleIsFoundBehindABudget(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := storetest.Open(t, "sqlite", store.Options{})
		deletedSchedule(t, d, func(t *testing.T, _ *storetest.DB, tk *tick.Tick, calls *storetest.Calls) {
			before := calls.Before
			calls.Before = func(c storetest.Call) error {
				if c.Kind == storetest.Begin {
					time.Sleep(time.Minute)
				}
				return before(c)
			}
			short := *tk
			short.Budget = 50 * time.Second
			if r := ticktest.Pass(t, &short); r.CutShort == "" {
				t.Errorf("the budget has not ended: %+v", r)
			}
			calls.Before = before
		})
	})
}

// A look that cannot end, as in a database that takes too long for it, holds up the first pass of an hour, and no other one: the next
// pass executes what is due.
func TestDeletedRowsAreLookedForOnceAnHour(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		fails := false
		calls := storetest.Calls{Before: func(c storetest.Call) error {
			return when(fails && strings.Contains(c.SQL, "n.held_by = 'group'"), context.DeadlineExceeded)
		}}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("due")}})
		d.Clock.Set(ticktest.Morning(8, 59))
		tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap}))
		tk.Now = d.Clock.Now
		ticktest.Pass(t, tk)
		fails = true
		d.Clock.Set(ticktest.Morning(9, 0))
		if _, err := tk.Run(t.Context()); err == nil {
			t.Error("the look has not failed")
		}
		d.Clock.Add(time.Minute)
		if r := ticktest.Pass(t, tk); r.Succeeded != 1 {
			t.Errorf("the next pass: %+v", r)
		}
	})
}

// deletedSchedule deletes the schedule of a job before the hour, runs the first pass of the hour, and then others, of which the first
// must find the loss, and no other one may look for it.
func deletedSchedule(t *testing.T, d *storetest.DB, first func(*testing.T, *storetest.DB, *tick.Tick, *storetest.Calls)) {
	t.Helper()
	looks := 0
	calls := &storetest.Calls{Before: func(c storetest.Call) error {
		if strings.Contains(c.SQL, "n.held_by = 'group'") {
			looks++
		}
		return nil
	}}
	ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "nightly", Rule: "daily at 23:00"}},
		Jobs: []store.Job{{Name: "job", Schedules: []string{"nightly"}, Steps: []store.Step{ticktest.Nop("")}}, ticktest.Hourly("due")}})
	d.Clock.Set(ticktest.Morning(8, 59))
	tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: calls.Wrap}))
	tk.Now = d.Clock.Now
	ticktest.Pass(t, tk)
	d.Exec(t, "DELETE FROM "+d.Table("schedules")+" WHERE name = 'nightly'")
	d.Clock.Set(ticktest.Morning(9, 0))
	looks = 0
	first(t, d, tk, calls)
	if looks > 0 {
		t.Errorf("the first pass has looked")
	}
	d.Clock.Add(time.Minute)
	if r := ticktest.Pass(t, tk); len(r.Parked) != 1 || looks == 0 {
		t.Errorf("the pass that comes to it: %d looks, parked: %+v", looks, r.Parked)
	}
	looks = 0
	d.Clock.Add(time.Minute)
	if ticktest.Pass(t, tk); looks > 0 {
		t.Errorf("another pass has looked again")
	}
	d.Clock.Set(ticktest.Morning(10, 0))
	if ticktest.Pass(t, tk); looks == 0 {
		t.Errorf("nothing has looked in the next hour")
	}
}
