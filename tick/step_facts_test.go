package tick_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// noted is the text that the last step of the job wrote, with the state of its run.
func noted(t *testing.T, d *storetest.DB, job string) string {
	t.Helper()
	run := ticktest.LastRun(t, d, job)
	rows, err := d.SQL.Query("SELECT COALESCE(told, 'NULL') FROM effects WHERE job = '" + job + "' ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	list := []string{run.State}
	for rows.Next() {
		var told string
		if err := rows.Scan(&told); err != nil {
			t.Fatal(err)
		}
		list = append(list, told)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " | ")
}

// note is a step that writes the values of its arguments down.
func note(d *storetest.DB, atomic bool, job string, args ...any) store.Step {
	place := func(i int) string {
		if d.Engine == "postgres" {
			return fmt.Sprintf("$%d", i)
		}
		return "?"
	}
	var lines []string
	for i := range args {
		lines = append(lines, fmt.Sprintf("('%s', %d, %s)", job, i, place(i+1)))
	}
	st := ticktest.StepWith(atomic, "INSERT INTO effects VALUES "+strings.Join(lines, ", "), args...)
	st.Name = "note"
	return st
}

// longColumns returns columns for a SELECT: c0, c1 and so on, each with a text of that size.
func longColumns(n, size int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("'%s' AS c%d", strings.Repeat("x", size), i)
	}
	return strings.Join(list, ", ")
}

// A step can name the end of an earlier step, and the first row that it returned.
func TestStepsTellLaterOnes(t *testing.T) {
	all := []any{"${steps.ask.status}", "${steps.ask.rows}", "${steps.ask.error}", "${steps.ask.output}", "of ${steps.ask.row.a.b}: ${steps.ask.row.n}", "${steps.ask.row.n}",
		"${steps.ask.row.missing}", "${steps.ask.row}"}
	row := func(name string) func(*storetest.DB) store.Step {
		return func(*storetest.DB) store.Step {
			return ticktest.Step(name, `SELECT 7 AS n, 'ä"<' AS `+"`a.b`"+`, NULL AS missing UNION ALL SELECT 8, 'x', NULL ORDER BY n`)
		}
	}
	for name, c := range map[string]struct {
		ask   func(d *storetest.DB) store.Step
		args  []any
		want  string // of effects
		error string // of the run
	}{
		"rows": {row("ask"), all, `succeeded | succeeded | 2 | NULL | {"n": 7, "a.b": "ä\"<", "missing": null}` + "\n" + `{"n": 8, "a.b": "x", "missing": null} | of ä"<: 7 | 7 | NULL | {"a.b":"ä\"<","missing":null,"n":7}`, ""},
		"no row": {func(*storetest.DB) store.Step { return ticktest.Step("ask", "SELECT 1 AS n FROM effects WHERE n = 99") },
			[]any{"${steps.ask.status}", "${steps.ask.rows}", "${steps.ask.row.n}", "<${steps.ask.row.n}>"}, "succeeded | succeeded | 0 | NULL | <>", ""},
		"no rows at all": {func(*storetest.DB) store.Step { return ticktest.Step("ask", "UPDATE effects SET n = 1 WHERE n = 99") },
			[]any{"${steps.ask.rows}", "${steps.ask.row.n}"}, "succeeded | 0 | NULL", ""},
		"a failure": {func(*storetest.DB) store.Step {
			st := ticktest.Step("ask", "SELECT broken")
			st.OnFailure = "next"
			return st
		}, []any{"${steps.ask.status}", "${steps.ask.row.n}"}, "succeeded | failed | NULL", ""},
		"no such column": {row("ask"), []any{"${steps.ask.row.m}"}, "failed", `argument "${steps.ask.row.m}": the row of step "ask" has no such column, or it has more than 1 KiB, or it comes after 8 KiB of others; its columns are a.b, missing, n`},
		"a long value": {func(*storetest.DB) store.Step {
			return ticktest.Step("ask", "SELECT 1 AS n, '"+strings.Repeat("x", 2000)+"' AS wide")
		},
			[]any{"${steps.ask.row.wide}"}, "failed", "or it has more than 1 KiB, or it comes after 8 KiB of others; its columns are n"},
		"after long values": {func(*storetest.DB) store.Step {
			return ticktest.Step("ask", "SELECT "+longColumns(12, 2000)+", 7 AS n")
		},
			[]any{"${steps.ask.row.n}"}, "succeeded | 7", ""},
		"after too much": {func(*storetest.DB) store.Step {
			return ticktest.Step("ask", "SELECT "+longColumns(12, 1000)+", 7 AS n")
		},
			[]any{"${steps.ask.row.n}"}, "failed", "or it comes after 8 KiB of others; its columns are c0, c1, c2, c3, c4, c5, c6, c7, c8"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				d.Exec(t, "CREATE TABLE effects (job varchar(20), n int, told varchar(500))")
				var defs store.Definitions
				for _, atomic := range []bool{false, true} {
					job := fmt.Sprint(atomic)
					ask := c.ask(d)
					if d.Engine != "mariadb" {
						ask.Spec = []byte(strings.ReplaceAll(string(ask.Spec), "`", `\"`))
					}
					if atomic {
						ask.Spec = []byte(strings.Replace(string(ask.Spec), "{", `{"atomic":true,`, 1))
					}
					defs.Jobs = append(defs.Jobs, store.Job{Name: job, Steps: []store.Step{ask, note(d, atomic, job, c.args...)}})
				}
				ticktest.Apply(t, d, defs)
				for _, j := range defs.Jobs {
					ticktest.Request(t, d, j.Name)
				}
				ticktest.Run(t, d)
				for _, j := range defs.Jobs {
					if got := noted(t, d, j.Name); got != c.want {
						t.Errorf("%s\n%s, want\n%s", j.Name, got, c.want)
					}
					if run := ticktest.LastRun(t, d, j.Name); !strings.Contains(run.Error, c.error) || c.error == "" && run.Error != "" {
						t.Errorf("%s: error %q, want %q", j.Name, run.Error, c.error)
					}
				}
			})
		})
	}
}

