package intake

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/dbjobs/dbjobs/rules"
)

// Cron has the five fields of a cron line as Vixie's cron and its descendants (Debian, cronie, the BSDs) read
// them: a set of values for each, and whether the text of the field begins with a star. Random values, as in 0~59,
// are not in the sets.
type Cron struct {
	Minute, Hour, Day, Month, Weekday               uint64
	MinuteStar, HourStar, DayStar, WeekdayStar, Any bool // Any: a field has a random value

	LastDay bool // the last day of the month is included, too; only pg_cron has a sign for it
}

type cronField struct {
	name      string
	low, high int
	names     []string
}

var cronFields = [5]cronField{
	{name: "minute", high: 59},
	{name: "hour", high: 23},
	{name: "day of month", low: 1, high: 31},
	{name: "month", low: 1, high: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of week", high: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// ReadCron reads five fields. The error names the field that cron does not read.
func ReadCron(fields [5]string) (c Cron, err error) {
	var sets [5]uint64
	for i, text := range fields {
		if sets[i], err = cronFields[i].read(text, &c.Any); err != nil {
			return c, err
		}
	}
	c.Minute, c.Hour, c.Day, c.Month, c.Weekday = sets[0], sets[1], sets[2], sets[3], sets[4]
	if c.Weekday>>7&1 != 0 {
		c.Weekday = c.Weekday&^(1<<7) | 1
	}
	star := func(i int) bool { return strings.HasPrefix(fields[i], "*") }
	c.MinuteStar, c.HourStar, c.DayStar, c.WeekdayStar = star(0), star(1), star(2), star(4)
	return c, nil
}

func (f *cronField) read(text string, random *bool) (set uint64, err error) {
	for item := range strings.SplitSeq(text, ",") {
		part, err := f.item(item, random)
		if err != nil {
			return 0, fmt.Errorf("the %s is %.40q, which is no form that cron defines: %w", f.name, text, err)
		}
		set |= part
	}
	return set, nil
}

// item reads *, a, a-b, ~, a~b, and */n, a-b/n, a~b/n. A step without a range, as in 5/10, is an error in cron,
// too.
func (f *cronField) item(item string, random *bool) (set uint64, err error) {
	head, stepText, stepped := strings.Cut(item, "/")
	lo, hi, step, ranged := f.low, f.high, 1, true
	if f.high == 7 {
		hi = 6 // a star means each day once
	}
	from, to, dash := strings.Cut(head, "-")
	first, last, tilde := strings.Cut(head, "~")
	switch {
	case head == "*":
	case tilde:
		*random = true
		if first != "" {
			lo, err = f.number(first)
		}
		if last != "" && err == nil {
			hi, err = f.number(last)
		}
	case dash:
		if lo, err = f.number(from); err == nil {
			hi, err = f.number(to)
		}
		if f.high == 7 && hi == 0 && lo > 0 {
			hi = 7 // FRI-SUN
		}
	default:
		lo, err = f.number(head)
		hi, ranged = lo, false
	}
	if err != nil {
		return 0, err
	}
	if stepped {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > 1000 || !ranged {
			return 0, fmt.Errorf("a step stands after * or a range, and is 1 or more")
		}
	}
	if lo > hi {
		return 0, fmt.Errorf("a range runs upward")
	}
	for n := lo; n <= hi; n += step {
		set |= 1 << n
	}
	return set, nil
}

func (f *cronField) number(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.low + i, nil
		}
	}
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || int(n) < f.low || int(n) > f.high {
		return 0, fmt.Errorf("want %d-%d", f.low, f.high)
	}
	return int(n), nil
}

// Rule writes the fields as a cron text of dbjobs with the same meaning. Fields that dbjobs reads stay as they
// are. There is no such text if dbjobs refuses a random value.
func (c *Cron) Rule(fields [5]string) (string, error) {
	sets := [5]uint64{c.Minute, c.Hour, c.Day, c.Month, c.Weekday}
	for i := range fields {
		probe := [5]string{"*", "*", "*", "*", "*"}
		fields[i] = completed(fields[i], i)
		probe[i] = fields[i]
		_, err := rules.Parse(strings.Join(probe[:], " "), rules.Defaults{Seed: "seed"})
		if err == nil {
			continue
		}
		if strings.Contains(fields[i], "~") {
			return "", fmt.Errorf("dbjobs does not read %.40q: %w", fields[i], err)
		}
		if (i == 2 || i == 4) && strings.HasPrefix(fields[i], "*") {
			fields[i] = cronFields[i].starred(fields[i], sets[i])
		} else {
			fields[i] = listOf(sets[i])
		}
	}
	text := strings.Join(fields[:], " ")
	_, err := rules.Parse(text, rules.Defaults{Seed: "seed"})
	return text, err
}

// starred writes a set with the star that its text begins with, because a star in a day field means AND. A step
// beyond the field is the same as the widest step: both leave the first value only.
func (f *cronField) starred(text string, set uint64) string {
	first, _, _ := strings.Cut(text, ",")
	if _, step, stepped := strings.Cut(first, "/"); stepped {
		if n, err := strconv.Atoi(step); err == nil && n > f.high {
			first = fmt.Sprintf("*/%d", f.high)
		}
	}
	var random bool
	covered, err := f.item(first, &random)
	if rest := set &^ covered; rest != 0 && err == nil {
		return first + "," + listOf(rest)
	}
	return first
}

// completed adds the bounds that a random range leaves out.
func completed(text string, field int) string {
	f := &cronFields[field]
	items := strings.Split(text, ",")
	for i, item := range items {
		head, step, stepped := strings.Cut(item, "/")
		first, last, tilde := strings.Cut(head, "~")
		if !tilde || first == "" && last == "" {
			continue
		}
		if first == "" {
			first = strconv.Itoa(f.low)
		}
		if last == "" {
			last = strconv.Itoa(min(f.high, f.low+59))
		}
		if items[i] = first + "~" + last; stepped {
			items[i] += "/" + step
		}
	}
	return strings.Join(items, ",")
}

// listOf writes a set as a list of numbers.
func listOf(set uint64) string {
	var list []string
	for ; set != 0; set &= set - 1 {
		list = append(list, strconv.Itoa(bits.TrailingZeros64(set)))
	}
	return strings.Join(list, ",")
}
