package tick_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// retries open a run again: by the command, and by the routine where there is one.
var retries = map[string]func(t *testing.T, d *storetest.DB, run, from string) error{
	"the command": func(t *testing.T, d *storetest.DB, run, from string) error {
		_, err := d.RetryRun(t.Context(), run, from, store.Author{})
		return err
	},
	"the routine": func(t *testing.T, d *storetest.DB, run, from string) error {
		call := map[string]string{"postgres": "SELECT dbjobs.retry('" + run + "', '" + from + "')", "mariadb": "CALL dbjobs_retry('" + run + "', '" + from + "', NULL)"}[d.Engine]
		_, err := d.SQL.ExecContext(t.Context(), call)
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET ready_at = created_at WHERE state = 'waiting'") // the routine has the clock of the server
		return err
	},
}

// applySteps applies a job with steps of these names. The one that is broken fails.
func applySteps(t *testing.T, d *storetest.DB, broken, names string) {
	t.Helper()
	j := store.Job{Name: "job"}
	for name := range strings.FieldsSeq(names) {
		step := ticktest.Nop(name)
		if name == broken {
			step = ticktest.Step(name, "SELECT * FROM nowhere")
		}
		j.Steps = append(j.Steps, step)
	}
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
}

// done returns the steps of the last run that have succeeded, in their order.
func done(t *testing.T, d *storetest.DB) string {
	t.Helper()
	var names []string
	for _, a := range ticktest.LastRun(t, d, "job").Tries {
		if a.State == store.Succeeded {
			names = append(names, a.StepName)
		}
	}
	return strings.Join(names, " ")
}

// wantDone looks at the steps of the last run that have succeeded. It has failed if its step load is gone, and says so.
func wantDone(t *testing.T, d *storetest.DB, by, want string, gone bool) {
	t.Helper()
	state := store.Succeeded
	if gone {
		state = store.Failed
	}
	if r := ticktest.LastRun(t, d, "job"); r.State != state || done(t, d) != want || gone && !strings.Contains(r.Error, `"load"`) {
		t.Errorf("%s: %s: %q, want %q; %s", by, r.State, done(t, d), want, r.Error)
	}
}

