package report

import (
	"slices"
	"testing"
)

// However many jobs are failing, one line says what to do: the table above it has their names.
func TestStatusOfManyFailingJobs(t *testing.T) {
	t.Parallel()
	var s Status
	s.Running.Count = 1 // a first pass is under way
	s.Failing.First = slices.Grow(s.Failing.First, 2)[:2]
	s.Failing.First[0].Job, s.Failing.First[1].Job = "a", "b"
	for count, want := range map[int]string{
		1: "job a is failing: dbjobs errors --job a shows each failed attempt",
		5: "5 jobs are failing: dbjobs errors shows each failed attempt, dbjobs job list --state failing the jobs",
	} {
		one := s
		one.Failing.Count = count
		one.Failing.First = s.Failing.First[:min(2, count)]
		if one.Judge(); !slices.Equal(one.ToDo, []string{want}) {
			t.Errorf("%d: %q, want %q", count, one.ToDo, want)
		}
	}
}
