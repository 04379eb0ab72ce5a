package rules

import "slices"

// compile turns a recurrence that starts at the wall time start into a series
// without end. It fills in what DTSTART implies (RFC 5545 §3.3.10), turns
// INTERVAL into windows or a filter of months, and turns SKIP into further
// filters.
func compile(r *recur, z *zone, p policy, start int64) series {
	day, sec := splitCivil(start)
	year, month, mday := dateOf(day)
	s := series{z: z, policy: p, pinned: r.pinned(), pos: r.pos, end: r.until}
	s.start = z.resolve(start, p)
	s.grid.clock = clockOf(r, sec)

	f := dayFilter{months: r.months, mdays: r.mdays, nmdays: r.nmdays, wdays: r.wdays, nth: r.nth}
	if !r.namesDays() {
		switch r.freq {
		case yearly:
			if f.mdays = 1 << mday; f.months == 0 {
				f.months = 1 << month
			}
		case monthly:
			f.mdays = 1 << mday
		case weekly:
			f.wdays = 1 << weekdayOf(day)
		}
	}
	f.nthOfYear = r.freq == yearly && r.months == 0
	f.yeardays, f.weeks = numberedDays(r)
	switch {
	case r.freq == yearly && r.interval > 1:
		f.every, f.base, f.byear = r.interval, year, true
	case r.freq == monthly && r.interval > 1:
		f.every, f.base = r.interval, year*12+month-1
	}
	s.most = mostInPeriod(r.freq, &f, &s.grid.clock)
	s.grid.days = []dayFilter{f}
	s.grid.allDays = f.months == 0 && f.mdays|f.nmdays == 0 && f.wdays == 0 && len(f.nth) == 0 &&
		f.yeardays == nil && f.weeks == nil && f.every <= 1
	if r.skip != skipOmit && r.freq >= monthly {
		s.grid.days = moveDays(f, r.skip)
		s.moved = len(s.grid.days) > 1
	}
	s.setPeriod(r, start)
	return s
}

// clockOf fills in the hours, minutes and seconds that a rule leaves to
// DTSTART, or to its frequency.
func clockOf(r *recur, sec int) clock {
	k := clock{hours: r.hours, minutes: r.minutes, secs: r.seconds}
	if k.hours == 0 {
		if k.hours = allHours; r.freq > hourly {
			k.hours = 1 << (sec / 3600)
		}
	}
	if k.minutes == 0 {
		if k.minutes = allSixties; r.freq > minutely {
			k.minutes = 1 << (sec / 60 % 60)
		}
	}
	if k.secs == 0 {
		if k.secs = allSixties; r.freq > secondly {
			k.secs = 1 << (sec % 60)
		}
	}
	return k
}

func numberedDays(r *recur) (days *yearSet, weeks *weekSet) {
	if len(r.yeardays) > 0 {
		days = new(yearSet)
		for _, n := range r.yeardays {
			days.add(int(n))
		}
	}
	if len(r.weeks) > 0 {
		weeks = &weekSet{wkst: int(r.wkst)}
		for _, n := range r.weeks {
			if n > 0 {
				weeks.from |= 1 << n
			} else {
				weeks.back |= 1 << -n
			}
		}
	}
	return days, weeks
}

// setPeriod sets the windows of INTERVAL and the periods of BYSETPOS. Periods of
// fixed length are aligned to the wall clock at the start: to its hour, its
// minute, its day, or the week that contains it.
func (s *series) setPeriod(r *recur, start int64) {
	unit := frequencySeconds[r.freq]
	if unit == 0 {
		s.period = period{months: 1}
		if r.freq == yearly {
			s.period.months = 12
		}
		return
	}
	base := start - floorMod(start, unit)
	if r.freq == weekly {
		day, _ := splitCivil(start)
		base = joinCivil(day-int(floorMod(int64(weekdayOf(day)-int(r.wkst)), 7)), 0)
	}
	if !s.pinned {
		base += s.start - start
	}
	s.period = period{length: unit, base: base}
	s.grid.unit, s.grid.step, s.grid.base = unit, unit*int64(r.interval), base
	if !s.pinned {
		s.countElapsed(r, start)
	}
}

