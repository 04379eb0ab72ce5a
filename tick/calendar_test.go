package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/simulate"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// holidays are a schedule each day at 06:00 that uses the calendar de, and its job j.
func holidays(on string, days ...string) store.Definitions {
	return store.Definitions{
		Calendars: []store.Calendar{{Name: "de", WorkingDays: "MO-FR", Days: days}},
		Schedules: []store.Schedule{{Name: "daily", Rule: "0 6 * * *", Calendar: "de", OnHoliday: on}},
		Jobs: []store.Job{
			{Name: "j", Schedules: []string{"daily"}, Missed: store.MissedAll, MissedLimit: 100, Overlap: store.OverlapWaitAll, Steps: []store.Step{ticktest.Nop("")}},
		},
	}
}

// day is a time of December 2026: the 24th is a Thursday.
func day(n, hour int) time.Time { return time.Date(2026, 12, n, hour, 0, 0, 0, time.UTC) }

// eachDay makes passes at 05:00 and 07:00 of each day in between.
func eachDay(t *testing.T, d *storetest.DB, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		for _, hour := range []int{5, 7} {
			d.Clock.Set(day(n, hour))
			ticktest.Run(t, d)
		}
	}
}

func nominal(t *testing.T, d *storetest.DB, want string) {
	t.Helper()
	got := strings.ReplaceAll(ticktest.ToldIn(t, d, "j", "02T15"), " succeeded", "")
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// shows compares three texts about the coming holidays: of the job, of its schedule, and in the list of all jobs.
func shows(t *testing.T, d *storetest.DB, want string) {
	t.Helper()
	status, err := d.Job(t.Context(), "j")
	if err != nil {
		t.Fatal(err)
	}
	f, err := tick.Forecast(t.Context(), d.Store, &status, 5)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Schedule(t.Context(), "daily")
	if err != nil {
		t.Fatal(err)
	}
	of, err := tick.Holidays(t.Context(), d.Store, &c, 5)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := d.Jobs(t.Context(), store.JobFilter{})
	if err != nil {
		t.Fatal(err)
	}
	u, err := tick.Upcoming(t.Context(), d.Store, jobs, d.Clock.Now(), d.Clock.Now().AddDate(0, 0, 30), 50)
	if err != nil {
		t.Fatal(err)
	}
	var all []rules.Holiday
	for _, h := range u.Holidays {
		all = append(all, h.Holiday)
	}
	for _, list := range [][]rules.Holiday{f.Holidays, of, all} {
		got := ""
		for i := range list {
			got += list[i].Text()
		}
		if got != want {
			t.Errorf("the holidays are %q, want %q", got, want)
		}
	}
}

// A job runs on working days only, or on a working day instead. The times that the calendar removes are no gaps.
func TestCalendarSkipsAndMoves(t *testing.T) {
	for on, want := range map[string]string{
		"skip": "22T06; 23T06; 24T06; 28T06; 29T06; next 30T06",
		"next": "22T06; 23T06; 24T06; 28T06; 29T06; next 30T06",
	} {
		t.Run(on, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				d.Clock.Set(day(21, 8))
				ticktest.Apply(t, d, holidays(on, "2026-12-25 Christmas Day"))
				shows(t, d, map[string]string{"skip": "2026-12-25 skipped: Christmas Day", "next": "2026-12-28 instead of 2026-12-25: Christmas Day"}[on])
				eachDay(t, d, 22, 29)
				nominal(t, d, want)
				shows(t, d, "")
			})
		})
	}
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) { // the last working day of the month: the 31st is a holiday
		d.Clock.Set(day(21, 8))
		defs := holidays("previous", "2026-12-31 New Year's Eve")
		defs.Schedules[0].Rule = "monthly on the last weekday at 6:00"
		ticktest.Apply(t, d, defs)
		eachDay(t, d, 29, 31)
		nominal(t, d, "30T06; next 29T06") // January ends on a Sunday
	})
}

// An edit of a calendar reaches the plans that were made before it: at once by apply, and in the next pass by plain
// SQL. Earlier decisions stay, and a due time that is still on a working day runs.
func TestCalendarEdited(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		calendars := d.Table("calendars")
		d.Clock.Set(day(21, 8))
		ticktest.Apply(t, d, holidays("next", "2026-12-25 Christmas Day"))
		eachDay(t, d, 22, 22)
		d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-23..2026-12-25 closed'")
		eachDay(t, d, 23, 25)
		nominal(t, d, "22T06; next 28T06")
		d.Exec(t, "UPDATE "+calendars+" SET days = ''") // the day is not over, but 06:00 is
		d.Clock.Set(day(25, 8))
		ticktest.Run(t, d)
		nominal(t, d, "22T06; next 28T06")
		ticktest.Apply(t, d, holidays("next", "2026-12-28 closed"))
		d.Clock.Set(day(25, 9))
		ticktest.Run(t, d)
		nominal(t, d, "22T06; next 29T06")
		// 06:00 of the 29th is due when the calendar is edited, and stays.
		d.Clock.Set(day(29, 7))
		d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-28\n2026-12-30'")
		ticktest.Run(t, d)
		nominal(t, d, "22T06; 29T06; next 31T06")
		// Here it is due, and the edit removes it.
		d.Clock.Set(day(31, 7))
		d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-31'")
		ticktest.Run(t, d)
		nominal(t, d, "22T06; 29T06; edited (29T07:00, 31T07:00]; next 01T06")
	})
}

