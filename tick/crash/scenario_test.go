package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// acting is an executor whose action is a call of its own. Its effect is outside of the store's
// transactions. So the effects of steps that run at least once are counted there.
type acting struct {
	w      *world
	calls  *storetest.Calls
	store  *store.Store // the process's
	holder string
}

// action is the spec of its steps. An attempt up to number Fails takes effect, and then fails. An attempt
// that Beats reports a sign of life before. A pass does that beside it, by a clock that no test drives.
type action struct {
	Fails int  `json:"fails"`
	Beats bool `json:"beats"`
}

func (a acting) Execute(ctx context.Context, r executor.Request) (executor.Result, error) {
	var what action
	if err := json.Unmarshal(r.Spec, &what); err != nil {
		return executor.Result{}, err
	}
	run := &r.Task.Run
	name := r.Task.StepAt(run.Step).Name
	if what.Beats { // the result does not matter: the next one may get through
		_, _ = a.store.Heartbeat(ctx, []string{run.ID}, store.Holder{Name: a.holder, Lease: time.Minute})
	}
	err := a.calls.Act(r.Task.Job.Name+": "+name, func() error { return a.w.mark(r.Task) })
	if err == nil && run.Attempt <= what.Fails {
		err = errors.New("as the scenario wants it")
	}
	return executor.Result{}, err
}

// mark is the effect of an attempt.
func (w *world) mark(t *store.Task) error {
	_, err := w.d.SQL.Exec(fmt.Sprintf("INSERT INTO effects VALUES ('%s', '%s', %d, %d)", t.Run.ID, t.StepAt(t.Run.Step).Name, t.Run.Fence, t.Run.Attempt))
	return err
}

func act(name string, fails int) store.Step {
	return store.Step{Name: name, Executor: "act", Spec: fmt.Appendf(nil, `{"fails": %d}`, fails)}
}

// effect is a step of SQL that leaves its mark, as the steps of act do.
func (w *world) effect(name string, atomic bool) store.Step {
	marks := map[string]string{"postgres": "$1, $2, $3, $4", "mariadb": "?, ?, ?, ?", "sqlite": "?, ?, ?, ?"}[w.d.Engine]
	st := ticktest.StepWith(atomic, "INSERT INTO effects VALUES ("+marks+")", "${run_id}", name, "${fence}", "${attempt}")
	st.Name = name
	return st
}

// bareStep has SQL without arguments, which drivers send in another way, and leaves its mark too. It asks the ledger for its run
// and fence. So its job may have one run at a time, and a process that was frozen takes the fence of the next one for its own.
const bareStep = "three"

func (w *world) bare(job string) store.Step {
	own := fmt.Sprintf("FROM %s r JOIN %s j ON j.id = r.job_id WHERE j.name = '%s' AND r.state = 'running'", w.d.Table("runs"), w.d.Table("jobs"), job)
	// The last statement of a step takes more along, so another one comes after the effect.
	texts := []string{"INSERT INTO effects SELECT CAST(r.id AS CHAR(36)), '" + bareStep + "', r.fence, r.attempt " + own, "SELECT 1"}
	if w.d.Engine == "mariadb" { // there, INSERT with SELECT would lock the rows that it reads
		texts = []string{"SELECT r.id, r.fence, r.attempt INTO @run, @fence, @attempt " + own,
			"INSERT INTO effects SELECT @run, '" + bareStep + "', @fence, @attempt FROM DUAL WHERE @run IS NOT NULL"}
	}
	return ticktest.Step(bareStep, texts...)
}

// patient returns a job that one or two faults do not make fail: faults around its steps only cost attempts.
func patient(name string, steps ...store.Step) store.Job {
	attempts, backoff, jitter := store.Attempts(5), store.Duration(time.Minute), 0
	return store.Job{Name: name, MaxDeliveries: 9, Retry: store.Retry{Attempts: &attempts, Backoff: &backoff, Jitter: &jitter}, Steps: steps}
}

func hourlyOf(j store.Job, missed, overlap string) store.Job {
	j.Own, j.Missed, j.Overlap = &store.Schedule{Rule: "every 1h"}, missed, overlap
	return j
}

