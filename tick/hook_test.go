package tick_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// told returns the events of the runs of a hook, the oldest first.
func told(t *testing.T, d *storetest.DB, hook string) (events []map[string]any) {
	t.Helper()
	runs, err := d.Runs(t.Context(), store.RunFilter{Job: hook})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range slices.Backward(runs) {
		var e map[string]any
		if err := json.Unmarshal([]byte(r.Args), &e); err != nil {
			t.Fatalf("%s of %s: %v: %s", r.Occurrence, hook, err, r.Args)
		}
		if r.Event() == "" || !strings.HasPrefix(r.Event(), e["event"].(string)+":") {
			t.Errorf("a run of %s for %v, by the occurrence %s", hook, e, r.Occurrence)
		}
		events = append(events, e)
	}
	return events
}

// kinds returns the events on one line.
func kinds(events []map[string]any) string {
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprintf("%v of %v", e["event"], e["job"]))
	}
	return strings.Join(all, ", ")
}

// hooked is a job that names the job tell as each of its hooks.
func hooked(j store.Job) store.Job {
	j.On = store.Hooks{Failed: "tell", Recovered: "tell", Missed: "tell", Late: "tell", Parked: "tell", Paused: "tell"}
	return j
}

// failing is a tick whose steps of ticktest.Call fail while *broken.
func failing(t *testing.T, d *storetest.DB, broken *bool) *tick.Tick {
	tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
		d.Clock.Add(time.Millisecond) // the following runs are made after the pass has begun
		if *broken {
			return executor.Result{}, errors.New("the source is gone")
		}
		return executor.Result{}, nil
	})
	tk.Late = 15 * time.Minute
	return tk
}

// hookedRun is a requested run of the job load, which has all hooks, and a tick whose runs of it fail while *broken.
func hookedRun(t *testing.T, d *storetest.DB, broken *bool) (*tick.Tick, store.Run) {
	t.Helper()
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
		hooked(store.Job{Name: "load", Steps: []store.Step{ticktest.Call("")}}), {Name: "tell", Steps: []store.Step{ticktest.Nop("")}}}})
	run := ticktest.RunNow(t, d, "load", store.Request{})
	return failing(t, d, broken), run.Run
}

// A hook runs once for each run that failed, and for the first run that succeeds again. It runs in the same pass, and
// gets the facts.
func TestHookOfAFailureAndOfTheRecovery(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (event varchar(99), job varchar(99), error varchar(99), streak varchar(99))")
		tell := ticktest.StepWith(true, "INSERT INTO effects VALUES ("+places(d, 4)+")", "${args.event}", "${args.job}", "${args.error}", "${args.streak}/${args.attempts}")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			hooked(store.Job{Name: "load", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Call("")}}),
			{Name: "tell", Steps: []store.Step{tell}},
		}})
		broken := true
		tk := failing(t, d, &broken)
		ticktest.Pass(t, tk)
		for i, want := range []struct{ broken, event, row string }{
			{"yes", "failed", "job = 'load' AND error = 'the source is gone' AND streak = '1/1'"},
			{"yes", "failed", "streak = '2/1'"},
			{"", "recovered", "error = '' AND streak = '2/1'"},
			{"", "", ""},
		} {
			broken = want.broken != ""
			d.Clock.Add(5 * time.Minute)
			ticktest.Pass(t, tk)
			n := d.Int(t, "SELECT COUNT(*) FROM effects")
			if want.event == "" {
				if n != 3 {
					t.Errorf("a run that succeeded as the one before: %d events", n)
				}
				break
			}
			if one := d.Int(t, "SELECT COUNT(*) FROM effects WHERE event = '"+want.event+"' AND "+want.row); n != i+1 || one != 1 {
				t.Errorf("run %d: %d events, %d with %s; %v", i+1, n, one, want.row, told(t, d, "tell"))
			}
		}
		if e := told(t, d, "tell"); len(e) != 3 || e[0]["scheduled_for"] == "" || e[0]["run_id"] == "" || e[0]["at"] == "" || e[0]["run_id"] == e[1]["run_id"] {
			t.Errorf("%v", e)
		}
	})
}

