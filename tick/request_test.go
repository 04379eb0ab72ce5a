package tick_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A run that is opened again waits behind the active runs, like every request, and makes no gap of an occurrence.
func TestRequestToRetryWaitsItsTurn(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "INSERT INTO effects VALUES (1)")}}}})
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		failed := ticktest.Run(t, d).Runs[0].ID
		d.Exec(t, "CREATE TABLE effects (n int)")
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "h", Lease: time.Hour}
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		r, err := d.RetryRun(t.Context(), failed, "", store.Author{})
		if err != nil || r.State != store.Waiting || r.ScheduledFor.Minute() != 5 || r.IntervalEnd.Minute() != 5 {
			t.Fatalf("%v: %+v", err, r)
		}
		ticktest.DecideOnly(t, d)
		if got := ticktest.States(t, d, "job"); !slices.Equal(got, []string{store.Waiting, store.Running}) {
			t.Fatalf("beside what is active: %v", got)
		}
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d) // 08:15 becomes a run: the opened one is no occurrence that waits
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Succeeded, Final: store.Succeeded}, h); err != nil {
			t.Fatal(err)
		}
		if r := ticktest.Run(t, d); r.Succeeded != 2 {
			t.Fatalf("%+v", r)
		}
		if got := ticktest.States(t, d, "job"); !slices.Equal(got, []string{store.Succeeded, store.Succeeded, store.Succeeded}) {
			t.Fatalf("%v", got)
		}
		j, err := d.Job(t.Context(), "job")
		if err != nil || j.Streak != 0 || j.RunsOpen != 0 {
			t.Errorf("%v: %+v", err, j)
		}
	})
}

// A lost run that is opened again has all its deliveries again. The holder that lost it cannot finish any part of it.
func TestRequestToRetryALostRun(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 1, Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Request(t, d, "job")
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "h", Lease: time.Minute}
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		d.Clock.Add(time.Hour)
		ticktest.Run(t, d)
		if got := ticktest.States(t, d, "job"); !slices.Equal(got, []string{store.Lost}) {
			t.Fatal(got)
		}
		if _, err := d.RetryRun(t.Context(), tasks[0].Run.ID, "", store.Author{}); err != nil {
			t.Fatal(err)
		}
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Failed, Final: store.Failed}, h); err == nil {
			t.Error("the old holder finished it")
		}
	})
}

// A run that was requested for a later time waits for it. Until then it takes no nominal time away from
// a job that skips those that overlap.
func TestRequestForALaterTimeHoldsUpNothing(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Overlap: store.OverlapSkip,
			Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d)
		at := d.Clock.Now().Add(12 * time.Minute)
		r := ticktest.RunNow(t, d, "job", store.Request{At: at})
		ends := []string{store.Waiting, store.Waiting, store.Succeeded} // of the request, after the passes
		for i, want := range ends {
			d.Clock.Add(5 * time.Minute)
			if report := ticktest.Run(t, d); (report.Gaps[store.Overlap] > 0) != (want == store.Succeeded) {
				t.Errorf("pass %d: gaps %v; want one where the request's time has come", i, report.Gaps)
			}
			is, err := d.Run(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if is.State != want || !is.ScheduledFor.Equal(at) {
				t.Errorf("pass %d: the request for %s is %s for %s, want %s", i, at, is.State, is.ScheduledFor, want)
			}
		}
		if list, err := d.Runs(t.Context(), store.RunFilter{States: []string{store.Succeeded}}); err != nil || len(list) != 3 {
			t.Errorf("%d runs, %v; want the request, and those of the five minutes before it", len(list), err)
		}
	})
}

// A request may begin with a step: those before it are left out, whatever the runs before did.
func TestRequestBeginsWithAStep(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("first"), ticktest.Nop("second"), ticktest.Nop("third")}}}})
		for _, c := range []struct {
			from string
			want []string
		}{{"", []string{"first", "second", "third"}}, {"second", []string{"second", "third"}}, {"3", []string{"third"}}} {
			q := ticktest.RunNow(t, d, "job", store.Request{FromStep: c.from})
			if r := ticktest.Run(t, d); r.Succeeded != 1 {
				t.Fatalf("from %q: %+v", c.from, r)
			}
			r, err := d.Run(t.Context(), q.ID)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range r.Tries {
				got = append(got, a.StepName)
			}
			if !slices.Equal(got, c.want) || q.Step != 4-len(c.want) {
				t.Errorf("from %q: it executed %v, and said step %d; want %v", c.from, got, q.Step, c.want)
			}
			d.Clock.Add(time.Minute)
		}
		for _, wrong := range []string{"fourth", "4", "0"} {
			if _, err := d.RunNow(t.Context(), "job", store.Request{FromStep: wrong}); err == nil || !strings.Contains(err.Error(), "job: step: there is no step \""+wrong+"\"; there are first, second, third") {
				t.Errorf("from %s: %v", wrong, err)
			}
		}
		list, err := d.JobHistory(t.Context(), "job", 2)
		if err != nil || len(list) != 2 || !strings.Contains(string(list[1].After), "second") {
			t.Errorf("%v: %+v", err, list)
		}
	})
}
