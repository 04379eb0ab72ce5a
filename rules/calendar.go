package rules

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Calendar says which days are holidays: days on which nothing is done. It is
// immutable and safe for concurrent use.
type Calendar struct {
	Name   string
	rest   uint8          // weekdays that are no working days, from Monday
	days   []int          // single days that are no working days, sorted
	yearly []int          // month*100+day, of each year, sorted
	names  map[int]string // of single days
	titles map[int]string // of days of each year
}

// maxHolidays limits the single days of a calendar, so that the text of a rule
// with that calendar can be stored and read back.
const maxHolidays = 4000

// maxListed limits the days that are read for a calendar, where some are listed
// several times: a short text of long ranges takes little memory.
const maxListed = 10 * maxHolidays

// farthest is how many days in a row may be no working days.
const farthest = 3660

// ParseCalendar reads a calendar. workingDays lists the weekdays on which work is
// done, as MO-FR or SU,MO,TU; an empty text means all weekdays. days has a line
// for each holiday. The name of the holiday may follow on the same line:
//
//	2026-12-25 Christmas Day
//	2026-12-24..2026-12-31
//	12-25 of each year
//
// Empty lines, and the text after a #, are ignored.
func ParseCalendar(name, workingDays, days string) (*Calendar, error) {
	c := &Calendar{Name: name, names: map[int]string{}, titles: map[int]string{}}
	work, err := parseWeekdays(workingDays)
	if err != nil {
		return nil, err
	}
	c.rest = ^work & everyDay
	lines := bufio.NewScanner(strings.NewReader(days))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "\ufeff"), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		err := c.add(text)
		if err == nil {
			err = c.bounded()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return c, c.settle()
}

// bounded refuses a list of days that is too long to be kept.
func (c *Calendar) bounded() error {
	if max(len(c.days), len(c.yearly)) > maxListed {
		return fmt.Errorf("more than %d days are listed, some of them several times; a calendar has at most %d", maxListed, maxHolidays)
	}
	return nil
}

// settle sorts the days, and refuses a calendar that leaves no working day.
func (c *Calendar) settle() error {
	slices.Sort(c.days)
	c.days = slices.Compact(c.days)
	slices.Sort(c.yearly)
	c.yearly = slices.Compact(c.yearly)
	if len(c.days) > maxHolidays {
		return fmt.Errorf("%d days; a calendar has at most %d; write a day of each year as MM-DD, and weekdays as working_days", len(c.days), maxHolidays)
	}
	if c.rest == everyDay || len(c.yearly) > 360 {
		return fmt.Errorf("no working day is left")
	}
	for i, day := range c.days {
		if i > 0 && c.days[i-1] == day-1 {
			continue // this row was examined from its first day
		}
		if _, ok := c.working(day, 1); !ok {
			return fmt.Errorf("from %s on, more than ten years have no working day", dateText(day))
		}
	}
	return nil
}

const everyDay = 1<<7 - 1

// parseWeekdays reads MO-FR, or a list as SU,MO-WE.
func parseWeekdays(text string) (set uint8, err error) {
	if strings.TrimSpace(text) == "" {
		return everyDay, nil
	}
	for part := range strings.SplitSeq(strings.ToUpper(text), ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		first, last := slices.Index(weekdayNames[:], strings.TrimSpace(from)), slices.Index(weekdayNames[:], strings.TrimSpace(to))
		if !ranged {
			last = first
		}
		if first < 0 || last < 0 {
			return 0, fmt.Errorf("working_days: found %q, want weekdays as MO-FR or SU,MO,TU,WE,TH", strings.TrimSpace(part))
		}
		for day := first; ; day = (day + 1) % 7 {
			if set |= 1 << day; day == last {
				break
			}
		}
	}
	return set, nil
}

const calendarDay = "a day is YYYY-MM-DD, or MM-DD for each year; several are FIRST..LAST; a name may follow"

// add reads one line.
func (c *Calendar) add(text string) error {
	word, name, _ := strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
	name = strings.TrimSpace(name)
	first, last, ranged := strings.Cut(word, "..")
	if !ranged {
		last = first
	}
	if len(first) == len("12-25") {
		from, ok1 := monthDay(first)
		to, ok2 := monthDay(last)
		if !ok1 || !ok2 || from > to {
			return fmt.Errorf("found %q: %s", word, calendarDay)
		}
		for ; from <= to; from++ {
			if month, day := from/100, from%100; day >= 1 && day <= daysInMonth(2000, month) {
				c.yearly, c.titles[from] = append(c.yearly, from), name
			}
		}
		return nil
	}
	from, rest, ok1 := readWall(first)
	to, more, ok2 := readWall(last)
	if !ok1 || !ok2 || rest != "" || more != "" || len(first) != 10 || len(last) != 10 || from > to {
		return fmt.Errorf("found %q: %s", word, calendarDay)
	}
	if to-from > farthest*secondsPerDay {
		return fmt.Errorf("%s is more than ten years", word)
	}
	for ; from <= to; from += secondsPerDay {
		day, _ := splitCivil(from)
		c.days, c.names[day] = append(c.days, day), name
	}
	return nil
}

