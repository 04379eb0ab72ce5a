package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// Calendars prints the table of calendar list.
func Calendars(w io.Writer, list []store.Calendar, now time.Time) error {
	t := newTable(w, "CALENDAR", "WORKING DAYS", "DAYS", "LAST DAY", "SCHEDULES", "PROBLEM")
	for i := range list {
		c := &list[i]
		last, problem := "", Outdated(c, now)
		read, err := rules.ParseCalendar(c.Name, c.WorkingDays, c.Text())
		if err == nil {
			if at, ok := read.LastDay(); ok {
				last = at.Format(time.DateOnly)
			}
		}
		t.row(c.Name, c.WorkingDays, count(int64(len(c.Days))), last, count(int64(c.Schedules)), problem)
	}
	return t.flush()
}

// Calendar prints the facts of calendar show, and the days.
func Calendar(w io.Writer, c store.Calendar, now time.Time) error {
	f := newFacts(w)
	f.add("calendar", c.Name)
	f.add("description", c.Description)
	f.add("working days", c.WorkingDays)
	f.add("schedules", count(int64(c.Schedules)))
	f.add("manifest", c.Manifest)
	f.add("problem", Outdated(&c, now))
	if err := f.flush(); err != nil {
		return err
	}
	if len(c.Days) == 0 {
		return nil
	}
	_, err := io.WriteString(w, "\n"+Lines(strings.Join(c.Days, "\n")+"\n"))
	return err
}

// Outdated returns what is wrong with the days of a calendar: they cannot be read, or they end soon and need new
// ones after them. An empty text means that nothing is wrong.
func Outdated(c *store.Calendar, now time.Time) string {
	read, err := rules.ParseCalendar(c.Name, c.WorkingDays, c.Text())
	if err != nil {
		return err.Error()
	}
	last, soon := read.EndsSoon(now)
	if !soon {
		return ""
	}
	return fmt.Sprintf("its last day is %s; add the days after that", last.Format(time.DateOnly))
}

// needsDays says what is wrong with a calendar that schedules use; empty: nothing, or none does.
func needsDays(c *store.Calendar, now time.Time) string {
	if why := Outdated(c, now); why != "" && c.Schedules > 0 {
		return "calendar " + c.Name + ": " + why
	}
	return ""
}
