package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// difference reports where the ledgers of a job differ. It is empty if they do not.
func difference(want, got []string) string {
	var b strings.Builder
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintln(&b, "  only in the walk:  ", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			fmt.Fprintln(&b, "  only in the ledger:", line)
		}
	}
	return b.String()
}

// only returns the scenario with only one of its jobs.
func (s *Scenario) only(seed uint64) *Scenario {
	small := *s
	small.Jobs = slices.DeleteFunc(slices.Clone(s.Jobs), func(j Job) bool { return j.Seed != seed })
	small.Steps = nil
	for _, st := range s.Steps {
		if st.Changes == nil {
			small.Steps = append(small.Steps, st)
			continue
		}
		st.Changes = slices.DeleteFunc(slices.Clone(st.Changes), func(c Change) bool { return c.About() && c.Job != seed })
		if len(st.Changes) > 0 {
			small.Steps = append(small.Steps, st)
		}
	}
	return &small
}

// About reports whether a change is about one job.
func (c Change) About() bool {
	return c.Scope == "job" || c.Scope == "" && c.What != "calendar" && (c.What != "rule" || c.Shared < 0)
}

// shrink leaves out all steps that the failure does not need, in parts that get smaller and smaller.
func shrink(s *Scenario, fails func(*Scenario) bool) *Scenario {
	for size := len(s.Steps) / 2; size > 0; {
		before := len(s.Steps)
		for i := 0; i < len(s.Steps); {
			small := *s
			small.Steps = slices.Delete(slices.Clone(s.Steps), i, min(i+size, len(s.Steps)))
			if fails(&small) {
				s = &small
			} else {
				i += size
			}
		}
		if size > 1 || len(s.Steps) == before {
			size /= 2
		}
	}
	return s
}

// Compare compares a narrator with the naive walk, crowd after crowd, for n seeds. The jobs belong to an owner.
// DBJOBS_MODEL_SEED replays one seed.
func Compare(t *testing.T, getenv func(string) string, n int, owner string, other Maker) {
	first := uint64(0)
	if v := getenv("DBJOBS_MODEL_SEED"); v != "" {
		var err error
		if first, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("DBJOBS_MODEL_SEED: %v", err)
		}
		n = 1
	}
	for start := first; start < first+uint64(n); start += Crowd {
		s := NewScenario(start/Crowd*Crowd, min(n, Crowd))
		if n == 1 {
			s = NewScenario(start/Crowd*Crowd, Crowd).only(first)
		}
		s.Owner = owner
		var want, got map[uint64][]string
		t.Run(fmt.Sprint(start), func(t *testing.T) { want, got = Tell(s, walk(s)), Tell(s, other(t, s)) })
		for i := range s.Jobs {
			seed := s.Jobs[i].Seed
			if d := difference(want[seed], got[seed]); d != "" {
				t.Errorf("seed %d: replay it with DBJOBS_MODEL_SEED=%d\n%s", seed, seed, d)
				report(t, s, seed, other)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// report makes the scenario of a failing seed as small as possible, and prints it, if it fails again.
func report(t *testing.T, s *Scenario, seed uint64, other Maker) {
	differs := func(s *Scenario) (d string) {
		t.Run("shrink", func(t *testing.T) {
			d = difference(Tell(s, walk(s))[seed], Tell(s, other(t, s))[seed])
		})
		return d
	}
	small := s.only(seed)
	if differs(small) == "" { // it fails only together with the others
		if small = s; differs(small) == "" {
			t.Logf("seed %d: no difference the second time", seed)
			return
		}
	}
	small = shrink(small, func(s *Scenario) bool { return differs(s) != "" })
	t.Logf("seed %d, as small as it gets:\n%s%s", seed, small, differs(small))
}
