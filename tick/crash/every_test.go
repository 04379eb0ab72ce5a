package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/doctor"
)

// crash is one course with a fault, or with two: the second is counted from the first.
type crash struct {
	stage int
	k     int
	kind  faultKind
	then  *crash
}

func (c crash) name(stages []stage) string {
	name := fmt.Sprintf("%s/%d/%s", stages[c.stage].name, c.k, c.kind)
	if c.then != nil {
		name += fmt.Sprintf("/%d/%s", c.then.k, c.then.kind)
	}
	return name
}

// model is the unbroken course: the calls of each stage, and the record after it.
type model struct {
	records []*record
	calls   [][]storetest.Call
}

// count returns how many calls each stage takes, and how many all of them take.
func (m *model) count() (stages []int, all int) {
	for _, c := range m.calls {
		stages, all = append(stages, len(c)), all+len(c)
	}
	return stages, all
}

// unbroken runs all stages without a fault, and keeps the state before each.
func (w *world) unbroken(stages []stage) (*model, error) {
	m := &model{}
	for i := range stages {
		w.snapshot(fmt.Sprint("before", i))
		counting := newFault("", 0, w)
		if err := w.run(&stages[i], counting); err != nil {
			return nil, fmt.Errorf("stage %s: %w", stages[i].name, err)
		}
		r, err := w.read()
		if err != nil {
			return nil, err
		}
		if found := w.examine(); len(found) > 0 {
			return nil, fmt.Errorf("stage %s: the doctor finds %q", stages[i].name, found)
		}
		m.records, m.calls = append(m.records, r), append(m.calls, counting.all)
	}
	return m, nil
}

// crash runs the stage from its beginning with the fault, and returns all differences from the model.
func (w *world) crash(stages []stage, m *model, c crash) (violations []string, struck int) {
	w.restore(fmt.Sprint("before", c.stage))
	f := newFault(c.kind, c.k, w)
	if c.then != nil {
		f.then = newFault(c.then.kind, c.then.k, w)
	}
	err := w.run(&stages[c.stage], f)
	if err != nil {
		violations = append(violations, err.Error())
	}
	r, err := w.read()
	if err != nil {
		return append(violations, err.Error()), f.struck()
	}
	violations = append(violations, r.differences(m.records[c.stage])...)
	if prove.Whole() {
		violations = append(violations, w.examine()...)
	}
	if len(violations) > 0 {
		text := strings.Join(strings.Fields(f.hit.SQL), " ")
		violations = slices.Insert(violations, 0, fmt.Sprintf("%s: %s %.120s", c.name(stages), f.hit.Kind, text))
	}
	return violations, f.struck()
}

// examine returns the problems that the doctor finds in the ledger. There may be none, whatever happens to a pass.
func (w *world) examine() (found []string) {
	r, err := doctor.Examine(context.Background(), w.d.Store, doctor.Options{Clock: w.d.Clock.Now, Version: "test"})
	if err != nil {
		return []string{err.Error()}
	}
	for _, f := range r.Findings {
		if f.Level == doctor.Wrong && (w.twin == nil || f.Check != "keys") { // a twin may be without them
			found = append(found, fmt.Sprintf("%s: job %s: %s", f.Check, f.Job, f.Problem))
		}
	}
	return found
}

// every lists each call of the course with each fault.
func (m *model) every() []crash { return m.with(faultKinds...) }

// with lists each call of the course with each of these faults.
func (m *model) with(kinds ...faultKind) []crash {
	var list []crash
	for i, calls := range m.calls {
		for k := range calls {
			for _, kind := range kinds {
				list = append(list, crash{stage: i, k: k + 1, kind: kind})
			}
		}
	}
	return list
}

// sample takes some crashes of a list, and all of them in the long form.
func sample(list []crash, most int) []crash {
	if prove.Whole() {
		return list
	}
	return spread(list, most)
}

// spread takes some of a list, evenly.
func spread[T any](list []T, most int) []T {
	if len(list) <= most || most < 1 {
		return list[:max(0, min(most, len(list)))]
	}
	stride := (len(list) + most - 1) / most
	if crashes, is := any(list).([]crash); is {
		for kinds := kindsOf(crashes); kinds > 1 && stride%kinds == 0; { // their number is a prime number
			stride++
		}
	}
	var out []T
	for i := stride / 2; i < len(list); i += stride {
		out = append(out, list[i])
	}
	return out
}

// kindsOf returns the number of different faults.
func kindsOf(list []crash) int {
	kinds := map[faultKind]bool{}
	for _, c := range list {
		kinds[c.kind] = true
	}
	return len(kinds)
}

// unbrokenWorlds makes databases side by side, each with the same unbroken course.
func unbrokenWorlds(t *testing.T, engine string, stages []stage, n int) ([]*world, []*model) {
	t.Helper()
	worlds, models := make([]*world, n), make([]*model, n)
	for i := range worlds {
		worlds[i] = newWorld(t, engine, nil)
		var err error
		if models[i], err = worlds[i].unbroken(stages); err != nil {
			t.Fatal(err)
		}
		last := len(stages) - 1
		mine, _ := models[i].count()
		first, _ := models[0].count()
		other := !slices.Equal(mine, first) && stages[last].beside == 0
		if d := models[i].records[last].differences(models[0].records[last]); len(d) > 0 || other {
			t.Fatalf("two unbroken courses differ: %d and %d calls: %q", mine, first, d)
		}
	}
	return worlds, models
}

