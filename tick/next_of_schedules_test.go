package tick_test

import (
	"reflect"
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

// An edit of its calendar is no change of a rule: after a rename, jobs keep what the old names chose for a ~, and lose no time.
func TestRenamedJobsKeepTheirTimesWhenACalendarIsEdited(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		times := func(names ...string) (list [][]time.Time) {
			t.Helper()
			for _, name := range names {
				v, err := d.Job(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				f, err := tick.Forecast(t.Context(), d.Store, &v, 50)
				if err != nil || len(f.Next) != 50 {
					t.Fatal(f, err)
				}
				list = append(list, f.Next)
			}
			return list
		}
		defs := store.Definitions{
			Calendars: []store.Calendar{{Name: "de", WorkingDays: "MO-FR", Days: []string{"2020-12-25"}}},
			Schedules: []store.Schedule{{Name: "hourly", Rule: "~ * * * *", Calendar: "de"}},
			Jobs: []store.Job{
				{Name: "by name", Schedules: []string{"hourly"}, Steps: []store.Step{ticktest.Nop("")}},
				{Name: "own", Own: &store.Schedule{Rule: "~ * * * *", Calendar: "de", OnHoliday: "next"}, Steps: []store.Step{ticktest.Nop("")}},
			},
		}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		before := times("by name", "own")
		if _, err := d.RenameSchedule(t.Context(), "hourly", "each hour", store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.RenameJob(t.Context(), "own", "other", store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		defs.Calendars[0].Days = []string{"2020-12-25", "2021-01-01"}
		ticktest.Apply(t, d, store.Definitions{Calendars: defs.Calendars})
		for _, passed := range []string{"before a pass", "after a pass"} {
			if now := times("by name", "other"); !reflect.DeepEqual(now, before) {
				t.Errorf("%s, they are due at %s, before at %s", passed, now, before)
			}
			ticktest.Run(t, d)
		}
	})
}
