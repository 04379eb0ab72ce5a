package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
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