// A run that is opened again and fails again raises its event again.
func TestHookOfARunThatFailsAgain(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		broken := true
		tk, run := hookedRun(t, d, &broken)
		for i := 1; i <= 3; i++ {
			ticktest.Pass(t, tk)
			if got := told(t, d, "tell"); len(got) != i || got[i-1]["run_id"] != run.ID {
				t.Fatalf("after %d ends: %v", i, got)
			}
			d.Clock.Add(time.Minute)
			if broken = i < 2; i < 3 {
				if _, err := d.RetryRun(t.Context(), run.ID, "", store.Author{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := kinds(told(t, d, "tell")); got != "failed of load, failed of load, recovered of load" {
			t.Error(got)
		}
	})
}

// A run that has failed is not opened again before its failure is settled: no event would be raised for it.
func TestHookOfAFailureBeforeARetry(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		broken := true
		tk, run := hookedRun(t, d, &broken)
		ticktest.DecideOnly(t, d)
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'failed', error = 'of a worker' WHERE id = '"+run.ID+"'")
		_, err := d.RetryRun(t.Context(), run.ID, "", store.Author{})
		if refused := new(store.FieldError); !errors.As(err, &refused) || !strings.Contains(err.Error(), "try again after the next tick") {
			t.Error(err)
		}
		ticktest.Pass(t, tk)
		if got := told(t, d, "tell"); len(got) != 1 || got[0]["error"] != "of a worker" {
			t.Error(got)
		}
		if _, err := d.RetryRun(t.Context(), run.ID, "", store.Author{}); err != nil {
			t.Error(err)
		}
	})
}

// Each end of a run raises its event. This is also true if a run that was opened again ends without another delivery:
// here by plain SQL.
func TestHookOfARunThatFailsUndelivered(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		broken := true
		tk, run := hookedRun(t, d, &broken)
		ticktest.Pass(t, tk)
		for n := 2; n <= 3; n++ {
			d.Clock.Add(time.Minute)
			if _, err := d.RetryRun(t.Context(), run.ID, "", store.Author{}); err != nil {
				t.Fatal(err)
			}
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'failed', error = 'by hand' WHERE id = '"+run.ID+"'")
			ticktest.Pass(t, tk)
			if got := told(t, d, "tell"); len(got) != n || got[n-1]["error"] != "by hand" {
				t.Fatalf("after %d ends: %v", n, got)
			}
		}
	})
}

// An atomic step that committed before its end pauses its job. The hook runs, and the job is paused once.
func TestHookOfAPauseByTheEndOfAStep(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		commits := func(name, onError string) store.Job {
			st := ticktest.AtomicStep("INSERT INTO effects VALUES (1)", "COMMIT")
			st.Name = strings.Repeat("long", 20)
			return store.Job{Name: name, OnError: onError, On: store.Hooks{Paused: "tell"}, Steps: []store.Step{st}}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{commits("a", ""), commits("b", store.OnErrorPause), {Name: "tell", Steps: []store.Step{ticktest.Call("")}}}})
		runs := map[any]string{}
		for _, job := range []string{"a", "b"} {
			run := ticktest.RunNow(t, d, job, store.Request{})
			runs[job] = run.ID
		}
		tk := failing(t, d, new(bool))
		for range 2 {
			ticktest.Pass(t, tk)
			d.Clock.Add(time.Minute)
		}
		got := told(t, d, "tell")
		for _, e := range got {
			if e["event"] != store.EventPaused || e["run_id"] != runs[e["job"]] || !strings.Contains(fmt.Sprint(e["error"]), "its SQL ended the transaction") {
				t.Errorf("%v", e)
			}
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("pauses")); n != 2 || len(got) != 2 {
			t.Errorf("%d pauses; told: %s", n, kinds(got))
		}
	})
}

// After an outage, one event reports all missed times, and one reports that a run is late. A pause raises no event.
func TestHookOfWhatWasMissedAndIsLate(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Call("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			hooked(store.Job{Name: "often", Own: ticktest.EveryFiveMinutes(), Steps: ok}),
			hooked(store.Job{Name: "daily", Own: &store.Schedule{Rule: "every 24h"}, Steps: ok}),
			hooked(store.Job{Name: "paused", Own: ticktest.EveryFiveMinutes(), Steps: ok}),
			{Name: "tell", Steps: ok},
		}})
		tk := failing(t, d, new(bool))
		ticktest.Pass(t, tk)
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "paused"}, time.Time{})
		first := d.Clock.Now().Truncate(5 * time.Minute).Add(5 * time.Minute)
		day := d.Clock.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
		d.Clock.Set(day.Add(16 * time.Minute))
		ticktest.Pass(t, tk)
		got := told(t, d, "tell")
		slices.SortFunc(got, func(x, y map[string]any) int { return strings.Compare(fmt.Sprint(x["event"]), fmt.Sprint(y["event"])) })
		if kinds(got) != "late of daily, missed of often" {
			t.Fatal(kinds(got))
		}
		missed := int(day.Add(15*time.Minute).Sub(first) / (5 * time.Minute))
		at := func(v time.Time) string { return v.UTC().Format("2006-01-02T15:04:05.000000Z") }
		if got[1]["count"] != float64(missed) || got[1]["scheduled_for"] != at(first) || got[0]["count"] != 1. || got[0]["scheduled_for"] != at(day) {
			t.Errorf("%v, want %d missed from %s and one late of %s", got, missed, at(first), at(day))
		}
	})
}

