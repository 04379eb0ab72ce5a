package rules

import (
	"slices"
	"time"
)

// The naive engine makes every period from DTSTART on, every day of it, and every second of the clock, with package
// time. Then it asks which wall time a clock shows at each instant. It shares no code with the engine except the recur
// that both read.

func bitList(set uint64) (list []int) {
	for i := range 64 {
		if set>>i&1 != 0 {
			list = append(list, i)
		}
	}
	return list
}

func naiveDate(c int64) time.Time { return time.Unix(c, 0).UTC() }

func naiveWeekday(t time.Time) int { return (int(t.Weekday()) + 6) % 7 }

func naiveIn(set uint64, n int) bool { return set == 0 || set>>n&1 != 0 }

// naiveWeek numbers weeks by walking from January 1st.
func naiveWeek(t time.Time, wkst int) (n, of int) {
	firstOf := func(year int) time.Time {
		d := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC)
		for naiveWeekday(d) != wkst {
			d = d.AddDate(0, 0, -1)
		}
		return d
	}
	year := t.Year() + 1
	for firstOf(year).After(t) {
		year--
	}
	for d := firstOf(year); d.Before(firstOf(year + 1)); d = d.AddDate(0, 0, 7) {
		of++
		if !d.After(t) {
			n++
		}
	}
	return n, of
}

