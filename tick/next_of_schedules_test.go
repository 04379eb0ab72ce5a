package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// After a rename, the jobs of a schedule keep the minute that the old name chose for a ~. The schedule tells the time at which
// they are due, until its rule changes.
func TestNextOfARenamedScheduleIsThatOfItsJobs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		next := func(name string) time.Time {
			t.Helper()
			list, err := d.ScheduleStatuses(t.Context(), name)
			if err == nil {
				err = tick.NextOfSchedules(t.Context(), d.Store, list)
			}
			if err != nil || list[0].Next.IsZero() {
				t.Fatalf("%v: %+v", err, list)
			}
			return list[0].Next
		}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "hourly", Rule: "~ * * * *"}},
			Jobs: []store.Job{{Name: "job", Schedules: []string{"hourly"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		ticktest.Run(t, d)
		before := next("hourly")
		if _, err := d.RenameSchedule(t.Context(), "hourly", "each hour", store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		if now := next("each hour"); !now.Equal(before) {
			t.Errorf("it is due next at %s, and its job at %s", now, before)
		}
		if _, err := d.AlterSchedule(t.Context(), "each hour", store.AlterOptions{}, func(c store.Schedule) (store.Schedule, error) {
			c.Rule = "~ */2 * * *"
			return c, nil
		}); err != nil {
			t.Fatal(err)
		}
		edited := next("each hour")
		ticktest.Run(t, d)
		if now := next("each hour"); !now.Equal(edited) {
			t.Errorf("it is due next at %s, and after a pass at %s", edited, now)
		}
	})
}
