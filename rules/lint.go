package rules

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Warning is something in a rule that works, but that its author may not mean.
type Warning struct {
	Code    string `json:"code"` // one of the words below, for filters
	Message string `json:"message"`
}

// The codes of warnings.
const (
	WarnExhausted   = "exhausted"    // no occurrence is left after Now
	WarnDense       = "dense"        // fires more often in a day than MaxPerDay
	WarnMonthEnd    = "month-end"    // names only days that some months do not have
	WarnClockChange = "clock-change" // one of the next two clock changes leaves out or repeats its time, and the author did not choose what happens then
	WarnPastStart   = "past-start"   // starts before Now
	WarnUnaligned   = "unaligned"    // DTSTART is not itself an occurrence
	WarnUnstarted   = "unstarted"    // an RRULE without DTSTART takes parts of its times, or counts, from the moment at which its schedule was made
	WarnEitherDay   = "either-day"   // cron: both day fields are restricted, and a day that matches one of them is enough
	WarnBothDays    = "both-days"    // cron: a day must match both day fields here; other crons accept a match of one
	WarnWeekdayOne  = "weekday-one"  // cron: numbers of weekdays that Quartz counts from Sunday as 1
	WarnUnevenStep  = "uneven-step"  // cron: a step that does not divide its field
	WarnLoneStep    = "lone-step"    // cron: a step that reaches no second value
	WarnCollision   = "collision"    // many other rules fire at the same instant
)

// LintOptions says what Lint compares a rule with.
type LintOptions struct {
	Now       time.Time
	MaxPerDay int     // how many times in the 24 hours after Now need no warning; 0 is 1440, one each minute
	Others    []*Rule // rules of other jobs
	MaxShared int     // how many others may share the next occurrence; 0 is 10

	// NonexistentChosen and AmbiguousChosen say that the author chose what
	// happens to wall times that a clock change leaves out, or repeats. Then Lint
	// does not warn of such a change. They are not needed for a choice other than
	// the default, nor for one in the text of the rule.
	NonexistentChosen, AmbiguousChosen bool
}

// Lint warns of what a rule's author may not have meant. The error wraps
// ErrUndecided.
func Lint(r *Rule, o LintOptions) ([]Warning, error) {
	l := linter{rule: r, options: o}
	if l.options.MaxPerDay == 0 {
		l.options.MaxPerDay = 24 * 60
	}
	if l.options.MaxShared == 0 {
		l.options.MaxShared = 10
	}
	for _, check := range []func() error{l.frequency, l.monthEnds, l.clockChanges, l.start, l.cron, l.collisions} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return l.list, nil
}

type linter struct {
	rule    *Rule
	options LintOptions
	list    []Warning
}

func (l *linter) warn(code, format string, args ...any) {
	l.list = append(l.list, Warning{code, fmt.Sprintf(format, args...)})
}

// frequency warns of a rule that has ended, or that fires very often. A rule with too many times to count gets the other warnings, too.
func (l *linter) frequency() error {
	now := l.options.Now
	next, err := l.rule.Next(now)
	if err != nil {
		return err
	}
	if next.IsZero() {
		l.warn(WarnExhausted, "no occurrence is left after %s", now.UTC().Format(time.RFC3339))
		return nil
	}
	b := budget{countSteps}
	switch n, most := l.rule.count(floor(now)+1, floor(now.Add(24*time.Hour)), &b), int64(l.options.MaxPerDay); {
	case n > most && b.over(): // n is as far as it came
		l.warn(WarnDense, "fires more than %d times in the next 24 hours", most)
	case n > most:
		l.warn(WarnDense, "fires %d times in the next 24 hours, more than %d", n, most)
	}
	return nil
}