// jobs returns the jobs of the scenario. They show the policies and ways of ending that there are,
// each in its smallest form. Without names, it returns all of them.
func (w *world) jobs(names ...string) []store.Job {
	follows := patient("follows", w.effect("tell", true))
	follows.After = []store.After{{Job: "chain"}}
	meets := patient("meets", w.effect("tell", true))
	meets.After = []store.After{{Job: "chain"}, {Job: "flaky", On: store.OnEnd}}
	boots := patient("boots", act("boot", 0))
	boots.OnStartup = true
	doomed := hourlyOf(patient("doomed", act("fail", 9)), "latest", "wait")
	two := store.Attempts(2)
	doomed.Retry.Attempts, doomed.OnError = &two, "pause"
	doomed.On = store.Hooks{Failed: "told", Missed: "told", Paused: "told"}
	forks := patient("forks", act("fail", 99), act("never", 0), act("mend", 0))
	one := store.Attempts(1)
	forks.Steps[0].OnFailure, forks.Steps[0].Retry.Attempts = "step:mend", &one
	once := patient("once", act("act", 0))
	once.MaxDeliveries = 1
	kept := hourlyOf(patient("kept", w.effect("act", true)), "all", "wait-all")
	kept.Keep.Runs = 2
	orphan := patient("orphan", w.effect("plain", false))
	orphan.Priority = 9
	shared := patient("shared", act("act", 0))
	shared.Schedules, shared.Missed, shared.MissedGrace, shared.Overlap = []string{"hours"}, "skip", store.Duration(50*time.Minute), "skip"
	all := []store.Job{
		hourlyOf(patient("chain", act("one", 0), w.effect("two", true), w.bare("chain")), "latest", "wait"),
		follows, meets, boots, doomed, patient("told", w.effect("tell", true)), forks, once, kept, orphan, shared,
		hourlyOf(patient("flaky", act("try", 1)), "latest", "wait"),
		hourlyOf(patient("replaced", act("act", 0)), "latest", "replace"),
	}
	return slices.DeleteFunc(all, func(j store.Job) bool { return len(names) > 0 && !slices.Contains(names, j.Name) })
}

