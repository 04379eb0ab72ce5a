package tick

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// difference tells where the ledgers of a job differ; empty: nowhere.
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

// only is the scenario with one of its jobs.
func (s *scenario) only(seed uint64) *scenario {
	small := *s
	small.jobs = slices.DeleteFunc(slices.Clone(s.jobs), func(j modelJob) bool { return j.seed != seed })
	small.steps = nil
	for _, st := range s.steps {
		if st.changes == nil {
			small.steps = append(small.steps, st)
			continue
		}
		st.changes = slices.DeleteFunc(slices.Clone(st.changes), func(c modelChange) bool { return c.about() && c.job != seed })
		if len(st.changes) > 0 {
			small.steps = append(small.steps, st)
		}
	}
	return &small
}

// about tells whether a change is about one job.
func (c modelChange) about() bool {
	return c.scope == "job" || c.scope == "" && (c.what != "rule" || c.shared < 0)
}

// shrink leaves out whatever the failure does not need, in parts that get smaller and smaller.
func shrink(s *scenario, fails func(*scenario) bool) *scenario {
	for size := len(s.steps) / 2; size > 0; {
		before := len(s.steps)
		for i := 0; i < len(s.steps); {
			small := *s
			small.steps = slices.Delete(slices.Clone(s.steps), i, min(i+size, len(s.steps)))
			if fails(&small) {
				s = &small
			} else {
				i += size
			}
		}
		if size > 1 || len(s.steps) == before {
			size /= 2
		}
	}
	return s
}

// seedsOf are first and number of the seeds: DBJOBS_MODEL_SEED replays one.
func seedsOf(t *testing.T, few, many int) (first uint64, n int) {
	if v := os.Getenv("DBJOBS_MODEL_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("DBJOBS_MODEL_SEED: %v", err)
		}
		return seed, 1
	}
	if os.Getenv("DBJOBS_PROVE") != "" {
		return 0, many
	}
	return 0, few
}

// compareWith holds a narrator against the naive walk, crowd after crowd.
func compareWith(t *testing.T, few, many int, other func(testing.TB) narrator) {
	first, n := seedsOf(t, few, many)
	for start := first; start < first+uint64(n); start += crowd {
		s := newScenario(start/crowd*crowd, min(n, crowd))
		if n == 1 {
			s = newScenario(start/crowd*crowd, crowd).only(first)
		}
		var want, got map[uint64][]string
		t.Run(fmt.Sprint(start), func(t *testing.T) { want, got = tell(s, &naive{}), tell(s, other(t)) })
		for i := range s.jobs {
			seed := s.jobs[i].seed
			if d := difference(want[seed], got[seed]); d != "" {
				report(t, s, seed, other)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// report makes a failing seed's scenario as small as it gets, and prints it.
func report(t *testing.T, s *scenario, seed uint64, other func(testing.TB) narrator) {
	differs := func(s *scenario) (d string) {
		t.Run("shrink", func(t *testing.T) {
			d = difference(tell(s, &naive{})[seed], tell(s, other(t))[seed])
		})
		return d
	}
	small := s.only(seed)
	if differs(small) == "" { // it takes the others
		small = s
	}
	small = shrink(small, func(s *scenario) bool { return differs(s) != "" })
	t.Errorf("seed %d: replay it with DBJOBS_MODEL_SEED=%d\n%s%s", seed, seed, small, differs(small))
}

// Of each nominal time, both ledgers have a run or, for each of its rules, one reason: what is missing, or there twice,
// is a difference.
func TestPassesKeepTheLedgerOfTheNaiveWalk(t *testing.T) {
	compareWith(t, 20, 20_032, func(t testing.TB) narrator { return &passes{t: t} })
}

func TestDecideKeepsTheLedgerOfTheNaiveWalk(t *testing.T) {
	compareWith(t, 2*crowd, 100_032, func(t testing.TB) narrator { return &decisions{t: t} })
}

func TestEqualSeedsGiveEqualTraces(t *testing.T) {
	trace := func() string {
		s, p := newScenario(crowd, 8), &passes{t: t}
		s.steps = s.steps[:20]
		ledger := tell(s, p)
		return s.String() + p.trace.String() + fmt.Sprint(ledger)
	}
	if first, second := trace(), trace(); first != second || len(first) < 5_000 {
		t.Fatalf("two traces of one seed, of %d and %d bytes, differ", len(first), len(second))
	}
}
