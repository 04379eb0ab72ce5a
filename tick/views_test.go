package tick_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// mixed makes jobs in each state. At the end, the test's clock is at the time of the database's own clock, which the
// views use.
func mixed(t *testing.T, d *storetest.DB) {
	t.Helper()
	plain, err := store.Open(t.Context(), d.URL, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	now, err := plain.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.Clock.Set(now.Add(-90 * time.Minute))
	ok, bad, soft := []store.Step{ticktest.Step("one", "SELECT 1")}, []store.Step{ticktest.Step("one", "SELECT * FROM nowhere")}, []store.Step{ticktest.Step("one", "SELECT * FROM nowhere")}
	soft[0].OnFailure = "succeed"                                                          // an attempt that failed, of a run that succeeded
	rule := "every 2h starting " + now.Add(-time.Hour).UTC().Format("2006-01-02T15:04:05") // once before the end of the clock, whenever that is
	every := func() *store.Schedule { return &store.Schedule{Rule: rule} }
	defs := store.Definitions{
		Schedules: []store.Schedule{{Name: "hourly", Rule: rule}, {Name: "held", Rule: rule}, {Name: "quiet", Rule: rule}, {Name: "calm", Rule: rule}, {Name: "broken", Rule: rule}},
		Jobs: []store.Job{
			{Name: "shared", Schedules: []string{"hourly"}, Steps: ok}, {Name: "both", Schedules: []string{"hourly", "held"}, Steps: ok},
			{Name: "by schedule", Schedules: []string{"held"}, Steps: ok}, {Name: "own and held", Schedules: []string{"held"}, Own: every(), Steps: ok},
			{Name: "parked", Schedules: []string{"broken"}, Steps: ok}, {Name: "tagged", Tags: []string{"slow"}, Own: every(), Steps: ok},
			{Name: "of ann", Owner: "ann", Own: every(), Steps: ok}, {Name: "paused", Own: every(), Steps: ok}, {Name: "until", Own: every(), Tags: []string{"slow"}, Steps: ok},
			{Name: "failing", Own: every(), Steps: bad}, {Name: "failing once", Steps: bad}, {Name: "soft", Own: every(), Steps: soft}, {Name: "removed", Own: every(), Steps: ok}, {Name: "disabled", Own: every(), Steps: ok},
			{Name: "unscheduled", Own: every(), Steps: ok}, {Name: "aborted", Own: every(), Steps: ok}, {Name: "resumed", Own: every(), Steps: ok}, {Name: "on request", Steps: ok}, {Name: "again", RepeatAfter: store.Duration(time.Hour), Steps: ok},
			{Name: "startup", OnStartup: true, Steps: ok}, {Name: "follower", After: []store.After{{Job: "shared"}}, Steps: ok}, {Name: "edited", Own: every(), Steps: ok},
			{Name: "relinked", Schedules: []string{"hourly"}, Steps: ok}, {Name: "skipped", Own: every(), Steps: ok}, {Name: "skipped for one", Schedules: []string{"calm"}, Own: every(), Steps: ok}, {Name: "waits", Queue: "elsewhere", Own: every(), Steps: ok},
			{Name: "runs", Queue: "elsewhere", Own: every(), Steps: ok}, {Name: "by a worker", Queue: "printers", Own: every(), Steps: ok}, {Name: "slow to fail", Own: every(), Retry: store.Retry{Attempts: new(store.Attempts(3)), Backoff: new(store.Duration(time.Hour))}, Steps: bad},
			{Name: "ended", Own: &store.Schedule{Rule: "at " + now.Add(-time.Hour).UTC().Format("2006-01-02T15:04:05Z")}, Steps: ok},
			{Name: "planned", Schedules: []string{"of planned", "of several"}, Steps: ok}, {Name: "unreadable", Schedules: []string{"of unreadable", "of several"}, Steps: ok},
			{Name: "held by itself", Schedules: []string{"of held"}, Steps: ok}, {Name: "held by tag", Tags: []string{"slow"}, Schedules: []string{"of tagged"}, Steps: ok},
			{Name: "held half", Schedules: []string{"held", "of half"}, Steps: ok}, {Name: "put off", Schedules: []string{"of put off"}, Steps: ok},
			{Name: "edited by row", Schedules: []string{"of edited"}, Steps: ok}, {Name: "edited by schedule", Schedules: []string{"hourly", "of other"}, Steps: ok},
			{Name: "edited by rule", Schedules: []string{"of own"}, Own: every(), Steps: ok}, {Name: "stopped", Schedules: []string{"of stopped"}, Steps: ok},
			{Name: "over", Own: &store.Schedule{Rule: "at " + now.Add(-time.Hour).UTC().Format("2006-01-02T15:04:05Z")}, Missed: store.MissedSkip, MissedGrace: store.Duration(time.Second), Steps: ok},
		},
	}
	for _, name := range []string{"planned", "several", "unreadable", "held", "tagged", "half", "put off", "edited", "other", "own", "stopped"} {
		defs.Schedules = append(defs.Schedules, store.Schedule{Name: "of " + name, Rule: rule})
	}
	of := "of ann"
	if d.Engine == "sqlite" { // it has no logins
		defs.Jobs = slices.DeleteFunc(defs.Jobs, func(j store.Job) bool { return j.Owner != "" })
		of = "shared"
	}
	ticktest.Apply(t, d, defs)
	ticktest.Run(t, d)
	who := store.Author{By: "ann", Reason: "for a test"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d.Clock.Set(now.Add(-25 * time.Minute))
	for _, name := range []string{"failing once", "on request", of} {
		_, err := d.RunNow(t.Context(), name, store.Request{})
		must(err)
	}
	ticktest.Run(t, d)
	ticktest.Run(t, d)
	tasks, err := d.Take(t.Context(), "elsewhere", 1, store.Holder{Name: "test", Lease: time.Hour})
	must(err)
	if len(tasks) != 1 {
		t.Fatalf("%d taken", len(tasks))
	}
	// A worker that ends a run by SQL writes no attempt.
	d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'failed', error = 'the printer is out of paper', lease_until = NULL, finished_at = created_at WHERE job_id IN (SELECT id FROM "+
		d.Table("jobs")+" WHERE name = 'by a worker')")
	d.Exec(t, "UPDATE "+d.Table("runs")+" SET attempt = 2, attempts = 2, error = 'the printer is out of ink' WHERE state = 'failed' AND attempts = 1 AND job_id IN (SELECT id FROM "+
		d.Table("jobs")+" WHERE name = 'failing once')") // the same after an attempt of a tick
	pause := func(scope, name string, until time.Time) {
		t.Helper()
		_, err := d.Pause(t.Context(), store.Subject{Scope: scope, Name: name}, until, who)
		must(err)
	}
	pause(store.ScopeJob, "paused", time.Time{})
	pause(store.ScopeJob, "until", now.Add(48*time.Hour))
	pause(store.ScopeTag, "slow", now.Add(24*time.Hour))
	pause(store.ScopeSchedule, "held", now.Add(72*time.Hour))
	pause(store.ScopeSchedule, "quiet", time.Time{})
	if d.Engine != "sqlite" {
		pause(store.ScopeOwner, "ann", time.Time{})
	}
	pause(store.ScopeJob, "held by itself", time.Time{})
	pause(store.ScopeJob, "resumed", time.Time{})
	d.Clock.Add(time.Minute)
	_, err = d.Resume(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "resumed"}, false, who)
	must(err)
	must(d.EnableJob(t.Context(), "disabled", false, who))
	must(d.EnableJob(t.Context(), "stopped", false, who))
	_, err = d.AbortJob(t.Context(), "aborted", false, who)
	must(err)
	must(d.RemoveJob(t.Context(), "removed", who))
	d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = 'nonsense' WHERE name = 'broken'")
	d.Exec(t, "INSERT INTO "+d.Table("schedules")+" (name, rule) VALUES ('of no job', 'rubbish')")
	_, err = tick.SkipNext(t.Context(), d.Store, "skipped", "", 2, who)
	must(err)
	_, err = tick.SkipNext(t.Context(), d.Store, "skipped for one", "calm", 1, who) // its own rule gives the same time
	must(err)
	_, err = tick.SkipNext(t.Context(), d.Store, "put off", "", 1, who)
	must(err)
	d.Clock.Set(now)
	ticktest.Run(t, d)
	d.Exec(t, "UPDATE "+d.Table("plans")+" SET parked = 'broken' WHERE job_id IN (SELECT id FROM "+d.Table("jobs")+" WHERE name = 'unreadable')")
	d.Exec(t, "UPDATE "+d.Table("jobs")+" SET priority = 7 WHERE name IN ('edited', 'edited by row')")
	d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = 'every 3h' WHERE job_id IN (SELECT id FROM "+d.Table("jobs")+" WHERE name = 'edited by rule')")
	d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = 'every 3h' WHERE name = 'hourly'")
	d.Exec(t, "INSERT INTO "+d.Table("schedules")+" (name, rule) VALUES ('new', 'every 1h'), ('lost days', 'every 1h')")
	d.Exec(t, "UPDATE "+d.Table("schedules")+" SET calendar = 'nowhere' WHERE name = 'lost days'")
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "unscheduled", Steps: ok}}})
}