// monthDay reads MM-DD as month*100+day.
func monthDay(text string) (int, bool) {
	if len(text) != 5 || text[2] != '-' {
		return 0, false
	}
	month, ok1 := digitsOf(text[:2])
	day, ok2 := digitsOf(text[3:])
	return month*100 + day, ok1 && ok2 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(2000, month)
}

// works reports whether a day is a working day.
func (c *Calendar) works(day int) bool {
	if c.rest>>weekdayOf(day)&1 != 0 {
		return false
	}
	if _, found := slices.BinarySearch(c.days, day); found {
		return false
	}
	if len(c.yearly) == 0 {
		return true
	}
	_, month, mday := dateOf(day)
	_, found := slices.BinarySearch(c.yearly, month*100+mday)
	return !found
}

// named reports whether a day is listed as a holiday, and is not one only because
// of its weekday.
func (c *Calendar) named(day int) bool {
	plain := *c
	plain.rest = 0
	return !plain.works(day)
}

// working returns the first working day at or after a day (step 1), or the last
// one at or before it (step -1). It returns false if none is near.
func (c *Calendar) working(day, step int) (int, bool) {
	for range farthest {
		if c.works(day) {
			return day, true
		}
		day += step
	}
	return 0, false
}

// Holiday reports whether the day of a date is no working day, and why: it
// returns the name of the day, or that of the weekday.
func (c *Calendar) Holiday(date time.Time) (name string, is bool) {
	day := dayOf(date.Year(), int(date.Month()), date.Day())
	if c.works(day) {
		return "", false
	}
	_, month, mday := dateOf(day)
	if name = c.names[day]; name == "" {
		name = c.titles[month*100+mday]
	}
	if name == "" && c.rest>>weekdayOf(day)&1 != 0 {
		name = weekdayName(weekdayOf(day))
	}
	return name, true
}

// LastDay returns the last single day, which no year repeats. It returns false if
// there is none.
func (c *Calendar) LastDay() (time.Time, bool) {
	if len(c.days) == 0 {
		return time.Time{}, false
	}
	return time.Unix(joinCivil(c.days[len(c.days)-1], 0), 0).UTC(), true
}

// renewal is how long before its last day a calendar needs new days.
const renewal = 60 * 24 * time.Hour

// EndsSoon returns the last single day if it is near or over: after it, jobs run on holidays that nobody has entered. Days of
// each year never end.
func (c *Calendar) EndsSoon(now time.Time) (last time.Time, soon bool) {
	last, single := c.LastDay()
	return last, single && !last.After(now.Add(renewal))
}

// weekdays writes the working days as an RRULE lists them.
func (c *Calendar) weekdays() string {
	var list []string
	for day, name := range weekdayNames {
		if c.rest>>day&1 == 0 {
			list = append(list, name)
		}
	}
	return strings.Join(list, ",")
}

// text writes the days for a rule's canonical text: 20261225, days in a row as
// 20261224-20261231, and days of each year as 1225.
func (c *Calendar) text() string {
	var b strings.Builder
	put := func(s string) {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(s)
	}
	for i := 0; i < len(c.days); {
		j := i + 1
		for j < len(c.days) && c.days[j] == c.days[j-1]+1 {
			j++
		}
		if put(dateText(c.days[i])); j > i+1 {
			b.WriteString("-" + dateText(c.days[j-1]))
		}
		i = j
	}
	for _, n := range c.yearly {
		put(fmt.Sprintf("%04d", n))
	}
	return b.String()
}

// dateText writes a day as 20261225.
func dateText(day int) string {
	year, month, mday := dateOf(day)
	return fmt.Sprintf("%04d%02d%02d", year, month, mday)
}

// readText reads a text that text wrote.
func (c *Calendar) readText(value string) error {
	for part := range strings.SplitSeq(value, ",") {
		if len(part) == 4 {
			n, err := strconv.Atoi(part)
			if _, ok := monthDay(part[:2] + "-" + part[2:]); err != nil || !ok {
				return fmt.Errorf("%q is no day of a year", part)
			}
			c.yearly = append(c.yearly, n)
			continue
		}
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err := readStamp("rrule", 0, first)
		if err != nil {
			return err
		}
		to, err := readStamp("rrule", 0, last)
		if err != nil {
			return err
		}
		if !from.date || !to.date || to.civil < from.civil || to.civil-from.civil > maxHolidays*secondsPerDay {
			return fmt.Errorf("%q are no days", part)
		}
		for at := from.civil; at <= to.civil; at += secondsPerDay {
			day, _ := splitCivil(at)
			c.days = append(c.days, day)
		}
		if err := c.bounded(); err != nil {
			return err
		}
	}
	return nil
}
