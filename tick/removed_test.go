package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job that SQL has removed uses no schedule and no calendar any more: the next pass sees to that, and a command that detaches
// the schedule before that pass does not make the job again.
func TestAJobRemovedBySQLLeavesItsSchedules(t *testing.T) {
	routines := map[string]string{"postgres": "SELECT dbjobs.drop_schedule('shared', detach => true)", "mariadb": "CALL dbjobs_drop_schedule('shared', true, NULL)"}
	ways := map[string]func(t *testing.T, d *storetest.DB) error{
		"after a pass": func(t *testing.T, d *storetest.DB) error {
			ticktest.Run(t, d)
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("plan_rules")); n != 0 {
				t.Errorf("its plan has %d rules", n)
			}
			if err := d.RemoveCalendar(t.Context(), "bank", store.Author{}); err != nil {
				t.Error(err)
			}
			_, err := d.RemoveSchedule(t.Context(), "shared", false, store.AlterOptions{})
			return err
		},
		"command": func(t *testing.T, d *storetest.DB) error {
			planned, err := d.RemoveSchedule(t.Context(), "shared", true, store.AlterOptions{DryRun: true})
			if err != nil {
				return err
			}
			made, err := d.RemoveSchedule(t.Context(), "shared", true, store.AlterOptions{})
			if len(planned) != 1 || len(made) != 1 {
				t.Errorf("a dry run says %+v, and it is %+v", planned, made)
			}
			return err
		},
		"routine": func(t *testing.T, d *storetest.DB) error {
			if routines[d.Engine] == "" {
				t.Skip("SQLite has no routines")
			}
			_, err := d.SQL.ExecContext(t.Context(), routines[d.Engine])
			return err
		},
	}
	for name, remove := range ways {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{
					Calendars: []store.Calendar{{Name: "bank", Days: []string{"12-25"}}},
					Schedules: []store.Schedule{{Name: "shared", Rule: "every 1h"}},
					Jobs:      []store.Job{{Name: "gone", Schedules: []string{"shared"}, Own: &store.Schedule{Rule: "0 2 * * *", Calendar: "bank"}, Steps: []store.Step{ticktest.Nop("")}}}})
				ticktest.Run(t, d)
				d.Clock.Add(time.Minute)
				d.Exec(t, "UPDATE "+d.Table("jobs")+" SET removed_at = "+ticktest.Literal(d, d.Clock.Now()))
				if err := remove(t, d); err != nil {
					t.Error(err)
				}
				ticktest.Run(t, d)
				if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("jobs")); n != 1 {
					t.Errorf("there are %d jobs", n)
				}
				if n := d.Int(t, "SELECT (SELECT COUNT(*) FROM "+d.Table("schedules")+") + (SELECT COUNT(*) FROM "+d.Table("job_schedules")+")"); n != 0 {
					t.Errorf("%d schedules and links are left", n)
				}
			})
		})
	}
}