// A run that is opened again continues at the step in which it ended, wherever that step is by now. A run whose step is gone is
// refused: another step would be left out, or executed a second time, without a word.
func TestRetryFindsTheStepByItsName(t *testing.T) {
	const gone = "gone"
	for after, want := range map[string]string{
		"fetch load tell":       "fetch load tell",
		"load tell":             "fetch load tell",
		"check fetch load tell": "fetch load tell",
		"tell load":             "fetch load",
		"fetch tell":            gone,
		"fetch":                 gone,
	} {
		for by, retry := range retries {
			t.Run(by+", then "+after, func(t *testing.T) {
				storetest.Each(t, func(t *testing.T, d *storetest.DB) {
					if by == "the routine" && d.Engine == "sqlite" {
						return
					}
					applySteps(t, d, "load", "fetch load tell")
					run := ticktest.RunNow(t, d, "job", store.Request{})
					ticktest.Run(t, d)
					applySteps(t, d, "", after)
					err := retry(t, d, run.ID, "")
					if want == gone {
						if err == nil || !strings.Contains(err.Error(), "load") || ticktest.LastRun(t, d, "job").State != store.Failed {
							t.Errorf("%v; want a refusal that names the step", err)
						}
						if err := retry(t, d, run.ID, "fetch"); err != nil {
							t.Error(err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					ticktest.Run(t, d)
					if got := done(t, d); ticktest.LastRun(t, d, "job").State != store.Succeeded || got != want {
						t.Errorf("%s: %q, want %q", ticktest.LastRun(t, d, "job").State, got, want)
					}
				})
			})
		}
	}
}

// The same for a run that tries its step again by itself. Where the step is gone, the run ends, and says so.
func TestRetryByItselfFindsTheStepByItsName(t *testing.T) {
	for after, want := range map[string]string{
		"fetch load tell":       "fetch load tell",
		"load tell":             "fetch load tell",
		"check fetch load tell": "fetch load tell",
		"tell load":             "fetch load",
		"fetch tell":            "fetch",
		"fetch":                 "fetch",
	} {
		t.Run(after, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				applySteps(t, d, "load", "fetch load tell")
				d.Exec(t, "UPDATE "+d.Table("jobs")+" SET retry_attempts = 2")
				run := ticktest.RunNow(t, d, "job", store.Request{})
				ticktest.Run(t, d)
				applySteps(t, d, "", after)
				d.Clock.Add(time.Hour)
				ticktest.Run(t, d)
				gone := want == "fetch"
				wantDone(t, d, "by itself", want, gone)
				if gone {
					if err := retries["the command"](t, d, run.ID, "fetch"); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// The same for a run that somebody told with which step to begin, where the edit comes before it begins: a request, or a run that was
// opened again. Nobody who chose a step by its name wants the one that has its place by then.
func TestStepThatWasChosenIsFoundByItsName(t *testing.T) {
	for after, want := range map[string]string{
		"fetch load tell":       "load tell",
		"load tell":             "load tell",
		"check fetch load tell": "load tell",
		"tell load":             "load",
		"fetch tell":            "",
	} {
		t.Run(after, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				choose := map[string]func(){"by a request": func() {
					ticktest.RunNow(t, d, "job", store.Request{FromStep: "load"})
				}}
				for by, retry := range retries {
					if by == "the routine" && d.Engine == "sqlite" {
						continue
					}
					choose["opened again by "+by] = func() {
						run := ticktest.RunNow(t, d, "job", store.Request{})
						d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'cancelled', settled_at = created_at WHERE id = '"+run.ID+"'")
						if err := retry(t, d, run.ID, "load"); err != nil {
							t.Fatal(err)
						}
					}
				}
				for by, chosen := range choose {
					applySteps(t, d, "", "fetch load tell")
					chosen()
					applySteps(t, d, "", after)
					d.Clock.Add(time.Minute)
					ticktest.Run(t, d)
					wantDone(t, d, by, want, want == "")
				}
			})
		})
	}
}

// A take that has moved the step, and is given back before it begins, leaves the run with the name of the step.
func TestStepMovedByATakeThatIsGivenBackIsFoundByItsName(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		applySteps(t, d, "load", "fetch load tell")
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET retry_attempts = 2")
		ticktest.RunNow(t, d, "job", store.Request{})
		ticktest.Run(t, d)
		applySteps(t, d, "", "check fetch load tell")
		d.Clock.Add(time.Hour)
		ticktest.DecideOnly(t, d)
		tasks, err := d.Take(t.Context(), "tick", 1, store.Holder{Name: "h", Lease: time.Minute})
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, len(tasks))
		}
		if given, err := d.GiveBack(t.Context(), []*store.Task{&tasks[0]}); err != nil || len(given) != 1 {
			t.Fatal(err, len(given))
		}
		applySteps(t, d, "", "load tell")
		ticktest.Run(t, d)
		if got, want := done(t, d), "fetch load tell"; ticktest.LastRun(t, d, "job").State != store.Succeeded || got != want {
			t.Errorf("%s: %q, want %q", ticktest.LastRun(t, d, "job").State, got, want)
		}
	})
}

