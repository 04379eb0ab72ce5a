package store

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Was is what of a job's policies its plan was made from. What was due before they were changed is judged by these.
type Was struct {
	Known               bool // false: it was never planned, or nothing has changed
	Disabled            bool
	NotBefore, NotAfter time.Time
	MaxRuns             int64
	RepeatAfter         Duration
	Start, StartZone    string
}

// readWas reads the text that a job's plan_input had when it was planned. What somebody put there by hand is not known.
func readWas(planned string) Was {
	fields := strings.Split(planned, "\x1f")
	if len(fields) < 32 {
		return Was{}
	}
	w := Was{Known: true, Disabled: strings.HasPrefix(fields[0], "f") || fields[0] == "0"}
	var before, after bool
	w.NotBefore, before = plannedInstant(fields[2])
	w.NotAfter, after = plannedInstant(fields[3])
	w.MaxRuns, _ = strconv.ParseInt(fields[6], 10, 64) // empty: none
	repeat, _ := strconv.ParseInt(fields[5], 10, 64)
	w.RepeatAfter = Duration(time.Duration(repeat) * time.Millisecond)
	w.StartZone, w.Start = fields[29], fields[30]
	w.Known = before && after
	return w
}

// plannedInstant reads an instant as the engines write it into plan_input: SQLite and MySQL as they keep it, PostgreSQL as
// seconds since the epoch.
func plannedInstant(s string) (time.Time, bool) {
	if s == "" {
		return time.Time{}, true
	}
	for _, layout := range []string{sqliteLayout, "2006-01-02 15:04:05.000000"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil || !(math.Abs(seconds) <= float64(Last.Unix())) { // infinite, or no number
		return time.Time{}, false
	}
	return time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC(), true
}