// monthEnds warns of a rule that names no day but the 29th to 31st, which some months do not have.
func (l *linter) monthEnds() error {
	for i := range l.rule.includes {
		c := &l.rule.includes[i]
		day, _ := splitCivil(l.rule.start)
		_, month, mday := dateOf(day)
		f := dayFilter{months: c.months, mdays: c.mdays}
		if !c.namesDays() && c.freq >= monthly {
			if f.mdays = 1 << mday; c.freq == yearly && f.months == 0 {
				f.months = 1 << month
			}
		}
		if c.skip != skipOmit || c.nmdays != 0 || c.wdays != 0 || f.mdays == 0 || f.mdays&(1<<29-1) != 0 {
			continue
		}
		lacking, reached := 0, f.owners()
		if c.freq == monthly && c.interval > 1 {
			reached &= everyNth(month, c.interval)
		}
		for m := 1; m <= 12; m++ {
			if reached>>m&1 != 0 && f.mdays&(uint32(2)<<daysInMonth(2001, m)-1) == 0 {
				lacking++
			}
		}
		if lacking > 0 {
			l.warn(WarnMonthEnd, "names only days from the 29th on: %s without them %s skipped; for the last day write -1 or L, or add SKIP=BACKWARD",
				counted(lacking, "month"), map[bool]string{true: "is", false: "are"}[lacking == 1])
			return nil
		}
	}
	return nil
}

// everyNth returns the months of the year at which every nth month from a month on falls.
func everyNth(month, n int) (set uint16) {
	for range 12 {
		set |= 1 << month
		month = (month-1+n%12)%12 + 1
	}
	return set
}

// clockChanges warns of wall times that one of the next two changes leaves out or
// repeats, unless the author chose what happens to them.
func (l *linter) clockChanges() error {
	s := l.rule.zone.at(floor(l.options.Now))
	for range 2 {
		if s.to >= endInstant {
			return nil
		}
		if m, err := l.rule.meetsChange(&s); err != nil {
			return err
		} else if m.hit && !l.chosen(&s, m.policy) {
			night, err := l.rule.oddNight(&s)
			if err != nil {
				return err
			}
			l.warn(WarnClockChange, "on %s in %s %s: %s; other schedulers skip such times, or run them twice",
				time.Unix(s.to+max(s.off, s.after)-1, 0).UTC().Format("2006-01-02"), l.rule.Zone(), night.Change, night.Remark)
		}
		s = l.rule.zone.at(s.to)
	}
	return nil
}

// chosen reports whether the author chose what happens to the times that the
// change at the end of a span leaves out, or repeats, beside the rule or in its
// text. p is what happens to them.
func (l *linter) chosen(s *span, p policy) bool {
	text := strings.ToUpper(l.rule.source)
	if s.after > s.off {
		return l.options.NonexistentChosen || p.skip || strings.Contains(text, xNonexistent)
	}
	return l.options.AmbiguousChosen || p.last || strings.Contains(text, xAmbiguous)
}

// start warns of a start that is past, is no occurrence, or is missing.
func (l *linter) start() error {
	r := l.rule
	stated := strings.Contains(strings.ToUpper(r.source), "DTSTART") || strings.Contains(strings.ToLower(r.source), "starting")
	if !stated || len(r.includes) == 0 {
		l.unstarted(stated)
		return nil
	}
	start := r.zone.resolve(r.start, r.policy)
	if start < floor(l.options.Now) {
		l.warn(WarnPastStart, "starts at %s, which is past; times before now count for COUNT and INTERVAL and do not fire", r.local(start))
	}
	if r.form != &rruleForm {
		return nil
	}
	first, err := r.Next(time.Unix(start-1, 0))
	if err != nil {
		return err
	}
	if first.Unix() != start {
		l.warn(WarnUnaligned, "DTSTART, %s, does not match the rule and is not an occurrence here; some calendars add it", r.local(start))
	}
	return nil
}