// A step without a name is called by its place. If an edit has changed other steps than this one since the run began, the step of
// that name may be another one, and the retry is refused, also where the edit came before the run was in that step: a pass keeps to
// the steps that it has read. The repair of the step itself, and what is no step, leave it at its place.
func TestRetryOfAStepWithoutANameAsksAfterAnEdit(t *testing.T) {
	apply := func(t *testing.T, d *storetest.DB, timeout store.Duration, texts string) {
		t.Helper()
		j := store.Job{Name: "job", Timeout: timeout}
		for text := range strings.FieldsSeq(texts) {
			step := ticktest.Step("", "SELECT "+strings.ReplaceAll(text, "broken", "* FROM nowhere"))
			if text == "edit" {
				step = ticktest.Call("")
			}
			j.Steps = append(j.Steps, step)
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
	}
	for _, c := range []struct {
		was, then, from string
		refused         bool
	}{
		{"broken", "2", "step 1", false},
		{"broken", "1 broken", "step 1", true},
		{"1 broken 3", "1 broken 3", "step 2", false},
		{"1 broken 3", "1 2 3", "step 2", false},
		{"1 broken 3", "0 1 broken 3", "step 2", true},
		{"1 broken 3", "broken 3", "step 2", true},
		{"1 broken 3", "broken 1 3", "step 2", true},
		{"1 broken 3", "1 3 4", "step 2", true},
		{"edit broken 3", "0 edit broken 3", "step 2", true},
		{"edit broken 3", "broken 3", "step 2", true},
		{"edit broken 3", "edit 2 3", "step 2", false},
	} {
		for by, retry := range retries {
			t.Run(by+", "+c.was+", then "+c.then, func(t *testing.T) {
				storetest.Each(t, func(t *testing.T, d *storetest.DB) {
					if by == "the routine" && d.Engine == "sqlite" {
						return
					}
					apply(t, d, 0, c.was)
					d.Clock.Add(time.Minute)
					run := ticktest.RunNow(t, d, "job", store.Request{})
					edit := func() {
						d.Clock.Add(time.Minute)
						apply(t, d, 0, c.then)
						d.Clock.Add(time.Minute)
						apply(t, d, store.Duration(time.Hour), c.then)
					}
					ticktest.Pass(t, ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
						edit()
						d.Clock.Add(time.Minute)
						return executor.Result{}, nil
					}))
					if !strings.Contains(c.was, "edit") {
						edit()
					}
					err := retry(t, d, run.ID, "")
					if c.refused && (err == nil || !strings.Contains(err.Error(), "no name of its own") || ticktest.LastRun(t, d, "job").State != store.Failed) {
						t.Errorf("%v; want a refusal that says that the step has no name", err)
					}
					if c.refused {
						err = retry(t, d, run.ID, c.from)
					}
					if err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// What a step is does not depend on who wrote it down: between an edit by a command and one by a routine, in any order, the other
// steps are as they were, unless an edit has changed them.
func TestRetryAfterEditsByACommandAndByARoutine(t *testing.T) {
	attempts, backoff, jitter := store.Attempts(2), store.Duration(90*time.Minute), 0
	rich := ticktest.Step("", "SELECT 'ü \"<&> \\ ' WHERE 1 < 2", "SELECT 1")
	rich.Timeout, rich.Retry, rich.OnFailure = store.Duration(time.Hour), store.Retry{Attempts: &attempts, Backoff: &backoff, Jitter: &jitter}, "next"
	broken, other := ticktest.Step("", "SELECT * FROM nowhere"), ticktest.StepWith(true, "SELECT 1", 1.5, "${run_id}")
	apply := func(t *testing.T, d *storetest.DB, timeout store.Duration, steps ...store.Step) {
		t.Helper()
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Timeout: timeout, Steps: steps}}})
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		routine := map[string]string{"postgres": `SELECT dbjobs.alter_job('job', '{"priority": %d}')`, "mariadb": `CALL dbjobs_alter_job('job', '{"priority": %d}', NULL)`}[d.Engine]
		if routine == "" {
			return
		}
		priority := 3
		for by, retry := range retries {
			for _, order := range []string{"command routine", "routine command"} {
				for _, moved := range []bool{false, true} {
					apply(t, d, 0, rich, broken)
					run := ticktest.RunNow(t, d, "job", store.Request{})
					ticktest.Run(t, d)
					for who := range strings.FieldsSeq(order) {
						d.Clock.Add(time.Minute)
						switch {
						case who == "routine":
							priority++
							d.Exec(t, fmt.Sprintf(routine, priority))
							now := ticktest.Literal(d, d.Clock.Now()) // the routine has the clock of the server
							d.Exec(t, "UPDATE "+d.Table("changes")+" SET changed_at = "+now+" WHERE changed_at > "+now)
						case moved:
							apply(t, d, store.Duration(time.Hour), rich, broken, other)
						default:
							apply(t, d, store.Duration(time.Hour), rich, broken)
						}
					}
					if err := retry(t, d, run.ID, ""); (err != nil) != moved || moved && !strings.Contains(err.Error(), "no name of its own") {
						t.Errorf("%s after %s, moved: %t: %v", by, order, moved, err)
					}
					if _, err := d.AbortJob(t.Context(), "job", true, store.Author{}); err != nil {
						t.Fatal(err)
					}
					ticktest.Run(t, d)
					d.Clock.Add(time.Minute)
				}
			}
		}
	})
}

// A run that was opened again at a step, and was cancelled before it began, continues at that step.
func TestRetryKeepsTheStepThatWasChosen(t *testing.T) {
	for by, retry := range retries {
		t.Run(by, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				if by == "the routine" && d.Engine == "sqlite" {
					return
				}
				applySteps(t, d, "load", "fetch load tell")
				run := ticktest.RunNow(t, d, "job", store.Request{})
				ticktest.Run(t, d)
				applySteps(t, d, "", "load tell")
				for _, from := range []string{"tell", ""} {
					if err := retry(t, d, run.ID, from); err != nil {
						t.Fatal(err)
					}
					if _, err := d.CancelRun(t.Context(), run.ID, store.Author{}); err != nil {
						t.Fatal(err)
					}
					ticktest.Run(t, d)
				}
				if got := ticktest.LastRun(t, d, "job"); got.State != store.Cancelled || got.Step != 2 {
					t.Errorf("%s at step %d; want it to be cancelled at step 2", got.State, got.Step)
				}
			})
		})
	}
}
