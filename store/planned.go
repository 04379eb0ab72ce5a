package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// PlannedPolicies are policies with which a job was last planned. They decide about the nominal
// times before the policies were changed, and tell which runs have the job's earlier priority.
type PlannedPolicies struct {
	Known               bool // false: it was never planned, or nothing has changed
	Disabled            bool
	NotBefore, NotAfter time.Time
	MaxRuns             int64
	RepeatAfter         Duration
	Start, StartZone    string
	Owner               string
	Tags                []string
	Priority            int
}

// PlannedJob has what a job that was changed since its last plan was planned with, and when it was changed.
type PlannedJob struct {
	PlannedPolicies
	ChangedAt time.Time
}

// PlannedJobs returns those of the jobs that were changed since they were last planned.
func (s *Store) PlannedJobs(ctx context.Context, ids []int64) (map[int64]PlannedJob, error) {
	found := map[int64]PlannedJob{}
	for part := range slices.Chunk(ids, page) {
		var j Job
		var input borrowed
		var planned sql.NullString
		var follows bool
		rd := engine.Reads(&j.ID, &j.Owner, &j.Name, engine.At(&j.CreatedAt), engine.At(&j.changedAt), &input, &planned, &follows)
		if err := s.db.Query(ctx, "batch_inputs", engine.Args{"ids": part}, rd.Each(func(string) {
			if planned.Valid {
				found[j.ID] = PlannedJob{readPlanned(planned.String), j.changedAt}
			}
			j = Job{}
		})); err != nil {
			return nil, fmt.Errorf("read what was planned: %w", err)
		}
	}
	return found, nil
}

// PlannedAs returns the policies with which a job that has this definition is planned.
func (j *Job) PlannedAs() PlannedPolicies {
	return PlannedPolicies{Known: true, Disabled: j.Disabled, NotBefore: j.NotBefore, NotAfter: j.NotAfter, MaxRuns: j.MaxRuns,
		RepeatAfter: j.RepeatAfter, Start: j.Start, StartZone: j.StartZone, Owner: j.Owner, Tags: j.Tags, Priority: j.Priority}
}

// Equal reports whether a job that was planned with some policies has the same nominal times with others, held by the same pauses.
func (w *PlannedPolicies) Equal(o *PlannedPolicies) bool {
	return w.Known && o.Known && w.Disabled == o.Disabled && w.NotBefore.Equal(o.NotBefore) && w.NotAfter.Equal(o.NotAfter) && w.MaxRuns == o.MaxRuns &&
		w.RepeatAfter == o.RepeatAfter && w.Start == o.Start && w.StartZone == o.StartZone && w.Owner == o.Owner && slices.Equal(w.Tags, o.Tags)
}

// leftGroup returns the name of the group that a job was planned in, as plan_input quotes it, if the job is not in that group
// any more; empty: there is no such group.
func leftGroup(planned, input string) string {
	was, is := strings.Split(planned, "\x1f"), strings.Split(input, "\x1f")
	at := slices.Index(planInput, "group_name")
	if len(was) != len(planInput) || len(is) != len(planInput) || was[at] == is[at] {
		return ""
	}
	return was[at]
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
	w.StartZone, w.Start, w.Owner = field("start_zone"), field("start_rule"), field("owner")
	w.Priority, _ = strconv.Atoi(field("priority"))
	_ = (tags{&w.Tags}).Scan(field("tags")) // what cannot be read is no tag
	w.Known = before && after
	return w
}
