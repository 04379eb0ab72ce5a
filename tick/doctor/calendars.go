package doctor

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/rules"
)

// calendars looks for calendars whose single days end soon.
func (e *exam) calendars(ctx context.Context) error {
	list, err := e.s.Calendars(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		c := &list[i]
		if c.Schedules == 0 || c.Fault != "" {
			continue
		}
		read, err := rules.ParseCalendar(c.Name, c.WorkingDays, c.Text())
		if err != nil {
			e.find("holidays", Warning, "", "put the days right, or apply the file that has the calendar",
				"the calendar %s cannot be read, so a pass that plans its jobs parks them: %v", c.Name, err)
			continue
		}
		if last, soon := read.EndsSoon(e.now); soon {
			e.find("holidays", Note, "", "add the days of the next year; write a day that comes each year as MM-DD",
				"the last day of the calendar %s is %s, and schedules use it: %d", c.Name, last.Format(time.DateOnly), c.Schedules)
		}
	}
	return nil
}
