package simulate_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide/model"
	"github.com/dbjobs/dbjobs/tick/simulate"
)

// world is a random set of definitions, with the outcomes of the runs, which both ledgers of it have in common.
type world struct {
	t     *testing.T
	defs  store.Definitions
	start time.Time
	fails map[string]int // per cent of the attempts, by job
	slow  map[string]bool
	names map[int64]string
}

// newWorld makes a world with all policies: those of the model's jobs, and groups, chains, hooks, repetition, and steps
// that lead to other steps.
func newWorld(t *testing.T, seed uint64, jobs int) *world {
	s := model.NewScenario(seed*model.Crowd, jobs)
	rng := rand.New(rand.NewPCG(seed, 29))
	w := &world{t: t, start: s.Start.Truncate(time.Minute), fails: map[string]int{}, slow: map[string]bool{}, names: map[int64]string{}}
	for i, r := range s.Shared {
		w.defs.Schedules = append(w.defs.Schedules, r.Schedule(model.SharedName(i)))
	}
	for i, c := range s.Calendars {
		w.defs.Calendars = append(w.defs.Calendars, c.Define(i+1))
	}
	w.defs.Groups = []store.Group{{Name: "one", MaxRunning: 1}, {Name: "two", MaxRunning: 2}}
	for i := range s.Jobs {
		m := &s.Jobs[i]
		j := m.Define(m.Policy, m.Links)
		if m.Own != nil {
			own := m.Own.Schedule("")
			j.Own = &own
		}
		w.vary(rng, m, &j, i)
		w.defs.Jobs = append(w.defs.Jobs, j)
	}
	return w
}

func (w *world) vary(rng *rand.Rand, m *model.Job, j *store.Job, i int) {
	name := func(i int) string { return w.defs.Jobs[i].Name }
	j.Keep = store.Keep{Runs: 1_000_000, Age: store.Duration(10 * 365 * 24 * time.Hour)}
	j.Description, j.OnStartup = "", false
	if w.slow[j.Name] = m.Worker; rng.IntN(4) == 0 {
		j.Group, j.Priority = []string{"one", "two"}[rng.IntN(2)], i
	}
	if rng.IntN(3) == 0 {
		w.fails[j.Name] = rng.IntN(70)
	}
	if n := store.Attempts(1 + rng.IntN(3)); m.Worker {
		j.Retry.Attempts = &n
	}
	switch x := rng.IntN(10); {
	case x == 0:
		j.Own, j.Schedules, j.RepeatAfter, j.Start, j.StartZone, j.NotBefore = nil, nil, store.Duration(time.Duration(1+rng.IntN(300))*time.Minute), "", "", time.Time{}
		if *j.Retry.Attempts == 0 {
			*j.Retry.Attempts = 2
		}
	case x < 4 && i > 1:
		j.Own, j.Schedules, j.Start, j.StartZone = nil, nil, "", ""
		j.After = []store.After{{Job: name(rng.IntN(i)), On: []string{store.OnSuccess, store.OnFailure, store.OnEnd}[rng.IntN(3)]}}
		if other := name(rng.IntN(i)); rng.IntN(3) == 0 && other != j.After[0].Job {
			j.After = append(j.After, store.After{Job: other, On: store.OnEnd})
		}
	}
	if i > 0 && rng.IntN(4) == 0 {
		j.On = store.Hooks{Failed: name(0), Missed: name(0), Recovered: name(0), Paused: name(0)}
	}
	if rng.IntN(6) == 0 {
		second := j.Steps[0]
		second.Name, j.Steps[0].Name, j.Steps[0].OnFailure = "second", "first", store.StepNext
		j.Steps = append(j.Steps, second)
	}
	// By a clock that stands still, several runs of a job that one pass makes in several transactions have no order.
	// Then nothing may depend on their order.
	atOnce := slices.ContainsFunc(j.After, func(a store.After) bool { return !w.slow[a.Job] })
	if atOnce || i == 0 {
		j.Overlap, j.MaxRunning, j.Group, j.OnError, j.PauseAfterFailures = store.OverlapAllow, 1000, "", store.OnErrorContinue, 0
		if *j.Retry.Attempts == 0 {
			*j.Retry.Attempts = 2
		}
	}
	if ends := j.Own != nil || len(j.Schedules) > 0; ends && j.MaxRuns > 0 && rng.IntN(3) == 0 {
		j.RemoveDone = true
	}
}