// seen is a row of a view, as text.
func seen(t *testing.T, d *storetest.DB, view, columns, rest string) []string {
	t.Helper()
	if view != "" {
		view = d.Table(view)
	}
	rows, err := d.SQL.QueryContext(t.Context(), "SELECT "+columns+" FROM "+view+" "+rest)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i := range values {
			names[i] = plainly(values[i])
		}
		out = append(out, strings.Join(names, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// plainly writes a value of a driver: an instant to the second, and an empty text for a missing value.
func plainly(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case time.Time:
		return instantOf(v)
	case []byte:
		return plainly(string(v))
	case string:
		for _, layout := range []string{time.RFC3339, time.DateTime} { // the latter is MariaDB's
			if at, err := time.Parse(layout, v); err == nil {
				return instantOf(at)
			}
		}
		return v
	}
	return fmt.Sprint(v)
}

func instantOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05")
}

func compare(t *testing.T, what string, view, commands []string) {
	t.Helper()
	slices.Sort(commands)
	for _, row := range commands {
		if !slices.Contains(view, row) {
			t.Errorf("%s: the commands say %s", what, row)
		}
	}
	for _, row := range view {
		if !slices.Contains(commands, row) {
			t.Errorf("%s: the view says      %s", what, row)
		}
	}
	if len(view) == 0 || len(view) != len(commands) {
		t.Errorf("%s: %d rows, and %d by the commands", what, len(view), len(commands))
	}
}

func number(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// The views say the same as the commands about jobs in each state. The test compares them again while a job whose run
// is queued is paused, which does not hold it before a pass, and while everything is paused.
func TestViewsSayWhatCommandsSay(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		mixed(t, d)
		sameAsCommands(t, d, []string{"aborted", "disabled", "enabled", "finished", "parked", "paused", "resumed", "running", "sleeping"}, []string{"active", "not yet looked at", "parked", "paused"})
		queued := d.Int(t, "SELECT j.id FROM "+d.Table("jobs")+" j JOIN "+d.Table("runs")+" r ON r.job_id = j.id WHERE r.state = 'queued' AND r.started_at IS NULL AND r.queue = 'elsewhere'")
		d.Exec(t, "INSERT INTO "+d.Table("pauses")+" (scope, subject_id) VALUES ('job', "+strconv.Itoa(queued)+")")
		if held := seen(t, d, "v_runs", "held_by", "WHERE state = 'queued' AND job_id = "+strconv.Itoa(queued)); len(held) != 1 || held[0] != "" {
			t.Errorf("the queued run of a job that is paused is held by %q", held)
		}
		sameAsCommands(t, d, []string{"aborted", "disabled", "enabled", "finished", "parked", "paused", "resumed", "running", "sleeping"}, []string{"active", "not yet looked at", "parked", "paused"})
		running := strconv.Itoa(d.Int(t, "SELECT MIN(job_id) FROM "+d.Table("runs")+" WHERE state = 'running'"))
		d.Exec(t, "UPDATE "+d.Table("plans")+" SET streak = 1, last_error = 'no' WHERE job_id = "+running)
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET enabled = NOT enabled WHERE id = "+running)
		sameAsCommands(t, d, []string{"aborted", "disabled", "enabled", "finished", "parked", "paused", "resumed", "running", "sleeping"}, []string{"active", "not yet looked at", "parked", "paused"})
		if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeAll}, time.Time{}, store.Author{By: "ann", Reason: "all of it"}); err != nil {
			t.Fatal(err)
		}
		sameAsCommands(t, d, []string{"aborted", "disabled", "paused", "running"}, []string{"paused"})
	})
}

