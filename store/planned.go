package store

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// PlannedPolicies are policies with which a job was last planned. They decide about the nominal
// times before the policies were changed.
type PlannedPolicies struct {
	Known               bool // false: it was never planned, or nothing has changed
	Disabled            bool
	NotBefore, NotAfter time.Time
	MaxRuns             int64
	RepeatAfter         Duration
	Start, StartZone    string
}

// readPlanned reads the text that a job's plan_input had when the job was planned. A text with another number of
// fields comes from another expression, or was written by hand, so its meaning is unknown.
func readPlanned(planned string) PlannedPolicies {
	fields := strings.Split(planned, "\x1f")
	if len(fields) != len(planInput) {
		return PlannedPolicies{}
	}
	field := func(column string) string { return fields[slices.Index(planInput, column)] }
	w := PlannedPolicies{Disabled: strings.HasPrefix(field("enabled"), "f") || field("enabled") == "0"}
	var before, after bool
	w.NotBefore, before = engine.PlannedInstant(field("not_before"))
	w.NotAfter, after = engine.PlannedInstant(field("not_after"))
	w.MaxRuns, _ = strconv.ParseInt(field("max_runs"), 10, 64) // empty: none
	repeat, _ := strconv.ParseInt(field("repeat_after_ms"), 10, 64)
	w.RepeatAfter = Duration(time.Duration(repeat) * time.Millisecond)
	w.StartZone, w.Start = field("start_zone"), field("start_rule")
	w.Known = before && after
	return w
}