// keys name runs in the same way in both ledgers: by occurrences, which have the keys of other runs instead of their
// ids.
type keys struct {
	w    *world
	byID map[string]string
}

func (k *keys) of(r *store.Run) string {
	if key, ok := k.byID[r.ID]; ok {
		return key
	}
	occurrence := r.Occurrence
	for _, other := range []string{r.Predecessor(), r.Meets()} {
		if key, ok := k.byID[other]; ok {
			occurrence = strings.Replace(occurrence, other, "("+key+")", 1)
		}
	}
	if kind, rest, ok := strings.Cut(r.Event(), ":"); ok {
		id, rest, _ := strings.Cut(rest, ":")
		about := k.byID[id]
		if n, err := strconv.ParseInt(id, 10, 64); err == nil && kind == store.EventMissed {
			about = k.w.names[n]
		}
		occurrence = fmt.Sprintf("hook %s %s %s", kind, about, rest)
	}
	key := fmt.Sprintf("%s %s", r.Job, occurrence)
	k.byID[r.ID] = key
	return key
}

// outcome returns the outcome of an attempt. It is the same in both ledgers.
func (w *world) outcome(k *keys, r *store.Run) (took time.Duration, fails bool) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", k.of(r), r.Fence)
	n := h.Sum64() >> 8
	if fails = int(n%100) < w.fails[r.Job]; !w.slow[r.Job] {
		return 0, fails
	}
	most := []int{600, 600, 3 * 3600, 20 * 3600}[n>>16%4]
	return time.Duration(1+int(n>>24%uint64(most))) * time.Second, fails
}

// line writes a run in the form in which the ledgers are compared.
func (k *keys) line(r *store.Run) string {
	x := *r
	x.Occurrence, x.HeldBy = k.of(r), ""
	if x.Requested() && r.ScheduledFor.IsZero() {
		x.Number = 0 // of two runs that are made at one instant, either may be the first
	}
	return r.Job + " " + model.RunLine(&x)
}

// gapLines returns the nominal times of a gap.
func (w *world) gapLines(g *store.Gap, taken map[string]bool) (list []string) {
	r, err := rules.Parse(g.Rule, rules.Defaults{})
	if err != nil {
		w.t.Fatal(err)
	}
	for t, err := r.Next(g.From); !t.IsZero() && !t.After(g.Through); t, err = r.Next(t) {
		if err != nil {
			w.t.Fatal(err)
		}
		if line := fmt.Sprintf("%s %s", w.names[g.JobID], t.Format(time.RFC3339)); !taken[line] {
			list = append(list, fmt.Sprintf("%s gap %s %s", line, g.Reason, g.Rule))
		}
	}
	return list
}

// simulated returns the same lines from a simulation.
func (w *world) simulated(in simulate.Input, known *keys, o simulate.Options) []string {
	k := &keys{w, map[string]string{}}
	if known != nil {
		for id, key := range known.byID {
			k.byID[id] = key
		}
	}
	var runs []store.Run
	var gaps []store.Gap
	o.Outcome = func(_ *simulate.Job, r *store.Run) (time.Duration, bool) { return w.outcome(k, r) }
	o.Run = func(r store.Run) { runs = append(runs, r) }
	o.Gap = func(g store.Gap) { gaps = append(gaps, g) }
	if _, err := simulate.Run(w.t.Context(), in, o); err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(runs, func(x, y store.Run) int { return strings.Compare(x.ID, y.ID) })
	return w.tell(k, runs, gaps)
}