// Bytes that are no text are as long as their hexadecimal digits. What is too long with these is no fact, and not the beginning of
// one: the next step would write a value that is wrong.
func TestStepFactsOfBytes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (job varchar(20), n int, told varchar(2000))")
		const most = 511 // with \x or 0x, 1 KiB
		sizes := []int{most, most + 1, 1024, 1025}
		var defs store.Definitions
		for _, size := range sizes {
			job := fmt.Sprint(size)
			value := "x'" + strings.Repeat("fe", size) + "'"
			if d.Engine == "postgres" {
				value = fmt.Sprintf("decode(repeat('fe', %d), 'hex')", size)
			}
			defs.Jobs = append(defs.Jobs, store.Job{Name: job, Steps: []store.Step{ticktest.Step("ask", "SELECT "+value+" AS wide"), note(d, false, job, "${steps.ask.row.wide}")}})
		}
		ticktest.Apply(t, d, defs)
		for _, size := range sizes {
			ticktest.Request(t, d, fmt.Sprint(size))
		}
		ticktest.Run(t, d)
		for _, size := range sizes {
			got, said := noted(t, d, fmt.Sprint(size)), ticktest.LastRun(t, d, fmt.Sprint(size)).Error
			switch {
			case size <= most && (!strings.HasPrefix(got, "succeeded | ") || strings.Count(got, "fe") != size):
				t.Errorf("%d bytes: %s: %s", size, got, said)
			case size > most && (got != "failed" || !strings.Contains(said, "more than 1 KiB")):
				t.Errorf("%d bytes: %s: %q", size, got, said)
			}
		}
	})
}

// The result of a step is on record with its end: a process may die before the next step begins. A result that no step
// names is not kept.
func TestStepFactsSurviveACrash(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (job varchar(20), n int, told varchar(500))")
		ask := ticktest.Step("ask", "SELECT 1 AS n")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "job", Steps: []store.Step{ask, note(d, false, "job", "${steps.ask.row.n}", "${steps.ask.rows}", "${steps.ask.output}")}},
			{Name: "nobody", Steps: []store.Step{ask, ticktest.Step("last", "SELECT 2 AS n")}},
		}})
		ticktest.Request(t, d, "job")
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "dies", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(len(tasks), err)
		}
		end := store.StepEnd{State: store.Succeeded, NextStep: 2, Rows: new(int64(1)), Output: "told", Result: `{"rows": 5, "row": {"n": "a value"}}`}
		if err := d.EndStep(t.Context(), &tasks[0], end, h); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(10 * time.Minute) // the process is dead
		ticktest.Request(t, d, "nobody")
		ticktest.Run(t, d)
		ticktest.Run(t, d)
		if got, want := noted(t, d, "job"), "succeeded | a value | 5 | told"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")+" WHERE result LIKE '%row%'"); n != 1 {
			t.Errorf("%d attempts with a result, want 1", n)
		}
	})
}

