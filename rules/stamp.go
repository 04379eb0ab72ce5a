package rules

// stamp is a DATE or DATE-TIME value (RFC 5545 §3.3.4, §3.3.5).
type stamp struct {
	civil int64
	utc   bool // it ended in Z
	date  bool // it had no time
}

// readStamp reads 20060102, 20060102T150405 or 20060102T150405Z. A second 60
// is read as 59, as the standard asks of clocks without leap seconds.
func readStamp(form string, pos int, text string) (stamp, error) {
	const allowed = "a date is YYYYMMDD, a time YYYYMMDDTHHMMSS, with Z at the end if it is in UTC"
	n := len(text)
	if n != 8 && n != 15 && !(n == 16 && text[15] == 'Z') || n > 8 && text[8] != 'T' {
		return stamp{}, refuse(form, pos, text, allowed)
	}
	ok := true
	number := func(from, to int) (v int) {
		for _, c := range []byte(text[from:to]) {
			ok = ok && c >= '0' && c <= '9'
			v = v*10 + int(c-'0')
		}
		return v
	}
	year, month, day := number(0, 4), number(4, 6), number(6, 8)
	var hour, minute, second int
	if n > 8 {
		hour, minute, second = number(9, 11), number(11, 13), number(13, 15)
	}
	if !ok {
		return stamp{}, refuse(form, pos, text, allowed)
	}
	if second == 60 {
		second = 59
	}
	if !validDate(year, month, day) || hour > 23 || minute > 59 || second > 59 {
		return stamp{}, refuse(form, pos, text, "no such date or time; years are 0001-9999")
	}
	c := joinCivil(dayOf(year, month, day), hour*3600+minute*60+second)
	return stamp{civil: c, utc: n == 16, date: n == 8}, nil
}

func validDate(year, month, day int) bool {
	return year >= firstYear && year <= lastYear && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month)
}