// countElapsed moves the values that a free series takes from DTSTART into its
// windows: the minute of an hour, the second of a minute. So FREQ=HOURLY stays an
// hour of elapsed time, even if the wall clock moves by half an hour. Only the BY
// parts that the rule itself contains are compared with the wall clock.
func (s *series) countElapsed(r *recur, start int64) {
	g := &s.grid
	if r.freq == hourly && r.minutes == 0 {
		g.clock.minutes = allSixties
		g.unit, g.base = 60, s.start-floorMod(start, 60)
	}
	if r.seconds == 0 && (r.freq == minutely || r.freq == hourly && r.minutes == 0) {
		g.clock.secs = allSixties
		g.unit, g.base = 1, s.start
	}
}

// moveDays expresses SKIP=BACKWARD or FORWARD (RFC 7529 §4.1) by filters: the
// unchanged filter, and one more for each kind of day that some months do not
// have. That filter admits the day to which the missing day moves.
func moveDays(f dayFilter, how skip) []dayFilter {
	list := []dayFilter{f}
	add := func(months uint16, leap int8, shift int, last bool) {
		if months &= f.owners(); months == 0 {
			return
		}
		m := f
		m.months, m.leap, m.shift, m.mdays, m.nmdays, m.yeardays = months, leap, shift, 2, 0, nil
		if last {
			m.mdays, m.nmdays = 0, 2
		}
		list = append(list, m)
	}
	const february, short = 1 << 2, 1<<4 | 1<<6 | 1<<9 | 1<<11
	missing := [...]struct {
		day    int
		months uint16
		leap   int8
	}{{29, february, -1}, {30, february, 0}, {31, february | short, 0}}
	for _, d := range missing {
		if f.mdays>>d.day&1 != 0 { // to the month's last day, or the first of the next
			add(d.months, d.leap, [...]int{skipBackward: 0, skipForward: -1}[how], how == skipBackward)
		}
		if f.nmdays>>d.day&1 != 0 { // to the last day of the month before, or the month's first
			add(d.months, d.leap, [...]int{skipBackward: +1, skipForward: 0}[how], how == skipBackward)
		}
	}
	if f.yeardays == nil {
		return list
	}
	if f.yeardays.from[366/64]>>(366%64)&1 != 0 {
		add(1<<12, -1, [...]int{skipBackward: 0, skipForward: -1}[how], how == skipBackward)
	}
	if f.yeardays.back[366/64]>>(366%64)&1 != 0 {
		add(1<<1, -1, [...]int{skipBackward: +1, skipForward: 0}[how], how == skipBackward)
	}
	return list
}

// owners returns the months the filter admits.
func (f *dayFilter) owners() uint16 {
	if f.months == 0 {
		return 1<<13 - 2
	}
	return f.months
}

// joins adds the days of another series that differs from this one only in its
// days, as the two parts of a cron text's "day of month OR day of week" do. It
// reports whether that was possible.
func (s *series) joins(o *series) bool {
	plain := func(s *series) bool {
		return !s.grid.windowed() && len(s.pos) == 0 && !s.moved && !s.grid.allDays
	}
	if !plain(s) || !plain(o) || s.pinned != o.pinned || s.grid.clock != o.grid.clock ||
		s.start != o.start || s.end != o.end {
		return false
	}
	s.grid.days = append(slices.Clip(s.grid.days), o.grid.days...)
	return true
}

// cycle is the length in days after which the days of a filter repeat.
func (g *grid) cycle() int64 {
	if g.allDays {
		return 1
	}
	for i := range g.days {
		f := &g.days[i]
		if f.months != 0 || f.mdays|f.nmdays != 0 || len(f.nth) > 0 || f.yeardays != nil || f.weeks != nil || f.every > 1 {
			return 146097 // 400 years of the Gregorian calendar, a whole number of weeks
		}
	}
	return 7
}