// naiveByDay decides about BYDAY.
func (r *recur) naiveByDay(t time.Time) bool {
	if r.wdays == 0 && len(r.nth) == 0 {
		return true
	}
	w := naiveWeekday(t)
	if r.wdays>>w&1 != 0 {
		return true
	}
	from, to := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC), time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	if r.freq == yearly && r.months == 0 {
		from, to = time.Date(t.Year(), 1, 1, 0, 0, 0, 0, time.UTC), time.Date(t.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	before, after := 0, 0
	for d := from; d.Before(to); d = d.AddDate(0, 0, 1) {
		if naiveWeekday(d) == w {
			if !d.After(t) {
				before++
			}
			if !d.Before(t) {
				after++
			}
		}
	}
	for _, n := range r.nth {
		if int(n.wday) == w && (int(n.n) == before || int(-n.n) == after) {
			return true
		}
	}
	return false
}

// naiveByNumber decides about BYYEARDAY and BYWEEKNO.
func (r *recur) naiveByNumber(t time.Time) bool {
	if len(r.yeardays) > 0 {
		length := time.Date(t.Year(), 12, 31, 0, 0, 0, 0, time.UTC).YearDay()
		if !slices.Contains(r.yeardays, int16(t.YearDay())) && !slices.Contains(r.yeardays, int16(t.YearDay()-length-1)) {
			return false
		}
	}
	if len(r.weeks) > 0 {
		n, of := naiveWeek(t, int(r.wkst))
		return slices.Contains(r.weeks, int16(n)) || slices.Contains(r.weeks, int16(n-of-1))
	}
	return true
}

// naiveMonthDays makes the days of a month that BYMONTHDAY names, with SKIP.
func (r *recur) naiveMonthDays(first time.Time) (list []time.Time) {
	length := first.AddDate(0, 1, -1).Day()
	add := func(n int) {
		switch {
		case n >= 1 && n <= length:
			list = append(list, first.AddDate(0, 0, n-1))
		case r.skip == skipOmit:
		case n < 1 && r.skip == skipBackward:
			list = append(list, first.AddDate(0, 0, -1))
		case n < 1:
			list = append(list, first)
		case r.skip == skipBackward:
			list = append(list, first.AddDate(0, 1, -1))
		default:
			list = append(list, first.AddDate(0, 1, 0))
		}
	}
	for _, n := range bitList(uint64(r.mdays)) {
		add(n)
	}
	for _, n := range bitList(uint64(r.nmdays)) {
		add(length + 1 - n)
	}
	if r.mdays|r.nmdays == 0 {
		for n := 1; n <= length; n++ {
			add(n)
		}
	}
	return list
}

// naivePeriod makes the days of the kth period of a rule whose periods are days or longer.
func (r *recur) naivePeriod(start time.Time, k int) (list []time.Time) {
	day := time.Date(start.Year(), start.Month(), start.Day(), 0, 0, 0, 0, time.UTC)
	k *= r.interval
	switch r.freq {
	case daily, weekly:
		n := 1
		if day = day.AddDate(0, 0, k); r.freq == weekly {
			n = 7
			for day = day.AddDate(0, 0, 6*k); naiveWeekday(day) != int(r.wkst); {
				day = day.AddDate(0, 0, -1)
			}
		}
		for i := range n {
			d := day.AddDate(0, 0, i)
			last := d.AddDate(0, 1, -d.Day()).Day()
			if naiveIn(uint64(r.months), int(d.Month())) && (r.mdays|r.nmdays == 0 ||
				r.mdays>>d.Day()&1 != 0 || r.nmdays>>(last+1-d.Day())&1 != 0) {
				list = append(list, d)
			}
		}
	case monthly:
		first := time.Date(day.Year(), day.Month()+time.Month(k), 1, 0, 0, 0, 0, time.UTC)
		if naiveIn(uint64(r.months), int(first.Month())) {
			list = r.naiveMonthDays(first)
		}
	case yearly:
		for m := range 12 {
			if naiveIn(uint64(r.months), m+1) {
				list = append(list, r.naiveMonthDays(time.Date(day.Year()+k, time.Month(m+1), 1, 0, 0, 0, 0, time.UTC))...)
			}
		}
	}
	list = slices.DeleteFunc(list, func(d time.Time) bool { return !r.naiveByDay(d) || !r.naiveByNumber(d) })
	slices.SortFunc(list, time.Time.Compare)
	return slices.CompactFunc(list, time.Time.Equal)
}

// naiveImplied adds the parts that DTSTART implies.
func (r recur) naiveImplied(start time.Time) recur {
	if r.mdays|r.nmdays == 0 && r.wdays == 0 && len(r.nth) == 0 && len(r.yeardays) == 0 && len(r.weeks) == 0 {
		if r.freq == yearly && r.months == 0 {
			r.months = 1 << int(start.Month())
		}
		if r.freq == yearly || r.freq == monthly {
			r.mdays = 1 << start.Day()
		}
		if r.freq == weekly {
			r.wdays = 1 << naiveWeekday(start)
		}
	}
	if r.hours == 0 && r.freq > hourly {
		r.hours = 1 << start.Hour()
	}
	if r.minutes == 0 && r.freq > minutely {
		r.minutes = 1 << start.Minute()
	}
	if r.seconds == 0 && r.freq > secondly {
		r.seconds = 1 << start.Second()
	}
	return r
}

// naiveChoose applies BYSETPOS to the times of a period.
func (r *recur) naiveChoose(set []int64) (list []int64) {
	if len(r.pos) == 0 {
		return set
	}
	for _, p := range r.pos {
		if i := int(p) - 1; p > 0 && i < len(set) {
			list = append(list, set[i])
		} else if i := len(set) + int(p); p < 0 && i >= 0 {
			list = append(list, set[i])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// naiveJudge decides about the times of a rule whose periods are shorter than a day, and remembers its days.
type naiveJudge struct {
	*recur
	days map[int64]bool
}

func (j *naiveJudge) matches(c int64) bool {
	t := naiveDate(c)
	if !naiveIn(j.seconds, t.Second()) || !naiveIn(j.minutes, t.Minute()) || !naiveIn(uint64(j.hours), t.Hour()) {
		return false
	}
	day := t.Unix() - int64(t.Hour()*3600+t.Minute()*60+t.Second())
	admitted, known := j.days[day]
	if !known {
		admitted = j.naiveDay(naiveDate(day))
		j.days[day] = admitted
	}
	return admitted
}

func (r *recur) naiveDay(t time.Time) bool {
	last := time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return naiveIn(uint64(r.months), int(t.Month())) && (r.mdays|r.nmdays == 0 ||
		r.mdays>>t.Day()&1 != 0 || r.nmdays>>(last+1-t.Day())&1 != 0) && r.naiveByDay(t) && r.naiveByNumber(t)
}

// naiveWall returns the wall times in [lo, hi) of a rule whose periods are days or longer.
func (r *recur) naiveWall(start, lo, hi int64) (list []int64) {
	s := naiveDate(start)
	for k := range 1 << 20 {
		days := r.naivePeriod(s, k)
		var set []int64
		for _, d := range days {
			for _, h := range bitList(uint64(r.hours)) {
				for _, m := range bitList(r.minutes) {
					for _, sec := range bitList(r.seconds) {
						set = append(set, d.Unix()+int64(h*3600+m*60+sec))
					}
				}
			}
		}
		for _, c := range r.naiveChoose(set) {
			if c >= lo && c < hi {
				list = append(list, c)
			}
		}
		step := map[frequency]int64{daily: 1, weekly: 7, monthly: 28, yearly: 365}[r.freq] * int64(r.interval) * 86400
		if start+int64(k)*step > hi+40*86400 {
			break
		}
	}
	return list
}

// naiveElapsed returns the times in [lo, hi) of a rule whose periods are shorter than a day. The scale can be any:
// wall(t) is the wall time to decide about, base is the start of the first period, and inPeriod decides about the
// distance of a time from the start of its period.
func (r *recur) naiveElapsed(base, lo, hi int64, wall func(int64) int64, inPeriod func(int64) bool) (list []int64) {
	unit := map[frequency]int64{secondly: 1, minutely: 60, hourly: 3600}[r.freq]
	judge := naiveJudge{r, map[int64]bool{}}
	k := (lo-base)/(unit*int64(r.interval)) - 2
	for ; ; k++ {
		p := base + k*unit*int64(r.interval)
		if p >= hi {
			return list
		}
		var set []int64
		for t := p; t < p+unit; t++ {
			if inPeriod(t-p) && judge.matches(wall(t)) {
				set = append(set, t)
			}
		}
		for _, t := range r.naiveChoose(set) {
			if t >= lo && t < hi {
				list = append(list, t)
			}
		}
	}
}

// naive returns the instants of a rule of one recurrence in [lo, hi].
func naive(r recur, start int64, zone string, p policy, lo, hi int64) (list []int64) {
	z := naiveLoad(zone)
	begin := z.naiveRead([]int64{start}, policy{first: p.first, last: p.last})[0]
	written := r
	r = r.naiveImplied(naiveDate(start))
	const margin = 40 * 3600
	unit := map[frequency]int64{secondly: 1, minutely: 60, hourly: 3600}[r.freq]
	switch {
	case r.freq >= daily:
		list = z.naiveRead(r.naiveWall(start, lo-margin, hi+margin), p)
	case r.hours != 0:
		list = z.naiveRead(r.naiveElapsed(start-((start%unit)+unit)%unit, lo-margin, hi+margin, func(c int64) int64 { return c }, func(int64) bool { return true }), p)
	default:
		into := ((start % unit) + unit) % unit
		minuteKept := r.freq == hourly && written.minutes == 0
		secondKept := written.seconds == 0 && (minuteKept || r.freq == minutely)
		if minuteKept {
			r.minutes = 0
		}
		if secondKept {
			r.seconds = 0
		}
		list = r.naiveElapsed(begin-into, lo, hi+1, z.wall, func(n int64) bool {
			return (!minuteKept || n/60 == into/60) && (!secondKept || n%60 == into%60)
		})
	}
	list = slices.DeleteFunc(list, func(t int64) bool { return t < begin || t < lo || t > hi || t > r.until })
	slices.Sort(list)
	return slices.Compact(list)
}