// A calendar that is missing or unreadable parks the jobs that use it. The jobs go on when the calendar is repaired.
func TestCalendarMissingOrUnreadable(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		calendars := d.Table("calendars")
		d.Clock.Set(day(21, 8))
		ticktest.Apply(t, d, holidays("skip"))
		ticktest.Run(t, d)
		if err := d.RemoveCalendar(t.Context(), "de", store.Author{}); err == nil || !strings.Contains(err.Error(), "used by schedule daily") {
			t.Errorf("a calendar that is used was removed: %v", err)
		}
		parked := func(want string) {
			t.Helper()
			ticktest.Run(t, d)
			status, err := d.Job(t.Context(), "j")
			if err != nil {
				t.Fatal(err)
			}
			if want == "" != (status.Parked == "") || !strings.Contains(status.Parked, want) {
				t.Errorf("parked: %q; want %q", status.Parked, want)
			}
		}
		d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-25\n24.12.2026'")
		parked(`calendar de: line 2: found "24.12.2026"`)
		d.Exec(t, "UPDATE "+calendars+" SET days = '2026-12-25'")
		parked("")
		d.Exec(t, "DELETE FROM "+calendars)
		d.Clock.Set(day(21, 9)) // deleted rows are looked for once an hour
		parked(`there is no calendar "de"`)
		d.Clock.Set(day(22, 9))
		parked(`there is no calendar "de"`)
		nominal(t, d, "next 01T00") // nothing ran
		d.Exec(t, "INSERT INTO "+calendars+" (name, working_days, days) VALUES ('de', 'MO-FR', '2026-12-23')")
		parked("")
		nominal(t, d, "next 24T06")
		d.Exec(t, "UPDATE "+d.Table("schedules")+" SET calendar = 'fr'")
		parked(`there is no calendar "fr"`)
		parked(`there is no calendar "fr"`)
		d.Exec(t, "INSERT INTO "+calendars+" (name, days) VALUES ('fr', '2026-12-24')")
		parked("")
		nominal(t, d, "next 23T06")
	})
}

// Times are open when a job comes to miss its calendar: a pause has kept them open, or they came just before. They are a gap, as
// after each other edit.
func TestCalendarMissingLeavesNoTimeOpen(t *testing.T) {
	for name, c := range map[string]struct {
		lost, found string // statements
		paused      bool
	}{
		"another one is named, in a pause":      {"UPDATE @schedules SET calendar = 'fr'", "UPDATE @schedules SET calendar = 'de'", true},
		"it is deleted, in a pause":             {"DELETE FROM @calendars", "INSERT INTO @calendars (name, working_days, days) VALUES ('de', 'MO-FR', '')", true},
		"another one is named, after an outage": {"UPDATE @schedules SET calendar = 'fr'", "INSERT INTO @calendars (name, days) VALUES ('fr', '')", false},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				sql := strings.NewReplacer("@schedules", d.Table("schedules"), "@calendars", d.Table("calendars"))
				d.Clock.Set(day(21, 8))
				ticktest.Apply(t, d, holidays("skip"))
				ticktest.Run(t, d)
				j := store.Subject{Scope: store.ScopeJob, Name: "j"}
				if c.paused {
					ticktest.Pause(t, d, j, time.Time{})
					eachDay(t, d, 22, 22)
				}
				d.Clock.Set(day(23, 9))
				d.Exec(t, sql.Replace(c.lost))
				ticktest.Run(t, d)
				d.Clock.Set(day(23, 10))
				ticktest.Run(t, d)
				d.Exec(t, sql.Replace(c.found))
				ticktest.Run(t, d)
				if c.paused {
					ticktest.Resume(t, d, j, true)
				}
				eachDay(t, d, 24, 24)
				nominal(t, d, "24T06; edited (21T08:00, 23T09:00]; next 25T06")
			})
		})
	}
}

// While somebody holds a schedule of an edited calendar, passes leave that calendar to a later pass. Everything else
// goes on: other jobs run, and other calendars are seen.
func TestCalendarWhoseScheduleIsLocked(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		d.Clock.Set(day(21, 8))
		defs := holidays("skip", "2026-12-25")
		defs.Calendars = append(defs.Calendars, store.Calendar{Name: "fr"})
		defs.Schedules = append(defs.Schedules, store.Schedule{Name: "french", Rule: "0 6 * * *", Calendar: "fr"})
		defs.Jobs = append(defs.Jobs, store.Job{Name: "k", Schedules: []string{"french"}, Steps: []store.Step{ticktest.Nop("")}})
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Exec(t, "UPDATE "+d.Table("calendars")+" SET days = '2026-12-22'")
		tx, err := d.SQL.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.Exec("UPDATE " + d.Table("schedules") + " SET description = 'mine' WHERE name = 'daily'"); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d) // ends without an error
		if got := ticktest.ToldIn(t, d, "k", "02T15"); got != "next 23T06" {
			t.Errorf("the other calendar: %s", got)
		}
		nominal(t, d, "next 22T06")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		nominal(t, d, "next 23T06")
	})
}