func sameAsCommands(t *testing.T, d *storetest.DB, jobStates, scheduleStates []string) {
	t.Helper()
	jobs, err := d.Jobs(t.Context(), store.JobFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var want, planned, states []string
	for _, j := range jobs {
		failing := number(j.Failing())
		if j.Paused == nil {
			j.Paused = &store.Pause{}
		}
		states = append(states, j.State)
		why := map[string]string{"paused": j.Paused.Reason, "parked": j.Parked, "aborted": "for a test", "disabled": "for a test"}[j.State]
		if why == "" && j.Streak > 0 {
			why = j.LastError
		}
		want = append(want, strings.Join([]string{j.Owner, j.Name, j.State, why, instantOf(j.NextRun), number(j.Stale), failing, j.LastState, instantOf(j.LastScheduled),
			instantOf(j.LastFinished), instantOf(j.LastSuccess), j.LastError, fmt.Sprint(j.Streak), fmt.Sprint(j.Cycles), fmt.Sprint(j.RunsMade), fmt.Sprint(j.RunsOpen), fmt.Sprint(j.RunsRunning),
			instantOf(j.DecidedThrough), j.Parked, j.Paused.Scope, j.Paused.By, instantOf(j.Paused.Since), instantOf(j.Paused.Until)}, "|"))
		if !j.NextRun.IsZero() && j.Parked == "" {
			planned = append(planned, instantOf(j.NextRun)+"|"+j.Name)
		}
	}
	slices.Sort(states)
	if states = slices.Compact(states); !slices.Equal(states, jobStates) {
		t.Errorf("the jobs have the states %q", states)
	}
	compare(t, "jobs", seen(t, d, "v_jobs", `owner, name, state, why, next_run, stale, failing, last_state, last_scheduled_for,
		last_finished_at, last_success_at, last_error, streak, cycles, runs_made, runs_open, runs_running, decided_through, parked, paused_scope, paused_by, paused_since, paused_until`, ""), want)
	if len(planned) > 0 {
		compare(t, "upcoming", seen(t, d, "v_upcoming", "next_run, job", ""), planned)
	}
	u, err := tick.NextOfEach(t.Context(), d.Store, jobs, d.Clock.Now(), d.Clock.Now().Add(3*time.Hour), 1000, func(store.Job) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range u.Runs { // the rules say the same, except for times that wait for a pass, and times that a pause will end
		i := slices.IndexFunc(jobs, func(j store.JobStatus) bool { return j.FullName() == r.Job })
		if row := instantOf(r.At) + "|" + jobs[i].Name; !slices.Contains(planned, row) && !jobs[i].Stale && jobs[i].Paused == nil {
			t.Errorf("upcoming has %s", row)
		}
	}

	schedules, err := d.ScheduleStatuses(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	want, states = nil, nil
	for _, c := range schedules {
		var next time.Time // of its jobs
		for _, j := range jobs {
			if slices.Contains(j.Schedules, c.Name) && c.State == store.ScheduleActive && j.Parked == "" && !j.NextRun.IsZero() && (next.IsZero() || j.NextRun.Before(next)) {
				next = j.NextRun
			}
		}
		if states = append(states, c.State); c.Paused == nil {
			c.Paused = &store.Pause{}
		}
		why := map[string]string{"paused": c.Paused.Reason, "parked": c.Parked}[c.State]
		want = append(want, strings.Join([]string{c.Name, c.State, why, fmt.Sprint(c.Jobs), c.Rule, instantOf(next), c.Paused.Scope, c.Paused.By, instantOf(c.Paused.Until)}, "|"))
	}
	slices.Sort(states)
	if states = slices.Compact(states); !slices.Equal(states, scheduleStates) {
		t.Errorf("the schedules have the states %q", states)
	}
	compare(t, "schedules", seen(t, d, "v_schedules", "name, state, why, jobs, rule, next_run, paused_scope, paused_by, paused_until", ""), want)

	runs, err := d.Runs(t.Context(), store.RunFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	want = nil
	for _, r := range runs {
		want = append(want, strings.Join([]string{r.ID, r.Owner, r.Job, fmt.Sprint(r.Number), r.State, r.HeldBy, instantOf(r.ScheduledFor), instantOf(r.StartedAt), instantOf(r.FinishedAt), r.Error}, "|"))
	}
	compare(t, "runs", seen(t, d, "v_runs", "id, owner, job, number, state, held_by, scheduled_for, started_at, finished_at, error", ""), want)

	want = nil
	for _, r := range runs {
		shown, err := d.Run(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range shown.Tries {
			rows := ""
			if a.Rows != nil {
				rows = fmt.Sprint(*a.Rows)
			}
			want = append(want, strings.Join([]string{r.ID, r.Owner, r.Job, fmt.Sprint(r.Number), r.State, fmt.Sprint(a.Number), fmt.Sprint(a.Step), a.StepName, fmt.Sprint(a.Attempt), a.State,
				instantOf(a.StartedAt), instantOf(a.FinishedAt), rows, a.Output, a.Error, a.Code}, "|"))
		}
	}
	compare(t, "attempts", seen(t, d, "v_attempts", "run_id, owner, job, run_number, run_state, number, step, step_name, attempt, state, started_at, finished_at, rows_affected, output, error, error_code", ""), want)

	failures, err := d.Failures(t.Context(), store.FailureFilter{Since: d.Clock.Now().Add(-24 * time.Hour), Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	want = nil
	for _, f := range failures {
		line := ""
		if f.Line > 0 {
			line = fmt.Sprint(f.Line)
		}
		number := ""
		if f.Number > 0 { // a run has no number of an attempt
			number = fmt.Sprint(f.Number)
		}
		want = append(want, strings.Join([]string{f.RunID, fmt.Sprint(f.RunNumber), f.RunState, number, f.StepName, f.State, f.Error, f.Code, line, f.Severity, f.Detail, f.Hint}, "|"))
	}
	compare(t, "errors", seen(t, d, "v_errors", "run_id, run_number, run_state, number, step_name, state, error, error_code, error_line, error_severity, error_detail, error_hint", ""), want)

	gaps, err := d.RecentGaps(t.Context(), d.Clock.Now().Add(-24*time.Hour), 1000)
	if err != nil {
		t.Fatal(err)
	}
	want = nil
	for _, g := range gaps {
		want = append(want, strings.Join([]string{g.Job[strings.Index(g.Job, "/")+1:], g.Reason, instantOf(g.From), instantOf(g.Through)}, "|"))
	}
	compare(t, "gaps", seen(t, d, "v_gaps", "job, reason, from_at, through_at", ""), want)

	changes, err := d.Changes(t.Context(), "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	want = nil
	for _, c := range changes {
		want = append(want, strings.Join([]string{instantOf(c.At), c.By, c.Kind, c.Subject, c.Action, c.Reason}, "|"))
	}
	compare(t, "changes", seen(t, d, "v_changes", "changed_at, changed_by, kind, subject, action, reason", ""), want)
}
