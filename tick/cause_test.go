package tick_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A run's error tells the step that failed first, and what that step said, whatever the steps for the alarm do afterwards.
func TestARunsErrorKeepsTheFirstCause(t *testing.T) {
	way := func(s store.Step, success, failure string) store.Step {
		s.OnSuccess, s.OnFailure = success, failure
		return s
	}
	atomic := func(name, text string) store.Step {
		s := ticktest.Step(name, text)
		s.Spec = []byte(strings.Replace(string(s.Spec), "{", `{"atomic":true,`, 1))
		return s
	}
	twice := store.Attempts(2)
	again := ticktest.Call("alert-bang-bang")
	again.Retry.Attempts = &twice
	for name, c := range map[string]struct {
		steps []store.Step
		want  string
	}{
		"one step":            {[]store.Step{ticktest.Call("load-boom")}, "boom"},
		"of several":          {[]store.Step{ticktest.Call("load-boom"), ticktest.Call("sum")}, `step "load-boom": boom`},
		"an alarm that fails": {[]store.Step{way(ticktest.Call("load-boom"), "succeed", "step:alert"), way(ticktest.Call("alert"), "fail", "fail")}, `step "load-boom": boom`},
		"an atomic alarm":     {[]store.Step{way(ticktest.Call("load-boom"), "succeed", "step:alert"), way(atomic("alert", "UPDATE effects SET n = 1"), "fail", "fail")}, `step "load-boom": boom`},
		"an alarm in trouble": {[]store.Step{way(ticktest.Call("load-boom"), "succeed", "step:alert-bang"), way(ticktest.Call("alert-bang"), "fail", "fail")}, `step "load-boom": boom; then step "alert-bang": bang`},
		"two alarms":          {[]store.Step{way(ticktest.Call("load-boom"), "succeed", "next"), way(ticktest.Call("alert-bang"), "fail", "next"), way(ticktest.Call("last"), "fail", "fail")}, `step "load-boom": boom`},
		"a later pass":        {[]store.Step{way(ticktest.Call("load-boom"), "succeed", "step:alert-bang-bang"), way(again, "fail", "fail")}, `step "load-boom": boom; then step "alert-bang-bang": bang`},
		"mended":              {[]store.Step{way(ticktest.Call("load-once"), "step:sum-bang", "step:mend"), way(ticktest.Call("mend"), "step:load-once", "fail"), ticktest.Call("sum-bang")}, `step "sum-bang": bang`},
		"nothing failed":      {[]store.Step{ticktest.Call("load"), way(ticktest.Call("alert"), "fail", "fail")}, `step "alert" has succeeded, and its on_success is fail`},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				d.Exec(t, "CREATE TABLE effects (n int)")
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: c.steps}}})
				seen := map[string]int{}
				tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
					st := r.Task.StepAt(r.Task.Run.Step).Name
					seen[st]++
					switch {
					case strings.Contains(st, "boom"), strings.Contains(st, "once") && seen[st] == 1:
						return executor.Result{}, errors.New("boom")
					case strings.Contains(st, "bang"):
						return executor.Result{}, errors.New("bang")
					}
					return executor.Result{}, nil
				})
				ticktest.Request(t, d, "job")
				var told string
				for range 2 {
					r, err := tk.Run(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if len(r.Runs) > 0 {
						told = r.Runs[0].Error
					}
					d.Clock.Add(time.Hour)
				}
				runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
				if err != nil || len(runs) != 1 || runs[0].State != store.Failed {
					t.Fatalf("%v: %+v", err, runs)
				}
				if runs[0].Error != c.want || told != c.want {
					t.Errorf("on record %q, told %q; want %q", runs[0].Error, told, c.want)
				}
				if jobs, err := d.Jobs(t.Context(), store.JobFilter{}); err != nil || jobs[0].LastError != c.want {
					t.Errorf("of the job: %v, %q", err, jobs[0].LastError)
				}
				detail, err := d.Run(t.Context(), runs[0].ID)
				if err != nil {
					t.Fatal(err)
				}
				for _, try := range detail.Tries {
					if failed := try.State == store.Failed; failed && try.Error != "boom" && try.Error != "bang" {
						t.Errorf("attempt %d: %q; want what the step said", try.Number, try.Error)
					}
				}
			})
		})
	}
}

// A run that is opened again tells what failed since then.
func TestARetriedRunForgetsTheCauseOfBefore(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		load := ticktest.Call("load")
		load.OnFailure = "step:alert"
		alert := ticktest.Call("alert")
		alert.OnSuccess = "fail"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{load, alert, ticktest.Call("sum")}}}})
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			if name := r.Task.StepAt(r.Task.Run.Step).Name; name != "alert" {
				return executor.Result{}, errors.New(name + " is broken")
			}
			return executor.Result{}, nil
		})
		ticktest.Request(t, d, "job")
		first, err := tk.Run(t.Context())
		if err != nil || len(first.Runs) != 1 {
			t.Fatal(err, first)
		}
		id := first.Runs[0].ID
		d.Clock.Add(time.Minute)
		if _, err := d.RetryRun(t.Context(), id, "sum", store.Author{}); err != nil {
			t.Fatal(err)
		}
		if _, err := tk.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r, err := d.Run(t.Context(), id); err != nil || r.Error != `step "sum": sum is broken` {
			t.Fatalf("%v: %q", err, r.Error)
		}
	})
}