// A database that is away while the facts are read is no failure of the step, which has one attempt.
func TestStepFactsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		if engine == "sqlite" {
			continue // a file is never away
		}
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			var away atomic.Bool
			calls := storetest.Calls{Before: func(call storetest.Call) error {
				if away.Load() && strings.Contains(call.SQL, "GROUP BY e.step_name") {
					return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
				}
				return nil
			}}
			d := storetest.Open(t, engine, store.Options{Wrap: calls.Wrap})
			d.Exec(t, "CREATE TABLE effects (job varchar(20), n int, told varchar(500))")
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 9, Steps: []store.Step{ticktest.Step("ask", "SELECT 1"), note(d, false, "job", "${steps.ask.status}")}}}})
			ticktest.Request(t, d, "job")
			away.Store(true)
			_, _ = ticktest.New(t, d.Store).Run(t.Context())
			if got := ticktest.LastRun(t, d, "job"); got.Ended() {
				t.Errorf("the run is %s: %s", got.State, got.Error)
			}
			away.Store(false)
			d.Clock.Add(10 * time.Minute)
			ticktest.Run(t, d)
			if got, want := noted(t, d, "job"), "succeeded | succeeded"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// If a job is edited while its run is open, so that a step names facts of an earlier step that nobody named when that
// step ended, they are not empty: the step fails, and says what to do.
func TestStepFactsThatNobodyNamedInTime(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (job varchar(20), n int, told varchar(500))")
		job := func(last store.Step) {
			t.Helper()
			steps := []store.Step{ticktest.Step("ask", "SELECT 7 AS n"), ticktest.Step("none", "DELETE FROM effects"), last}
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: steps}}})
		}
		job(ticktest.Step("note", "SELECT * FROM nowhere"))
		run := ticktest.RunNow(t, d, "job", store.Request{})
		ticktest.Run(t, d)
		for _, fact := range []string{"row.n", "row", "code"} {
			job(note(d, false, "job", "${steps.ask."+fact+"}"))
			if _, err := d.RetryRun(t.Context(), run.ID, "", store.Author{}); err != nil {
				t.Fatal(err)
			}
			ticktest.Run(t, d)
			said := ticktest.LastRun(t, d, "job").Error
			if !strings.Contains(said, `what step "ask" reported is not on record`) {
				t.Errorf("%s: %q", fact, said)
			}
		}
		job(note(d, false, "job", "${steps.ask.rows}", "${steps.none.row.n}", "${steps.ask.row.n}"))
		if _, err := d.RetryRun(t.Context(), run.ID, "ask", store.Author{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		if got, want := noted(t, d, "job"), "succeeded | 1 | NULL | 7"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// A step that ended its run has a result, too. A step that follows it in a run that was opened again can name that.
func TestStepFactsOfTheLastStep(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (job varchar(20), n int, told varchar(500))")
		check := ticktest.Step("check", "SELECT 7 AS n")
		check.Spec = []byte(`{"sql": ["SELECT 7 AS n"], "fail_if": "rows"}`)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{check, note(d, false, "job", "${steps.check.row.n}", "${steps.check.rows}")}}}})
		run := ticktest.RunNow(t, d, "job", store.Request{})
		ticktest.Run(t, d)
		if _, err := d.RetryRun(t.Context(), run.ID, "note", store.Author{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		if got, want := noted(t, d, "job"), "succeeded | 7 | 1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// However often a later step was tried, a step gets the facts of the earlier one: those of its last attempt, if it ran
// again.
func TestStepFactsAfterManyTries(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (job varchar(20), n int, told varchar(500))")
		apply := func(ask, tried string) {
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("ask", ask), ticktest.Step("tried", tried),
				note(d, false, "job", "${steps.ask.row.n}", "${steps.ask.status}", "${steps.tried.status}")}}}})
		}
		apply("SELECT 42 AS n", "SELECT broken")
		run := ticktest.RunNow(t, d, "job", store.Request{})
		ticktest.Run(t, d)
		for more := 1; more <= 512; more *= 2 { // as if it had been tried so often
			d.Exec(t, fmt.Sprintf(`INSERT INTO %[1]s (run_id, number, step, step_name, attempt, fence, holder, state, started_at, finished_at, error)
				SELECT run_id, number + %[2]d, step, step_name, attempt + %[2]d, fence + %[2]d, holder, state, started_at, finished_at, error
				FROM %[1]s WHERE step_name = 'tried'`, d.Table("attempts"), more))
		}
		again := func(from, want string) {
			t.Helper()
			if _, err := d.RetryRun(t.Context(), run.ID, from, store.Author{}); err != nil {
				t.Fatal(err)
			}
			ticktest.Run(t, d)
			if got := noted(t, d, "job"); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		again("note", "succeeded | 42 | succeeded | failed")
		d.Exec(t, "DELETE FROM effects")
		d.Exec(t, fmt.Sprintf("UPDATE %s SET state = 'failed' WHERE state = 'succeeded'", d.Table("runs")))
		apply("SELECT 43 AS n", "SELECT 1")
		again("ask", "succeeded | 43 | succeeded | succeeded")
	})
}

