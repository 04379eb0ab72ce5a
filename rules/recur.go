package rules

import (
	"math/bits"
	"strconv"
	"strings"
)

// frequency is FREQ. The order is that of period lengths.
type frequency uint8

const (
	secondly frequency = iota
	minutely
	hourly
	daily
	weekly
	monthly
	yearly
)

var frequencyNames = [...]string{"SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"}

var frequencySeconds = [...]int64{1, 60, 3600, secondsPerDay, secondsPerWeek, 0, 0}

var weekdayNames = [...]string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}

// skip is SKIP of RFC 7529: what happens to a day that its month does not have.
type skip uint8

const (
	skipOmit skip = iota
	skipBackward
	skipForward
)

var skipNames = [...]string{"OMIT", "BACKWARD", "FORWARD"}

// recur is one RRULE or EXRULE as it is written, without what DTSTART implies.
// Its sets have one bit for each value; an empty set means that the part is
// absent. Equal rules have equal recurs: lists are sorted and have no duplicates.
type recur struct {
	freq     frequency
	interval int
	count    int
	until    int64 // instant; noUntil if there is none
	wkst     int8
	skip     skip

	months        uint16
	mdays, nmdays uint32
	wdays         uint8
	nth           []nthDay // by n, then weekday
	yeardays      []int16
	weeks         []int16
	hours         uint32
	minutes       uint64
	seconds       uint64
	pos           []int16
}

const noUntil = endInstant

// namesDays reports whether a BY part names the days, so that DTSTART does not
// determine them.
func (r *recur) namesDays() bool {
	return r.mdays|r.nmdays != 0 || r.wdays != 0 || len(r.nth) > 0 || len(r.yeardays) > 0 || len(r.weeks) > 0
}

// pinned reports whether the rule recurs on the wall clock: see the package
// comment.
func (r *recur) pinned() bool { return r.freq >= daily || r.hours != 0 }

// text writes the rule in the form of RFC 5545 §3.3.10, FREQ first, then in
// the order in which the parts are applied.
func (r *recur) text(b *strings.Builder) {
	if r.skip != skipOmit {
		b.WriteString("RSCALE=GREGORIAN;")
	}
	b.WriteString("FREQ=" + frequencyNames[r.freq])
	if r.interval > 1 {
		b.WriteString(";INTERVAL=" + strconv.Itoa(r.interval))
	}
	if r.count > 0 {
		b.WriteString(";COUNT=" + strconv.Itoa(r.count))
	}
	if r.until != noUntil {
		b.WriteString(";UNTIL=")
		writeStamp(b, r.until)
		b.WriteByte('Z')
	}
	if r.skip != skipOmit {
		b.WriteString(";SKIP=" + skipNames[r.skip])
	}
	writeBits(b, ";BYMONTH=", uint64(r.months), 0)
	writeList(b, ";BYWEEKNO=", r.weeks)
	writeList(b, ";BYYEARDAY=", r.yeardays)
	writeBits(b, ";BYMONTHDAY=", uint64(r.mdays), uint64(r.nmdays))
	r.writeDays(b)
	writeBits(b, ";BYHOUR=", uint64(r.hours), 0)
	writeBits(b, ";BYMINUTE=", r.minutes, 0)
	writeBits(b, ";BYSECOND=", r.seconds, 0)
	writeList(b, ";BYSETPOS=", r.pos)
	if r.wkst != monday {
		b.WriteString(";WKST=" + weekdayNames[r.wkst])
	}
}

func (r *recur) writeDays(b *strings.Builder) {
	lead := ";BYDAY="
	for w, name := range weekdayNames {
		if r.wdays>>w&1 != 0 {
			b.WriteString(lead + name)
			lead = ","
		}
	}
	for _, n := range r.nth {
		b.WriteString(lead + strconv.Itoa(int(n.n)) + weekdayNames[n.wday])
		lead = ","
	}
}

// writeBits writes a list of the set bits, then a list of the negative numbers.
func writeBits(b *strings.Builder, lead string, set, negative uint64) {
	for ; set != 0; set &= set - 1 {
		b.WriteString(lead + strconv.Itoa(bits.TrailingZeros64(set)))
		lead = ","
	}
	for ; negative != 0; negative &= negative - 1 {
		b.WriteString(lead + "-" + strconv.Itoa(bits.TrailingZeros64(negative)))
		lead = ","
	}
}

func writeList(b *strings.Builder, lead string, list []int16) {
	for _, n := range list {
		b.WriteString(lead + strconv.Itoa(int(n)))
		lead = ","
	}
}

// writeStamp writes a civil time as 20060102T150405.
func writeStamp(b *strings.Builder, c int64) {
	day, sec := splitCivil(c)
	year, month, mday := dateOf(day)
	two := func(n int) {
		b.WriteByte(byte('0' + n/10%10))
		b.WriteByte(byte('0' + n%10))
	}
	two(year / 100)
	two(year)
	two(month)
	two(mday)
	b.WriteByte('T')
	two(sec / 3600)
	two(sec / 60 % 60)
	two(sec % 60)
}