// bounded is the number of crashes that a run of the tests tries on each engine. The long form tries all.
var bounded = map[string]int{"sqlite": 18, "postgres": 8, "mariadb": 8}

// sideBySide is the number of courses that run at once. On a server, most of the time goes in waiting.
// The bounded form has so few courses that a second world costs more than it saves. On SQLite the
// second world is there to be compared with the first.
func sideBySide(engine string) int {
	switch {
	case engine == "sqlite":
		return 2
	case !prove.Whole():
		return 1
	}
	return 5
}

// share lets n workers do the items of a list.
func share[T any](n int, list []T, do func(worker int, item T)) {
	var group sync.WaitGroup
	next := make(chan T)
	for i := range n {
		group.Go(func() {
			for item := range next {
				do(i, item)
			}
		})
	}
	for _, item := range list {
		next <- item
	}
	close(next)
	group.Wait()
}

// crashes breaks courses as choose says, and prints the counts.
func crashes(t *testing.T, engine string, stages []stage, choose func(w *world, m *model) []crash) {
	t.Helper()
	worlds, models := unbrokenWorlds(t, engine, stages, sideBySide(engine))
	list := choose(worlds[0], models[0])
	if one := os.Getenv("DBJOBS_CRASH"); one != "" {
		list = slices.DeleteFunc(list, func(c crash) bool { return engine+"/"+c.name(stages) != one })
	}
	var mu sync.Mutex
	tried, broken, found := 0, 0, 0
	share(len(worlds), list, func(i int, c crash) {
		violations, struck := worlds[i].crash(stages, models[i], c)
		mu.Lock()
		defer mu.Unlock()
		broken += struck
		tried++
		if len(violations) > 0 {
			found++
			t.Errorf("%s/%s", engine, strings.Join(violations, "\n  "))
		}
	})
	_, calls := models[0].count()
	t.Logf("crash: %s: %d calls x %d faults; %d courses tried, %d calls broken: %d violations", engine, calls, kindsOf(list), tried, broken, found)
}

// A course of passes is broken at each of its calls in each way. It must leave what the unbroken
// course leaves: nothing is decided twice, lost or early, and nothing that takes effect once does so
// twice. DBJOBS_CRASH=engine/stage/call/fault, as a violation names it, runs that crash alone. With
// DBJOBS_PROVE=1 it may be any crash.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	crashesOn(t, storetest.Engines(t), stagesOf, 1)
}

// crashesOn breaks a course at each call on engines. The bounded form tries the number of calls that is bounded for the
// engine, divided by parts.
func crashesOn(t *testing.T, engines []string, stages func(engine string) []stage, parts int) {
	for _, e := range engines {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			crashes(t, e, stages(e), func(_ *world, m *model) []crash {
				if len(m.records) == len(rich()) {
					m.skips(t)
				}
				return sample(m.every(), bounded[storetest.Dialect(e)]/parts)
			})
		})
	}
}

// The same for jobs that share a cap, and for signs of life. On a server this takes long, so the long
// form tries a part.
func TestCrashAtEveryCallOfAGroup(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			crashes(t, e, sharing(), func(_ *world, m *model) []crash {
				list := m.every()
				if e != "sqlite" {
					list = spread(list, 300)
				}
				return sample(list, bounded[storetest.Dialect(e)]/2)
			})
		})
	}
}

// If a trigger is silent, the host's hook has one run, whatever breaks in the pass that finds the silence.
func TestCrashAtEveryCallOfASilence(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.EnginesFor(t, t.Name()) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			crashes(t, e, silence(), func(_ *world, m *model) []crash {
				told := 0
				for key := range m.records[1].runs {
					if strings.HasPrefix(key, "told hook:late") {
						told++
					}
				}
				if told != 1 {
					t.Fatalf("the unbroken course has %d runs of the hook: %v", told, m.records[1].runs)
				}
				list := slices.DeleteFunc(m.every(), func(c crash) bool { return c.stage == 0 })
				return sample(list, bounded[storetest.Dialect(e)])
			})
		})
	}
}

// The same with four runs side by side, with signs of life. The k-th call is another one each time,
// but the result is the same.
func TestCrashSideBySide(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			stages := stagesOf(e)
			for i := range stages {
				stages[i].beside = 4
			}
			crashes(t, e, stages, func(_ *world, m *model) []crash {
				if e == "sqlite" {
					return sample(m.every(), bounded[storetest.Dialect(e)]/2)
				}
				return sample(spread(m.every(), 500), bounded[storetest.Dialect(e)]/2)
			})
		})
	}
}

// Two faults in one course, the second one up to 60 calls after the first. They are drawn by a seed
// that is always the same.
func TestCrashTwice(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			crashes(t, e, stagesOf(e), func(_ *world, m *model) []crash {
				draw := rand.New(rand.NewPCG(6, 10))
				list := m.every()
				out := make([]crash, prove.Cases(bounded[storetest.Dialect(e)], 2000))
				for i := range out {
					out[i] = list[draw.IntN(len(list))]
					out[i].then = &crash{k: 1 + draw.IntN(60), kind: faultKinds[draw.IntN(len(faultKinds))]}
				}
				return out
			})
		})
	}
}