func (w *world) define(jobs []store.Job) {
	defs := store.Definitions{Calendars: []store.Calendar{{Name: "rest"}}, Schedules: []store.Schedule{{Name: "hours", Rule: "every 1h", Calendar: "rest"}}, Jobs: jobs}
	if _, err := w.d.Apply(context.Background(), defs, store.ApplyOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// request asks for a run, in a millisecond of its own. The ids of one millisecond are in random order,
// so each course would execute the runs in another order.
func (w *world) request(job string) {
	if _, err := w.d.RunNow(context.Background(), job, store.Request{}); err != nil {
		w.t.Fatal(err)
	}
	w.d.Clock.Add(time.Millisecond)
}

// skip skips the next times of a job. With a count of 0, it takes the skips back.
func (w *world) skip(job string, count int) {
	var err error
	if count > 0 {
		_, err = tick.SkipNext(context.Background(), w.d.Store, job, "", count, store.Author{})
	} else {
		_, err = tick.UndoSkips(context.Background(), w.d.Store, job, "", store.Author{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// rich is the scenario: five stages. A fault may fall on the passes of each.
func rich() []stage {
	return []stage{
		{name: "plan", at: time.Minute, edit: func(w *world) { w.define(w.jobs()) }},
		{name: "outage", at: 3*time.Hour + 5*time.Minute}, // the first occurrences: three of each
		{name: "requests", at: 3*time.Hour + 30*time.Minute, edit: func(w *world) {
			w.abandon("orphan")
			w.d.Exec(w.t, "UPDATE "+w.d.Table("calendars")+" SET days = '2000-01-01'") // so that a pass sees an edit of a calendar
			w.request("once")
			w.request("forks")
			w.skip("chain", 2) // one of them is taken back
			w.skip("replaced", 1)
		}},
		{name: "decided only", at: 4*time.Hour + 5*time.Minute, decide: true, edit: func(w *world) {
			w.d.Clock.Add(-10 * time.Minute)
			w.skip("chain", 0)
			w.skip("chain", 1)
			w.skip("kept", 2) // the job is removed in the meantime
			w.d.Clock.Add(10 * time.Minute)
		}},
		{name: "edits", at: 5*time.Hour + 5*time.Minute, edit: func(w *world) {
			jobs := w.jobs()
			for i := range jobs {
				switch jobs[i].Name {
				case "shared":
					jobs[i].Schedules, jobs[i].Own = nil, &store.Schedule{Rule: "every 2h"}
				case "flaky":
					jobs[i].Disabled = true
				}
			}
			w.define(jobs)
			if err := w.d.RemoveJob(context.Background(), "kept", store.Author{}); err != nil {
				w.t.Fatal(err)
			}
			if _, err := w.d.Resume(context.Background(), store.Subject{Scope: store.ScopeJob, Name: "doomed"}, false, store.Author{}); err != nil {
				w.t.Fatal(err)
			}
		}},
	}
}

// small is the scenario that every run of the tests plays on a server.
func small() []stage {
	return []stage{
		{name: "plan", at: time.Minute, edit: func(w *world) {
			w.define(w.jobs("chain", "follows", "doomed", "told", "replaced"))
			w.skip("replaced", 2) // before any pass
		}},
		{name: "decided only", at: 4*time.Hour + 5*time.Minute, decide: true},
		{name: "outage", at: 5*time.Hour + 5*time.Minute},
	}
}

// silence is a trigger that came regularly, and then did not come for an hour.
func silence() []stage {
	return []stage{
		{name: "plan", at: time.Minute, silent: true, edit: func(w *world) { w.define(w.jobs("told")) }},
		{name: "silence", at: time.Hour, silent: true, edit: func(w *world) {
			w.d.Exec(w.t, "UPDATE "+w.d.Table("ticks")+" SET passes = 20")
		}},
	}
}

// sharing is a scenario of three jobs that share a cap of one, and then of two. Their runs are executed
// one at a time, as in all scenarios. Side by side, the order of calls would be another one each time, and
// a fault would not fall where its name says. The tests of orders and of kills have runs side by side.
func sharing() []stage {
	define := func(most int) func(w *world) {
		return func(w *world) {
			first := hourlyOf(patient("first", act("act", 1)), "latest", "wait")
			second := hourlyOf(patient("second", w.effect("act", true)), "latest", "wait")
			second.Priority = 5
			third := hourlyOf(patient("third", store.Step{Name: "act", Executor: "act", Spec: []byte(`{"beats": true}`)}), "latest", "wait")
			defs := store.Definitions{Groups: []store.Group{{Name: "few", MaxRunning: most}}, Jobs: []store.Job{first, second, third}}
			for i := range defs.Jobs {
				defs.Jobs[i].Group = "few"
			}
			if _, err := w.d.Apply(context.Background(), defs, store.ApplyOptions{}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return []stage{
		{name: "plan the group", at: time.Minute, edit: define(1)},
		{name: "let one go", at: time.Hour + 5*time.Minute, decide: true},
		{name: "two", at: 2*time.Hour + 5*time.Minute, edit: define(2)},
	}
}

// stagesOf is the scenario for an engine: the rich one on SQLite, where a call costs least.
func stagesOf(engine string) []stage {
	if engine == "sqlite" {
		return rich()
	}
	return small()
}

// abandon requests a run, takes it and dies: its lease is over when the passes come.
func (w *world) abandon(job string) {
	w.d.Clock.Add(-10 * time.Minute)
	w.request(job)
	ticktest.DecideOnly(w.t, w.d)
	tasks, err := w.d.Take(w.t.Context(), "tick", 1, store.Holder{Name: "dead", Lease: time.Minute})
	if err != nil || len(tasks) != 1 || tasks[0].Job.Name != job {
		w.t.Fatal(err, tasks)
	}
	w.abandoned = tasks[0]
	w.d.Clock.Add(10 * time.Minute)
}

// comeBack is the late end of the run that was abandoned. It is refused if the run has gone on without it.
func (w *world) comeBack() {
	err := w.d.EndStep(context.Background(), &w.abandoned, store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, store.Holder{Name: "dead", Lease: time.Minute})
	if err == nil {
		err = w.mark(&w.abandoned)
	}
	if err != nil && !errors.Is(err, store.ErrOutdated) {
		w.t.Error(err)
	}
}

// recovery is the scenario that the twin of that guard needs: a run whose lease is over when the passes come.
func recovery() []stage {
	return []stage{
		{name: "plan", at: time.Minute, edit: func(w *world) { w.define(w.jobs("orphan")) }},
		{name: "requests", at: time.Hour, edit: func(w *world) { w.abandon("orphan") }},
	}
}

// fact returns some arguments of a run, as one text.
func fact(r *store.Run, names ...string) string {
	var given map[string]any
	if err := json.Unmarshal([]byte(r.Args), &given); err != nil {
		return err.Error()
	}
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprint(given[name]))
	}
	return strings.Join(all, " ")
}
