package tick_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A run's error names the step that failed first, with the error of that step, whatever the later alarm steps do.
func TestErrorKeepsTheFirstCause(t *testing.T) {
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
		"nothing failed":      {[]store.Step{ticktest.Call("load"), way(ticktest.Call("alert"), "fail", "fail")}, `step "alert" succeeded, and its on_success is fail`},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
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
					r := ticktest.Pass(t, tk)
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

// A run that is opened again reports the failures since then.
func TestErrorOfARetriedRunIsTheNewOne(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
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
		ticktest.Pass(t, tk)
		if r, err := d.Run(t.Context(), id); err != nil || r.Error != `step "sum": sum is broken` {
			t.Fatalf("%v: %q", err, r.Error)
		}
	})
}

// A report is mailed. It has the error that is on record, whatever the length of the engine's error.
func TestErrorReportedIsTheErrorOnRecord(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		r, err := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{}, errors.New(strings.Repeat("a statement of megabytes ", 40_000) + "\x00")
		}).Run(t.Context())
		if err != nil || r.Failed != 1 {
			t.Fatalf("%v: failed %d", err, r.Failed)
		}
		detail, err := d.Run(t.Context(), r.Runs[0].ID)
		if err != nil || r.Runs[0].Error != detail.Error || len(detail.Error) > 5000 {
			t.Fatalf("%v: %d bytes are reported, %d on record", err, len(r.Runs[0].Error), len(detail.Error))
		}
	})
}

// A run that fails because its step went well says so.
func TestErrorOfARunThatFailsOnSuccess(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		st := ticktest.Step("alarm", "SELECT 1")
		st.OnSuccess = "fail"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{st}}}})
		ticktest.Request(t, d, "job")
		if r := ticktest.Run(t, d); r.Failed != 1 || r.Runs[0].Error != `step "alarm" succeeded, and its on_success is fail` {
			t.Fatalf("%+v", r)
		}
	})
}

// An error text of megabytes is cut, and the end of its run is recorded once.
func TestErrorTextMayBeHuge(t *testing.T) {
	texts := map[string]string{
		"cut within a character": strings.Repeat("x", 3999) + "üüü",
		"not text at all":        "a\x00b\xff\xfe\xc3",
		"not text, and long":     strings.Repeat("\xc3", 5000) + "\x00",
		"megabytes":              strings.Repeat("€", 2<<20),
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		var defs store.Definitions
		for name := range texts {
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, Steps: []store.Step{ticktest.Call("")}})
		}
		ticktest.Apply(t, d, defs)
		for name := range texts {
			ticktest.Request(t, d, name)
		}
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			return executor.Result{}, errors.New(texts[r.Task.Job.Name])
		})
		for range 2 {
			if _, err := tk.Run(t.Context()); err != nil {
				t.Fatalf("%.300s", err.Error())
			}
			d.Clock.Add(5 * time.Minute)
		}
		for name := range texts {
			if got := ticktest.States(t, d, name); !slices.Equal(got, []string{store.Failed}) {
				t.Errorf("%s: %v", name, got)
			}
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")+" WHERE state = 'failed'"); n != len(texts) {
			t.Errorf("%d attempts", n)
		}
	})
}

// Each attempt keeps what its engine says of a failure.
func TestErrorHasWhatTheEngineSays(t *testing.T) {
	type facts struct {
		Code, Severity string
		Line           int
		Detail, Hint   string
	}
	second := "SELECT 1;\n-- a remark: ü\nSELEKT 2" // in simple protocols, the second of one text
	cases := map[string]map[string]struct {
		statements []string
		want       facts
	}{
		"postgres": {
			"syntax":    {[]string{"SELECT 1", "SELECT\n  'ü', 1 +\nFROM nowhere"}, facts{"42601", "ERROR", 3, "", ""}},
			"table":     {[]string{"SELECT 1\nFROM nowhere"}, facts{"42P01", "ERROR", 2, "", ""}},
			"block":     {[]string{"DO $$\nBEGIN\n  PERFORM 1 / 0;\nEND $$"}, facts{"22012", "ERROR", 3, "", ""}},
			"raised":    {[]string{"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'ZZ001'; END $$"}, facts{"ZZ001", "ERROR", 1, "", ""}},
			"unique":    {[]string{"CREATE TABLE u (n int PRIMARY KEY)", "INSERT INTO u VALUES (1), (1)"}, facts{"23505", "ERROR", 0, "Key (n)=(1) already exists.", ""}},
			"severer":   {[]string{"SELECT pg_terminate_backend(pg_backend_pid())"}, facts{"57P01", "FATAL", 0, "", ""}},
			"hint":      {[]string{"DO $$ BEGIN RAISE EXCEPTION 'no' USING DETAIL = 'none is left', HINT = 'wait'; END $$"}, facts{"P0001", "ERROR", 1, "none is left", "wait"}},
			"in a text": {[]string{second}, facts{"42601", "ERROR", 3, "", ""}},
		},
		"mariadb": {
			"syntax": {[]string{"SELECT\n  1\n+ FROM nowhere"}, facts{"1064 (42000)", "", 3, "", ""}},
			"table":  {[]string{"SELECT 1\nFROM nowhere"}, facts{"1146 (42S02)", "", 0, "", ""}},
			"unique": {[]string{"CREATE TABLE u (n int PRIMARY KEY)", "INSERT INTO u VALUES (1), (1)"}, facts{"1062 (23000)", "", 0, "", ""}},
			"raised": {[]string{"CREATE PROCEDURE raises() SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'", "CALL raises()"}, facts{"1644 (45000)", "", 0, "", ""}},
		},
		"sqlite": {
			"syntax": {[]string{"SELECT\n  1\n+ FROM nowhere"}, facts{"1", "", 0, "", ""}},
			"unique": {[]string{"CREATE TABLE u (n int PRIMARY KEY)", "INSERT INTO u VALUES (1), (1)"}, facts{"1555", "", 0, "", ""}},
		},
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		var defs store.Definitions
		for name, c := range cases[d.Engine] {
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, Steps: []store.Step{ticktest.Step("", c.statements...)}})
		}
		defs.Jobs = append(defs.Jobs, store.Job{Name: "counts", Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (1), (2), (3)", "DELETE FROM effects WHERE n > 1")}})
		ticktest.Apply(t, d, defs)
		for _, j := range defs.Jobs {
			ticktest.Request(t, d, j.Name)
		}
		ticktest.Run(t, d)
		attempt := func(job string) store.Attempt {
			t.Helper()
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: job})
			if err != nil || len(runs) != 1 {
				t.Fatal(err, runs)
			}
			detail, err := d.Run(t.Context(), runs[0].ID)
			if err != nil || len(detail.Tries) != 1 || detail.Tries[0].StartedAt.IsZero() || detail.Tries[0].FinishedAt.IsZero() {
				t.Fatalf("%v: %+v", err, detail)
			}
			return detail.Tries[0]
		}
		for name, c := range cases[d.Engine] {
			a := attempt(name)
			if got := (facts{a.Code, a.Severity, a.Line, a.Detail, a.Hint}); got != c.want || a.State != store.Failed || a.Error == "" {
				t.Errorf("%s: %+v, want %+v: %s", name, got, c.want, a.Error)
			}
		}
		if a := attempt("counts"); a.State != store.Succeeded || a.Rows == nil || *a.Rows != 5 {
			t.Errorf("%+v", a)
		}
	})
}
