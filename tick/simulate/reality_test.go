package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/simulate"
)

// reality makes real passes by a clock that the test moves. It is also the worker of the queue.
type reality struct {
	*world
	keys
	d    *storetest.DB
	pass *tick.Tick
	held []*holding
	gone map[string]bool // jobs that were removed when they were done: nobody can read their gaps
}

type holding struct {
	task  store.Task
	end   time.Time
	fails bool
}

func (w *world) real(d *storetest.DB) *reality {
	r := &reality{world: w, keys: keys{w, map[string]string{}}, d: d}
	r.pass = &tick.Tick{Store: d.Store, Name: "simulated", Holder: "simulated", Version: "test", Now: d.Clock.Now, Concurrency: 1, Executors: executor.Registry{"sql": r}}
	d.Clock.Set(w.start)
	r.gone = map[string]bool{}
	if _, err := d.Apply(w.t.Context(), w.defs, store.ApplyOptions{Start: decide.Start}); err != nil {
		w.t.Fatal(err)
	}
	jobs, err := d.Jobs(w.t.Context(), store.JobFilter{})
	r.must(err)
	for i := range jobs {
		w.names[jobs[i].ID] = jobs[i].Name
	}
	return r
}

func (r *reality) must(err error) {
	if err != nil {
		r.t.Helper()
		r.t.Fatal(err)
	}
}

// Execute returns at once.
func (r *reality) Execute(_ context.Context, q executor.Request) (executor.Result, error) {
	if _, fails := r.outcome(&r.keys, &q.Task.Run); fails && q.Task.Run.Step == 1 {
		return executor.Result{}, errors.New("it fails")
	}
	return executor.Result{}, nil
}

var worker = store.Holder{Name: "worker", Lease: 20 * 365 * 24 * time.Hour}

// until lets the time pass, with a pass at each time of the trigger, except in outages.
func (r *reality) until(from, to time.Time, o simulate.Options) {
	for now := from; now.Before(to); now = now.Add(o.Every) {
		r.endUntil(now)
		if down := slices.ContainsFunc(o.Down, func(d simulate.Outage) bool { return !now.Before(d.From) && now.Before(d.To) }); down {
			continue
		}
		r.d.Clock.Set(now)
		report, err := r.pass.Run(r.t.Context())
		r.must(err)
		if len(report.Parked) > 0 {
			r.t.Fatalf("%s: %v", now, report.Parked)
		}
		tasks, err := r.d.Take(r.t.Context(), "worker", 10_000, worker)
		r.must(err)
		for _, task := range tasks {
			took, fails := r.outcome(&r.keys, &task.Run)
			r.held = append(r.held, &holding{task, now.Add(took), fails})
		}
		runs, err := r.d.Runs(r.t.Context(), store.RunFilter{States: []string{store.Running}, Limit: 10_000})
		r.must(err)
		for i := range runs {
			if !runs[i].CancelAt.IsZero() {
				r.end(runs[i].ID, store.StepEnd{State: store.Cancelled, Final: store.Cancelled})
			}
		}
	}
	r.endUntil(to.Add(-1))
	r.d.Clock.Set(to)
}

// endUntil ends the runs that the worker has and that end until then, in their order.
func (r *reality) endUntil(now time.Time) {
	for {
		slices.SortStableFunc(r.held, func(x, y *holding) int { return x.end.Compare(y.end) })
		if len(r.held) == 0 || r.held[0].end.After(now) {
			return
		}
		h := r.held[0]
		r.d.Clock.Set(h.end)
		for h.task.Run.State == store.Running {
			step := h.task.StepAt(h.task.Run.Step)
			e := decide.Follow(&h.task, step.OnSuccess, store.Succeeded)
			e.State = store.Succeeded
			if h.fails {
				e = decide.AfterFailure(&h.task, step, true, func(time.Duration) time.Duration { return 0 })
				e.State, h.fails = store.Failed, false
			}
			r.must(r.d.EndStep(r.t.Context(), &h.task, e, worker))
		}
		r.held = r.held[1:]
	}
}

// end ends a run that the worker has.
func (r *reality) end(id string, e store.StepEnd) {
	i := slices.IndexFunc(r.held, func(h *holding) bool { return h.task.Run.ID == id })
	r.must(r.d.EndStep(r.t.Context(), &r.held[i].task, e, worker))
	r.held = slices.Delete(r.held, i, i+1)
}

// ledger returns the rows on record, without some of the runs.
func (r *reality) ledger(without map[string]bool) []string {
	runs, err := r.d.Runs(r.t.Context(), store.RunFilter{Limit: 1 << 30})
	r.must(err)
	slices.SortFunc(runs, func(x, y store.Run) int { return strings.Compare(x.ID, y.ID) })
	for i := range runs {
		r.of(&runs[i]) // other runs are named by these keys
	}
	runs = slices.DeleteFunc(runs, func(x store.Run) bool { return without[x.ID] })
	var gaps []store.Gap
	for _, name := range r.names {
		if _, err := r.d.Job(r.t.Context(), name); errors.Is(err, store.ErrNotFound) {
			r.gone[name] = true
			continue
		}
		list, err := r.d.Gaps(r.t.Context(), name, 1<<30)
		r.must(err)
		for i := range list {
			gaps = append(gaps, list[i].Gap)
		}
	}
	return r.tell(&r.keys, runs, gaps)
}

func (w *world) tell(k *keys, runs []store.Run, gaps []store.Gap) (lines []string) {
	taken := map[string]bool{}
	for i := range runs {
		if lines = append(lines, k.line(&runs[i])); !runs[i].ScheduledFor.IsZero() {
			taken[fmt.Sprintf("%s %s", runs[i].Job, runs[i].ScheduledFor.Format(time.RFC3339))] = true
		}
	}
	for i := range gaps {
		lines = append(lines, w.gapLines(&gaps[i], taken)...)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