// outages returns some outages within a time.
func outages(rng *rand.Rand, from, to time.Time) (list []simulate.Outage) {
	for at := from; ; {
		at = at.Add(time.Duration(1+rng.Int64N(int64(to.Sub(from)/3)/int64(time.Second))) * time.Second)
		end := at.Add(time.Duration(1+rng.IntN(20*3600)) * time.Second)
		if !end.Before(to) {
			return list
		}
		list = append(list, simulate.Outage{From: at, To: end})
		at = end
	}
}

func differences(want, got []string) string {
	var b strings.Builder
	n := 0
	for _, line := range want {
		if _, found := slices.BinarySearch(got, line); !found && n < 12 {
			n++
			fmt.Fprintf(&b, "passes alone:     %s\n", line)
		}
	}
	n = 0
	for _, line := range got {
		if _, found := slices.BinarySearch(want, line); !found && n < 12 {
			n++
			fmt.Fprintf(&b, "simulation alone: %s\n", line)
		}
	}
	return b.String()
}

// A simulation from a database has the same runs and gaps as real passes by the same clock. This is true from the
// beginning, and also from the middle, with the runs that are open then.
func TestSimulationsEqualPasses(t *testing.T) {
	for _, row := range []struct {
		name      string
		jobs      int
		every, of time.Duration
	}{
		{"a month", 15, time.Hour, 30 * 24 * time.Hour},
		{"a day", 40, 2 * time.Minute, 24 * time.Hour},
	} {
		for seed := range uint64(prove.Cases(1, 20)) {
			t.Run(fmt.Sprint(row.name, " ", seed), func(t *testing.T) {
				storetest.Each(t, func(t *testing.T, d *storetest.DB) {
					of := row.of
					if d.Engine != "sqlite" {
						of /= 8 // it is the same program; only the way in which rows are read may differ
					}
					equal(t, d, newWorld(t, seed, row.jobs), seed, row.every, of)
				})
			})
		}
	}
}

func equal(t *testing.T, d *storetest.DB, w *world, seed uint64, every, of time.Duration) {
	r := w.real(d)
	o := simulate.Options{From: w.start, To: w.start.Add(of), Every: every}
	o.Down = outages(rand.New(rand.NewPCG(seed, 3)), o.From, o.To)
	whole := w.simulated(r.read(o.From), nil, o)

	middle := w.start.Add(of / 2).Truncate(every).Add(every)
	r.until(w.start.Add(every-1).Truncate(every), middle, o)
	settled := r.settled()
	o.From = middle
	half := w.simulated(r.read(middle), &r.keys, o)
	before := r.ledger(nil)
	r.until(middle, o.To, o)

	want := r.ledger(nil)
	if text := differences(want, r.seen(whole)); text != "" || len(want) < 15 {
		t.Errorf("of %d lines:\n%s", len(want), text)
	}
	want = added(before, r.ledger(settled))
	if text := differences(want, r.seen(half)); text != "" || len(want) < 10 {
		t.Errorf("from the middle, of %d lines:\n%s", len(want), text)
	}
}

// added leaves out the gaps that existed before.
func added(before, now []string) []string {
	return slices.DeleteFunc(now, func(line string) bool {
		_, old := slices.BinarySearch(before, line)
		return gapLine(line) && old
	})
}

// read returns the input of a simulation.
func (r *reality) read(now time.Time) simulate.Input {
	in, left, err := simulate.Read(r.t.Context(), r.d.Store, now, now)
	if r.must(err); len(left) > 0 {
		r.t.Fatal(left)
	}
	return in
}

// settled returns the runs that no decision looks at any more.
func (r *reality) settled() map[string]bool {
	runs, err := r.d.Runs(r.t.Context(), store.RunFilter{Limit: 1 << 30})
	r.must(err)
	ids := map[string]bool{}
	for i := range runs {
		r.of(&runs[i])
		if !runs[i].SettledAt.IsZero() {
			ids[runs[i].ID] = true
		}
	}
	return ids
}

func gapLine(line string) bool { return strings.Contains(line, " gap ") }

// seen leaves out the gaps of jobs whose gaps nobody can read any more.
func (r *reality) seen(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		job, _, _ := strings.Cut(line, " 20")
		return gapLine(line) && r.gone[job]
	})
}