// unstarted warns of an RRULE without DTSTART that does not name all parts of its times, or counts from the moment at which its
// schedule is made.
func (l *linter) unstarted(stated bool) {
	if l.rule.form != &rruleForm || stated {
		return
	}
	var taken, counted []string
	add := func(list *[]string, name string, is bool) {
		if is && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for i := range l.rule.includes {
		c := &l.rule.includes[i]
		day := "BYMONTHDAY"
		if c.freq == weekly {
			day = "BYDAY"
		}
		add(&taken, "BYMONTH", c.freq == yearly && c.months == 0 && !c.namesDays())
		add(&taken, day, c.freq >= weekly && !c.namesDays())
		add(&taken, "BYHOUR", c.freq >= daily && c.hours == 0)
		add(&taken, "BYMINUTE", c.freq >= hourly && c.minutes == 0)
		add(&taken, "BYSECOND", c.freq >= minutely && c.seconds == 0)
		add(&counted, "INTERVAL", c.interval > 1)
		add(&counted, "COUNT", c.count > 0)
	}
	moment := "from the moment at which its schedule is made, here " + l.rule.local(l.rule.zone.resolve(l.rule.start, l.rule.policy))
	takes, counts := "takes "+strings.Join(taken, ", "), "counts "+strings.Join(counted, ", ")
	const lead = "has no DTSTART, so it "
	switch {
	case len(taken) > 0 && len(counted) > 0:
		l.warn(WarnUnstarted, lead+"%s %s, and %s from there; write a DTSTART", takes, moment, counts)
	case len(taken) > 0:
		l.warn(WarnUnstarted, lead+"%s %s; write a DTSTART, or these parts", takes, moment)
	case len(counted) > 0:
		l.warn(WarnUnstarted, lead+"%s %s; write a DTSTART", counts, moment)
	}
}

// cron warns of texts that other readers of cron understand differently.
func (l *linter) cron() error {
	r := l.rule
	if r.form != &cronForm || r.source[0] == '@' {
		return nil
	}
	fields := strings.Fields(r.source)
	l.loneSteps(fields)
	seconds := len(fields) == 6
	fields = fields[len(fields)-5:]
	day, week := fields[2], fields[4]
	if seconds && strings.ContainsAny(strings.ToUpper(day+week), "?LW#") && numbered(week) {
		l.warn(WarnWeekdayOne, "the weekday %q counts from Sunday as 0; Quartz, whose texts have six fields and such signs, counts from Sunday as 1", week)
	}
	restricted := func(f string) bool { return f != "*" && f != "?" }
	if restricted(day) && restricted(week) {
		if open(day) || open(week) {
			l.warn(WarnBothDays, "a day must match both %q and %q, since one of them begins with * or ?; in most other libraries one of them is enough", day, week)
		} else {
			l.warn(WarnEitherDay, "fires on days that match %q and also on days that match %q; cron has no form for days that match both", day, week)
		}
	}
	for i, f := range []*cronField{&cronMinute, &cronHour} {
		_, step, ok := strings.Cut(fields[i], "*/")
		n, number := digitsOf(step)
		if ok && number && n > 0 && (f.high+1)%n != 0 {
			l.warn(WarnUnevenStep, "%q starts over in every %s: the last gap is %d, not %d; for even gaps write `every …`",
				fields[i], []string{"hour", "day"}[i], (f.high+1)%n, n)
		}
	}
	return nil
}

// numbered reports whether a weekday field has a weekday by its number.
func numbered(week string) bool {
	return slices.ContainsFunc(strings.Split(week, ","), func(item string) bool { return item[:1] >= "0" && item[:1] <= "9" })
}

// loneSteps warns of steps that reach no second value.
func (l *linter) loneSteps(fields []string) {
	kinds := []*cronField{&cronSecond, &cronMinute, &cronHour, &cronDay, &cronMonth, &cronWeekday}
	for i, f := range kinds[len(kinds)-len(fields):] {
		for item := range strings.SplitSeq(fields[i], ",") {
			if !strings.Contains(item, "/") || strings.Contains(item, "~") { // the value of ~ depends on a name
				continue
			}
			if set, err := f.item(item, 0, &input{}); err == nil && bits.OnesCount64(set) == 1 {
				l.warn(WarnLoneStep, "%q in the %s field means only %d: the step goes past the end of its range; some libraries refuse it",
					item, f.name, bits.TrailingZeros64(set))
			}
		}
	}
}

// collisions warns of an instant that many rules share.
func (l *linter) collisions() error {
	next, err := l.rule.Next(l.options.Now)
	if err != nil || next.IsZero() {
		return err
	}
	shared := 0
	for _, o := range l.options.Others {
		at, err := o.Next(next.Add(-time.Second))
		if err != nil {
			return err
		}
		if at.Equal(next) {
			shared++
		}
	}
	if shared > l.options.MaxShared {
		l.warn(WarnCollision, "%d other rules fire at %s too; ~ in a cron field spreads them by name", shared, next.Format(time.RFC3339))
	}
	return nil
}
