package store

import (
	"slices"
	"testing"
)

// The jobs that a pause covers are found by its subject, as Covers finds them one by one.
func TestPausesFindTheirJobs(t *testing.T) {
	t.Parallel()
	jobs := map[int64]*Snapshot{
		1: {Plan: Plan{JobID: 1}, Job: Job{Owner: "ada", Tags: []string{"red", "blue"}}, Rules: []Rule{{ScheduleID: 7}, {ScheduleID: 8}}},
		2: {Plan: Plan{JobID: 2}, Job: Job{Owner: "ada"}, Planned: PlannedPolicies{Known: true, Owner: "bob", Tags: []string{"red"}}, Rules: []Rule{{ScheduleID: 7}}},
		3: {Plan: Plan{JobID: 3}, Job: Job{Owner: "bob", Tags: []string{"red"}}, Planned: PlannedPolicies{Known: true, Owner: "bob", Tags: []string{"red"}}},
		4: {Plan: Plan{JobID: 4}, Job: Job{Tags: []string{"ada"}}, Planned: PlannedPolicies{Owner: "bob"}},
	}
	of := covered{all: jobs}
	for _, scope := range []string{ScopeAll, ScopeJob, ScopeSchedule, ScopeOwner, ScopeTag, "another"} {
		for id := range int64(10) {
			for _, name := range []string{"", "ada", "bob", "red", "blue", "7"} {
				p := Pause{Scope: scope, SubjectID: id, Subject: name}
				var want, got []int64
				for i, c := range jobs {
					if p.Covers(c) {
						want = append(want, i)
					}
				}
				for _, c := range of.pause(&p) {
					got = append(got, c.Plan.JobID)
				}
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%s %d %q: jobs %v, want %v", scope, id, name, got, want)
				}
			}
		}
	}
}