// Hooks run when a job paused itself, was parked (once), and lost a run.
func TestHookOfAPauseOfParkingAndOfALoss(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Call("")}
		paused := hooked(store.Job{Name: "paused", OnError: store.OnErrorPause, Steps: ok})
		paused.On.Failed = "" // this job reports fewer events: each job chooses its own
		lost := hooked(store.Job{Name: "lost", MaxDeliveries: 1, Steps: ok})
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{paused, lost, hooked(store.Job{Name: "parked", Own: ticktest.EveryFiveMinutes(), Steps: ok}), {Name: "tell", Steps: ok}}})
		broken := true
		tk := failing(t, d, &broken)
		ticktest.RunNow(t, d, "paused", store.Request{})
		ticktest.Pass(t, tk)
		broken = false
		d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = 'every blue moon'")
		for range 2 {
			d.Clock.Add(5 * time.Minute)
			ticktest.Pass(t, tk)
		}
		ticktest.RunNow(t, d, "lost", store.Request{})
		ticktest.DecideOnly(t, d)
		if list, err := d.Take(t.Context(), "tick", 1, store.Holder{Name: "dead", Lease: time.Minute}); err != nil || len(list) != 1 {
			t.Fatal(err, list)
		}
		d.Clock.Add(5 * time.Minute)
		ticktest.Pass(t, tk)
		got := told(t, d, "tell")
		if kinds(got) != "paused of paused, parked of parked, lost of lost" {
			t.Fatal(kinds(got))
		}
		for i, want := range []string{"on_error is pause", "every blue moon", "no heartbeat"} {
			if !strings.Contains(fmt.Sprint(got[i]["error"]), want) {
				t.Errorf("%v does not say %s", got[i], want)
			}
		}
	})
}

// A hook that fails calls no hook, also if it is its own hook, and no job runs after it. So no pass goes on for ever.
func TestHookOfAHookIsNotFollowed(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		broken := true
		tk := failing(t, d, &broken)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			hooked(store.Job{Name: "load", Steps: []store.Step{ticktest.Call("")}}),
			hooked(store.Job{Name: "tell", OnError: store.OnErrorPause, Steps: []store.Step{ticktest.Call("")}}),
		}})
		ticktest.RunNow(t, d, "load", store.Request{})
		ticktest.Pass(t, tk)
		if got := kinds(told(t, d, "tell")); got != "failed of load" {
			t.Error(got)
		}

		// A job that runs after a hook, and has that hook, would be a circle.
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "say", Steps: []store.Step{ticktest.Nop("")}},
			{Name: "round", After: []store.After{{Job: "say"}}, On: store.Hooks{Failed: "say"}, Steps: []store.Step{ticktest.Call("")}},
		}})
		ticktest.RunNow(t, d, "round", store.Request{})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := tk.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got := kinds(told(t, d, "say")); got != "failed of round" {
			t.Error(got)
		}
	})
}

// A hook whose name has no owner belongs to the same owner, wherever it is in the file. A hook that does not exist is
// refused.
func TestHookIsNamed(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		defs := store.Definitions{Jobs: []store.Job{hooked(store.Job{Name: "load", Steps: ok}), {Name: "tell", Steps: ok}}}
		ticktest.Apply(t, d, defs)
		if list, err := d.Apply(t.Context(), defs, store.ApplyOptions{}); err != nil || len(list) != 0 {
			t.Fatalf("applied twice: %v, %+v", err, list)
		}
		if d.Engine != "sqlite" {
			full := defs
			full.Jobs = slices.Clone(defs.Jobs)
			login, err := d.Login(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			full.Jobs[0].On.Failed = login + "/tell"
			if list, err := d.Apply(t.Context(), full, store.ApplyOptions{}); err != nil || len(list) != 0 {
				t.Fatalf("applied with its owner: %v, %+v", err, list)
			}
		}
		_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "other", On: store.Hooks{Lost: "tel"}, Steps: ok}}}, store.ApplyOptions{})
		if err == nil || !strings.Contains(err.Error(), `on.lost: job "tel"`) {
			t.Fatalf("a hook that is nowhere: %v", err)
		}
	})
}
