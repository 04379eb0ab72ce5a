package tick_test

import (
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// beforeDecisions begins the statement of a pass that follows its look at calendars.
const beforeDecisions = "SELECT id, plan_input, "

// marked checks that no schedule and no calendar must be looked at again, so later passes have nothing to do.
func marked(t *testing.T, d *storetest.DB) {
	t.Helper()
	for _, table := range []string{"schedules", "calendars"} {
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table(table)+" WHERE planned IS NULL OR planned <> plan_input"); n != 0 {
			t.Errorf("%d rows of %s are looked at in each pass", n, table)
		}
	}
}

// SQL edits a calendar between a pass's look at calendars and its decisions, and undoes the edit before the next pass.
func TestCalendarEditedBesideAPass(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		calendars := d.Table("calendars")
		d.Clock.Set(day(21, 8))
		ticktest.Apply(t, d, holidays("skip"))
		ticktest.Run(t, d)
		d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-22'")
		decideBeside(t, d, beforeDecisions, func() { d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-22..2026-12-24'") })
		d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-22'")
		ticktest.Run(t, d)
		nominal(t, d, "next 23T06")
		ticktest.Run(t, d)
		marked(t, d)

		d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-23'")
		decideBeside(t, d, beforeDecisions, func() { d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-22..2026-12-24'") })
		ticktest.Run(t, d) // the edit stays
		nominal(t, d, "next 25T06")
		ticktest.Run(t, d)
		marked(t, d)
	})
}

// The same edit during the first decision for a job, whose schedule has not changed.
func TestCalendarEditedBesideANewJob(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		calendars := d.Table("calendars")
		d.Clock.Set(day(21, 8))
		defs := holidays("skip", "2026-12-22")
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		more := defs.Jobs[0]
		more.Name = "k"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{more}})
		decideBeside(t, d, ", id, NULL, id FROM "+d.Table("jobs"), func() { d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-22..2026-12-24'") })
		d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-22'")
		ticktest.Run(t, d)
		for _, job := range []string{"j", "k"} {
			if got := ticktest.ToldIn(t, d, job, "02T15"); got != "next 23T06" {
				t.Errorf("%s: %s", job, got)
			}
		}
		ticktest.Run(t, d)
		marked(t, d)
	})
}

// SQL gives a schedule another calendar, which later gets the days that the first one had.
func TestCalendarOfAScheduleMovedBySQL(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		calendars := d.Table("calendars")
		d.Clock.Set(day(21, 8))
		defs := holidays("skip", "2026-12-22")
		defs.Calendars = append(defs.Calendars, store.Calendar{Name: "fr", WorkingDays: "MO-FR", Days: []string{"2026-12-22..2026-12-24"}})
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		nominal(t, d, "next 23T06")
		d.Exec(t, "UPDATE "+d.Table("schedules")+" SET calendar = 'fr'")
		ticktest.Run(t, d) // plans with the days of fr
		ticktest.Run(t, d) // this pass marks the schedule, which had the days of de
		nominal(t, d, "next 25T06")
		marked(t, d)
		d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-22' WHERE name = 'fr'")
		ticktest.Run(t, d)
		nominal(t, d, "next 23T06")
		ticktest.Run(t, d)
		marked(t, d)
	})
}

// Somebody has locked the row of the calendar while a pass plans with days that its schedule does not know. At the end,
// the calendar has the days that the schedule knows.
func TestLockedCalendarEditedBesideANewJob(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		d.Clock.Set(day(21, 8))
		defs := holidays("skip", "2026-12-22")
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		defs.Jobs[0].Name = "k"
		ticktest.Apply(t, d, store.Definitions{Jobs: defs.Jobs})
		var takeBack func()
		decideBeside(t, d, ", id, NULL, id FROM "+d.Table("jobs"), func() {
			d.Exec(t, "UPDATE "+d.Table("calendars")+" SET days = '2026-12-22..2026-12-24'")
			takeBack = editBeside(t, d, "UPDATE "+d.Table("calendars")+" SET days = '2026-12-22'", true)
		})
		takeBack()
		ticktest.Run(t, d)
		if got := ticktest.ToldIn(t, d, "k", "02T15"); got != "next 23T06" {
			t.Error(got)
		}
		ticktest.Run(t, d)
		marked(t, d)
	})
}

// SQL edits a calendar during a pass, a command gives a schedule that version, and SQL undoes the edit before the next
// pass.
func TestScheduleAlteredBesideAnEditOfItsCalendar(t *testing.T) {
	each := func(t *testing.T, d *storetest.DB, locked bool) { // locked: the row of the calendar is locked when the pass ends
		calendars := d.Table("calendars")
		d.Clock.Set(day(21, 8))
		defs := holidays("skip", "2026-12-22")
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		defs.Schedules[0].Rule = "0 8 * * *" // so that the pass looks at schedules
		ticktest.Apply(t, d, defs)
		defs.Schedules[0].Rule = "0 7 * * *"
		var takeBack func()
		decideBeside(t, d, beforeDecisions, func() {
			d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-22..2026-12-24'")
			ticktest.Apply(t, d, store.Definitions{Schedules: defs.Schedules})
			takeBack = editBeside(t, d, "UPDATE "+calendars+" SET days = '2026-12-22'", locked)
		})
		takeBack()
		ticktest.Run(t, d)
		if locked {
			ticktest.Run(t, d) // the pass before has planned the job, and this pass marks the schedule
		}
		nominal(t, d, "next 23T07")
		ticktest.Run(t, d)
		marked(t, d)
	}
	t.Run("free", func(t *testing.T) {
		storetest.Each(t, func(t *testing.T, d *storetest.DB) { each(t, d, false) })
	})
	t.Run("locked", func(t *testing.T) {
		ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) { each(t, d, true) })
	})
}

// editBeside makes an edit by SQL when the function that it returns is called. With locked, the edit is executed at
// once and holds its locks until that call.
func editBeside(t *testing.T, d *storetest.DB, edit string, locked bool) (done func()) {
	t.Helper()
	if !locked {
		return func() { d.Exec(t, edit) }
	}
	tx, err := d.SQL.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}