// A reference to a step that does not exist is refused with the definition. So is a reference to a step that can never
// have ended before. A reference to a step that a run may leave out is not refused.
func TestStepFactsOfNoStepAreRefused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		leads := func(st store.Step, success, failure string) store.Step {
			st.OnSuccess, st.OnFailure = success, failure
			return st
		}
		names := func(of string) store.Step {
			st := note(d, false, "job", "${steps."+of+".rows}")
			st.Name = "names " + of
			return st
		}
		one, two := ticktest.Step("one", "SELECT 1 AS n"), ticktest.Step("two", "SELECT 1 AS n")
		for name, c := range map[string]struct {
			steps []store.Step
			want  string
		}{
			"later":             {[]store.Step{names("one"), one}, `${steps.one.rows}: the step "one" never runs before this one`},
			"one's own":         {[]store.Step{one, ticktest.StepWith(false, "SELECT 1", "${steps.step 2.rows}")}, "a step cannot learn of itself"},
			"later in a circle": {[]store.Step{names("one"), leads(one, "step:names one", "fail"), two}, ""},
			"itself in a circle": {[]store.Step{one, func() store.Step {
				st := names("x")
				st.Spec = []byte(strings.ReplaceAll(string(st.Spec), "steps.x.", "steps.names x."))
				return st
			}(), leads(two, "step:names x", "fail")}, ""},
			"left out":          {[]store.Step{leads(one, "step:names two", "next"), two, names("two")}, ""},
			"of another branch": {[]store.Step{leads(one, "step:names two", "next"), leads(two, "succeed", "succeed"), names("two")}, `the step "two" never runs before this one`},
		} {
			_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "job", Steps: c.steps}}}, store.ApplyOptions{})
			wrong, refused := errors.AsType[*store.FieldError](err)
			if c.want == "" && err != nil || c.want != "" && (!refused || !strings.Contains(wrong.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		for arg, want := range map[string]string{
			"${steps.aks.row.n}":  `${steps.aks.row.n}: there is no step "aks" in the job`,
			"${steps.ask.rwo.n}":  "${steps.ask.rwo.n} is not known; of a step there are ${steps.NAME.status}, rows, ",
			`${steps.a "b".rows}`: `${steps.a "b".rows}: there is no step "a \"b\"" in the job`,
			"${steps.ask}":        "${steps.ask} is not known; of a step there are ",
			"${steps.ask.row.n}":  "",
			"${steps.note.error}": "a step cannot learn of itself",
		} {
			_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("ask", "SELECT 1 AS n"), note(d, false, "job", arg)}}}}, store.ApplyOptions{})
			wrong, refused := errors.AsType[*store.FieldError](err)
			if want == "" && err != nil || want != "" && (!refused || !strings.Contains(wrong.Error(), want)) {
				t.Errorf("%s: %v, want %q", arg, err, want)
			}
		}
	})
}

func TestStepFact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"a.status": {"a", "status"}, "a.b.rows": {"a.b", "rows"}, "a.row.n": {"a", "row.n"}, "a.row.n.m": {"a", "row.n.m"}, "step 1.output": {"step 1", "output"}, "a.row": {"a", "row"},
		"a": nil, "": nil, ".status": nil, "a.state": nil, "a.row.": nil, ".row.n": nil,
	} {
		if name, fact, ok := store.StepFact(text); ok != (want != nil) || ok && !slices.Equal([]string{name, fact}, want) {
			t.Errorf("%q: %q, %q, %t", text, name, fact, ok)
		}
	}
}