// A calendar that takes the name of another one, by plain SQL, is noticed like an edit of the days.
func TestCalendarThatTakesTheNameOfAnother(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Clock.Set(day(21, 8))
		defs := holidays("skip", "2026-12-25")
		defs.Calendars = append(defs.Calendars, store.Calendar{Name: "draft", WorkingDays: "MO-FR", Days: []string{"2026-12-22"}})
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		nominal(t, d, "next 22T06")
		d.Exec(t, "DELETE FROM "+d.Table("calendars")+" WHERE name = 'de'")
		d.Exec(t, "UPDATE "+d.Table("calendars")+" SET name = 'de'")
		ticktest.Run(t, d)
		nominal(t, d, "next 23T06")
	})
}

// SQL makes a past day a working day, after an outage in which another day was due. The due day runs, and nothing runs
// for the past day.
func TestCalendarOpensADayThatIsOver(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Clock.Set(day(21, 8))
		ticktest.Apply(t, d, holidays("skip", "2026-12-22"))
		ticktest.Run(t, d)
		d.Clock.Set(day(23, 7))
		d.Exec(t, "UPDATE "+d.Table("calendars")+" SET days = ''")
		ticktest.Run(t, d)
		nominal(t, d, "23T06; next 24T06")
	})
}

// A command makes a day a working day before its time comes, and no pass is made until that time. The time runs,
// because the command records when it was made.
func TestCalendarOpensADayInTime(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Clock.Set(day(23, 8))
		ticktest.Apply(t, d, holidays("skip", "2026-12-24"))
		ticktest.Run(t, d)
		d.Clock.Set(day(24, 5))
		ticktest.Apply(t, d, holidays("skip"))
		d.Clock.Set(day(24, 7))
		ticktest.Run(t, d)
		nominal(t, d, "24T06; next 25T06")
	})
}

// Edits by SQL count for commands before a pass has seen them: commands show, skip and simulate the same times as the
// next pass plans.
func TestCalendarEditedCountsBeforeAPass(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Clock.Set(day(21, 8))
		ticktest.Apply(t, d, holidays("skip"))
		ticktest.Run(t, d)
		d.Exec(t, "UPDATE "+d.Table("calendars")+" SET days = '2026-12-22 closed'")
		shows(t, d, "2026-12-22 skipped: closed")
		list, err := tick.SkipNext(t.Context(), d.Store, "j", "", 1, store.Author{})
		if err != nil || len(list) != 1 || !list[0].At.Equal(day(23, 6)) {
			t.Errorf("skipped are %v: %v", list, err)
		}
		in, _, err := simulate.Read(t.Context(), d.Store, d.Clock.Now(), d.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(t.Context(), in, simulate.Options{From: d.Clock.Now(), To: day(25, 8), Keep: 100})
		if err != nil || r.Runs != 2 || r.NotRun != 1 {
			t.Errorf("simulated are %d runs and %d times that do not run: %v", r.Runs, r.NotRun, err)
		}
		eachDay(t, d, 22, 25)
		nominal(t, d, "24T06; 25T06; skipped (23T05:59.999999, 23T06:00]; next 28T06")
	})
}

// An edit of days before the job's first time does not change the due times. The times in a pause stay open for the
// user who ends the pause.
func TestCalendarEditedBeforeTheFirstTime(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Clock.Set(day(21, 8))
		defs, edited := holidays("skip", "2026-12-22"), holidays("skip")
		defs.Jobs[0].NotBefore, edited.Jobs[0].NotBefore = day(24, 0), day(24, 0)
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		subject := store.Subject{Scope: store.ScopeJob, Name: "j"}
		ticktest.Pause(t, d, subject, time.Time{})
		d.Clock.Set(day(23, 8))
		ticktest.Apply(t, d, edited)
		d.Clock.Set(day(24, 7))
		ticktest.Run(t, d)
		ticktest.Resume(t, d, subject, true)
		ticktest.Run(t, d)
		nominal(t, d, "24T06; next 25T06")
	})
}

// SQL moves a schedule to a calendar, and misspells its rule. The job is parked once, and the due times of its other
// rule wait for the repair.
func TestCalendarOfAMisspeltRule(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Clock.Set(day(21, 8))
		defs := holidays("skip", "2026-12-25")
		defs.Schedules = append(defs.Schedules, store.Schedule{Name: "other", Rule: "0 4 * * *"})
		defs.Jobs[0].Schedules = []string{"daily", "other"}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = 'evry day', calendar = 'de' WHERE name = 'other'")
		d.Clock.Set(day(22, 3))
		ticktest.Run(t, d)
		d.Clock.Set(day(22, 7))
		ticktest.Run(t, d)
		nominal(t, d, "next 01T00") // none
		d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = '0 4 * * *' WHERE name = 'other'")
		d.Clock.Set(day(22, 8))
		ticktest.Run(t, d)
		nominal(t, d, "22T06; next 23T04")
	})
}
