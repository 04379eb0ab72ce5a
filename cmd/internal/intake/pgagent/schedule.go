package pgagent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// values returns the numbers that a list sets; the first element stands for low. nil means all.
func values(list []bool, low int) (set []string) {
	for i, on := range list {
		if on {
			set = append(set, strconv.Itoa(low+i))
		}
	}
	if len(set) == len(list) {
		return nil
	}
	return set
}

// schedule makes a rule: a cron text if one has the same meaning, or else an RRULE. If a job has several
// schedules, each rule contains the bounds of its schedule.
func schedule(s *Schedule, several bool, o Options, note func(string, ...any)) (out store.Schedule, reason string) {
	if !s.Enabled {
		return out, "it is not enabled."
	}
	if s.never {
		return out, "it never begins."
	}
	if s.End != nil && s.End.Before(o.Now) {
		return out, "it is over."
	}
	out.Zone = o.Zone
	days := values(s.Monthdays, 1)
	last := slices.Index(days, "32")
	if days == nil && len(s.Monthdays) == 32 && s.Monthdays[31] {
		last = -1 // the list has all days, with the last day: that means each day
	}
	if last >= 0 && len(days) > 1 {
		note("The schedule %s names the last day of the month beside others: pgAgent leaves that day out, here it runs then, too.", s.Name)
	}
	bounded := several && (s.End != nil || s.Start.After(o.Now))
	if len(s.Exceptions) > 0 || days != nil && values(s.Weekdays, 0) != nil || bounded {
		out.Rule = s.rrule(days, bounded, o)
	} else {
		field := func(set []string) string {
			if set == nil {
				return "*"
			}
			return strings.Join(set, ",")
		}
		if last >= 0 {
			days[last] = "L"
		}
		out.Rule = strings.Join([]string{field(values(s.Minutes, 0)), field(values(s.Hours, 0)), field(days),
			field(values(s.Months, 1)), field(values(s.Weekdays, 0))}, " ")
	}
	out.Rule += s.except(o)
	if _, err := rules.Parse(out.Rule, rules.Defaults{Zone: out.Zone}); err != nil {
		return out, fmt.Sprintf("its rule %q cannot be used: %v.", out.Rule, err)
	}
	list, err := intake.Changes(out.Zone, o.Now)
	if err != nil {
		return out, err.Error() + "."
	}
	for _, change := range list {
		if hit, what := intake.Meets(&out, change, o.Now); hit {
			note("Clock change %s, schedule %s: dbjobs %s; pgAgent may leave it out, or run it twice.", change, s.Name, what)
		}
	}
	return out, ""
}

// local returns an instant by the wall clock of the zone.
func local(t time.Time, zone string) string {
	wall, err := time.Parse("2006-01-02 15:04:05", rules.Local(t, zone)[4:23])
	if err != nil {
		return ""
	}
	return wall.Format("20060102T150405")
}

// rrule writes a schedule as a rule in which all parts have to match.
func (s *Schedule) rrule(days []string, bounded bool, o Options) string {
	start := local(s.Start, o.Zone)[:8] + "T000000"
	if bounded {
		start = local(s.Start.Truncate(time.Minute), o.Zone)
	}
	parts := []string{"DTSTART:" + start + "\nRRULE:FREQ=DAILY"}
	add := func(name string, set []string) {
		if set != nil {
			parts = append(parts, name+"="+strings.Join(set, ","))
		}
	}
	add("BYMONTH", values(s.Months, 1))
	for i, day := range days {
		if day == "32" {
			days[i] = "-1"
		}
	}
	add("BYMONTHDAY", days)
	var week []string
	for _, n := range values(s.Weekdays, 0) {
		i, _ := strconv.Atoi(n) // made from numbers, so it has no error
		week = append(week, []string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}[i])
	}
	add("BYDAY", week)
	all := func(set []string, n int) []string {
		for i := 0; set == nil || i > 0 && i < n; i++ {
			set = append(set, strconv.Itoa(i))
		}
		return set
	}
	add("BYHOUR", all(values(s.Hours, 0), 24))
	add("BYMINUTE", all(values(s.Minutes, 0), 60))
	add("BYSECOND", []string{"0"})
	if bounded && s.End != nil {
		add("UNTIL", []string{local(*s.End, o.Zone)})
	}
	return strings.Join(parts, ";")
}

// except returns the lines of a rule for the exceptions that are not past.
func (s *Schedule) except(o Options) (text string) {
	var days, times []string
	today := local(o.Now, o.Zone)[:8]
	for _, x := range s.Exceptions {
		day, clock := "", ""
		if x.Date != nil {
			if day = strings.ReplaceAll(*x.Date, "-", ""); day < today {
				continue
			}
		}
		if x.Time != nil && len(*x.Time) >= 8 {
			if (*x.Time)[5:] != ":00" {
				continue // pgAgent runs nothing at such a time, so it takes nothing away
			}
			clock = strings.ReplaceAll((*x.Time)[:5], ":", "") + "00"
		}
		switch {
		case day != "" && clock != "":
			times = append(times, day+"T"+clock)
		case clock != "":
			text += fmt.Sprintf("\nEXRULE:FREQ=DAILY;BYHOUR=%s;BYMINUTE=%s;BYSECOND=0", clock[:2], clock[2:4])
		case day != "":
			days = append(days, day)
		}
	}
	if len(days) > 0 {
		text += "\nEXDATE;VALUE=DATE:" + strings.Join(days, ",")
	}
	if len(times) > 0 {
		text += "\nEXDATE:" + strings.Join(times, ",")
	}
	return text
}

// bounds sets the start and the end of a job with one schedule to those of the schedule.
func bounds(j *store.Job, s *Schedule, o Options) {
	if s.Start.After(o.Now) {
		j.NotBefore = s.Start.UTC().Truncate(time.Minute) // pgAgent begins with the minute of the start
	}
	if s.End != nil {
		j.NotAfter = s.End.UTC().Truncate(time.Second)
	}
}
