package tick_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A quiet pass names the jobs that are parked or failing when it parks one, and once an hour. cron mails the output of
// a pass, so a nightly job that failed would otherwise send a mail each minute.
func TestStatesAreRemindedOfOnceAnHour(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "bad", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		reminds := func(why string, want bool) {
			t.Helper()
			if r := ticktest.Run(t, d); r.Remind != want {
				t.Errorf("%s: %t", why, r.Remind)
			}
		}
		d.Clock.Set(ticktest.Morning(8, 1))
		reminds("the first pass of all", true)
		d.Clock.Add(time.Minute)
		reminds("a minute later", false)
		d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = 'nonsense'")
		d.Clock.Add(time.Minute)
		reminds("a job is parked", true)
		d.Clock.Add(time.Minute)
		reminds("it is parked still", false)
		for range 56 {
			d.Clock.Add(time.Minute)
			if r := ticktest.Run(t, d); r.Remind != (d.Clock.Now().Minute() == 0) {
				t.Errorf("%s: %t", d.Clock.Now(), r.Remind)
			}
		}
	})
}

// A look is due in the first pass that begins in an hour, also if a long pass lies across each full hour, as with a trigger that
// waits for its pass. A long pass beside shorter ones, which end before it, changes nothing: its hour is not the newest one.
func TestStatesAreRemindedOfBehindLongPasses(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "long", Steps: []store.Step{ticktest.Call("")}}}})
		reminds := func(minute int, want bool) {
			t.Helper()
			d.Clock.Set(ticktest.Morning(9, minute))
			if r := ticktest.Run(t, d); r.Remind != want {
				t.Errorf("09:00 and %d minutes: %t", minute, r.Remind)
			}
		}
		var beside bool
		shorter := ticktest.New(t, d.Store)
		shorter.Holder = "beside"
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			if beside {
				for _, want := range []bool{true, false} { // before the lease of the run that executes is over
					d.Clock.Add(20 * time.Second)
					if r, err := shorter.Run(t.Context()); err != nil || r.Remind != want {
						t.Errorf("%s, beside a long pass: %v: %t", d.Clock.Now(), err, r.Remind)
					}
				}
			}
			d.Clock.Add(10 * time.Minute)
			return executor.Result{}, nil
		})
		long := func() {
			t.Helper()
			ticktest.RunNow(t, d, "long", store.Request{})
			if r := ticktest.Pass(t, tk); r.Remind || r.Succeeded != 1 {
				t.Errorf("%s, a long pass: %t, %d runs", d.Clock.Now(), r.Remind, r.Succeeded)
			}
		}
		reminds(54, true)
		d.Clock.Set(ticktest.Morning(9, 55))
		long()
		reminds(66, true)
		reminds(67, false)
		for minute := 70; minute < 119; minute += 4 {
			reminds(minute, false)
		}
		d.Clock.Set(ticktest.Morning(10, 59).Add(50 * time.Second))
		beside = true
		long()
		reminds(132, false)
	})
}

// A pass that fails tells nothing but its error. So it does not count as the first one of the hour, as where a dump has locked the
// plans at each full hour.
func TestStatesAreRemindedOfBehindAPassThatFails(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job")}})
		fails := false
		tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Wrap: (&storetest.Calls{Before: func(c storetest.Call) error {
			return when(fails && c.Kind == storetest.Begin, errors.New("the plans are locked"))
		}}).Wrap}))
		for minute, want := range []bool{true, false, true, false} { // from 08:58 on; at 09:00 behind a pass that failed
			if d.Clock.Set(ticktest.Morning(8, 58+minute)); minute == 2 {
				fails = true
				if r, err := tk.Run(t.Context()); err == nil || r.Remind {
					t.Errorf("%v: %t", err, r.Remind)
				}
				fails = false
				d.Clock.Add(30 * time.Second)
			}
			if r := ticktest.Pass(t, tk); r.Remind != want {
				t.Errorf("%s: %t", d.Clock.Now(), r.Remind)
			}
		}
	})
}

// The hour counts, also where the trigger comes so seldom that each pass follows a silence: cron would mail the same jobs each time.
func TestStatesAreRemindedOfOnceAnHourBySeldomTriggers(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		for minute := 5; minute < 180; minute += 10 {
			d.Clock.Set(ticktest.Morning(8, minute))
			if r := ticktest.Run(t, d); r.Remind != (minute%60 == 5) {
				t.Errorf("%s: %t", d.Clock.Now(), r.Remind)
			}
		}
	})
}

// A job that stays parked is tried again each five minutes, if its row cannot be read, or its decision is refused. Only the first
// pass reminds of that.
func TestStatesAreRemindedOfOnceForAJobThatStaysParked(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(t *testing.T, d *storetest.DB)
	}{
		{"unreadable", func(t *testing.T, d *storetest.DB) { spoil(t, d, "jobs", "not_before", "id = 1") }},
		{"refused", func(t *testing.T, d *storetest.DB) { refuse(t, d, "INSERT", "runs", "NEW.job_id = 1") }},
	} {
		t.Run(c.what, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job")}})
				ticktest.Run(t, d) // 08:00
				c.spoil(t, d)
				d.Clock.Set(ticktest.Morning(9, 0))
				if r := ticktest.Run(t, d); !r.Remind || r.ParkedJobs != 1 || len(r.Parked) != 1 {
					t.Fatalf("%t, %d jobs are parked: %v", r.Remind, r.ParkedJobs, r.Parked)
				}
				for minute := 1; minute < 16; minute++ {
					d.Clock.Set(ticktest.Morning(9, minute))
					if r := ticktest.Run(t, d); r.Remind || r.ParkedJobs != 1 || len(r.Parked) != 1 {
						t.Errorf("minute %d: %t, %d jobs are parked: %v", minute, r.Remind, r.ParkedJobs, r.Parked)
					}
				}
			})
		})
	}
}
