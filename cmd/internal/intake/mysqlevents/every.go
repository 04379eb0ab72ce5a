package mysqlevents

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// parts has the units of an interval, the smallest one last. MONTH and YEAR are counted in months, all others in
// seconds.
var parts = map[string][]int64{
	"SECOND": {1}, "MINUTE": {60}, "HOUR": {3600}, "DAY": {86400}, "WEEK": {7 * 86400},
	"MINUTE_SECOND": {60, 1}, "HOUR_MINUTE": {3600, 60}, "HOUR_SECOND": {3600, 60, 1},
	"DAY_HOUR": {86400, 3600}, "DAY_MINUTE": {86400, 3600, 60}, "DAY_SECOND": {86400, 3600, 60, 1},
}

var months = map[string][]int64{"MONTH": {1}, "QUARTER": {3}, "YEAR": {12}, "YEAR_MONTH": {12, 1}}

var number = lazyregexp.New(`\d+`)

// total adds up an interval such as '1:30'. If it has fewer numbers than units, the numbers belong to the smallest
// units.
func total(value string, units []int64) (n int64) {
	list := number.FindAllString(value, -1)
	if len(list) == 0 || len(list) > len(units) {
		return 0
	}
	units = units[len(units)-len(list):]
	for i, text := range list {
		v, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0
		}
		n += v * units[i]
	}
	return n
}

// every gives a schedule the rule of EVERY.
func every(own *store.Schedule, e *Event, starts time.Time, shifted bool, o Options, note func(string, ...any)) (reason string) {
	unknown := fmt.Sprintf("Its interval is %.40q %s, which is not known here; write the job by hand.", e.Value, e.Field)
	if units := months[e.Field]; units != nil {
		n := total(e.Value, units)
		if n <= 0 {
			return unknown
		}
		if shifted {
			return fmt.Sprintf("Its zone is %s, which has no name, and its months are counted there; write the job by hand, with a rule in UTC.", e.Zone)
		}
		freq := "MONTHLY"
		if n%12 == 0 {
			freq, n = "YEARLY", n/12
		}
		own.Rule = fmt.Sprintf("DTSTART:%s\nRRULE:FREQ=%s;INTERVAL=%d", starts.Format("20060102T150405"), freq, n)
		if starts.Day() > 28 {
			own.Rule += ";SKIP=BACKWARD"
			note("In months without the day %[1]d it runs on the last one, as there. There, the time after such a one comes twice: first on the "+
				"number of that last day (after 28 February, on a 28th), then on day %[1]d if its month has one; here only the latter.", starts.Day())
		}
		return nights(own, o, note, false)
	}
	units := parts[e.Field]
	if units == nil {
		return unknown
	}
	seconds := total(e.Value, units)
	if seconds <= 0 {
		return unknown
	}
	unit, n := "s", seconds
	for _, u := range []struct {
		name   string
		length int64
	}{{"w", 7 * 86400}, {"d", 86400}, {"h", 3600}, {"m", 60}} {
		if seconds%u.length == 0 {
			unit, n = u.name, seconds/u.length
			break
		}
	}
	if seconds%86400 != 0 && len(units) > 1 && seconds > 86400 {
		note("%s %s is %d seconds.", e.Value, e.Field, seconds)
	}
	own.Rule = fmt.Sprintf("every %d%s starting %s", n, unit, starts.Format("2006-01-02T15:04:05"))
	return nights(own, o, note, seconds%86400 != 0)
}

// nights names the nights on which clocks change, because nobody can say what the event scheduler does then.
func nights(own *store.Schedule, o Options, note func(string, ...any), short bool) (reason string) {
	list, err := intake.Changes(own.Zone, o.Now)
	if err != nil {
		return fmt.Sprintf("Its zone cannot be used: %v.", err)
	}
	if len(list) == 0 {
		return ""
	}
	if short {
		note("Clocks change: %s. dbjobs counts elapsed time. The event scheduler counts on the wall clock, so its times around these changes, and after them, may be others.",
			strings.Join(list, "; "))
		return ""
	}
	for _, change := range list {
		if hit, what := intake.Meets(own, change, o.Now); hit {
			note("Clock change %s: dbjobs %s; the event scheduler may leave it out, or run it twice.", change, what)
		}
	}
	return ""
}
