package simulate_test

import (
	"maps"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/simulate"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A simulation goes on with the state at its beginning: a job that runs after two others, one of which has ended, a
// second attempt that is under way, and pauses that hold.
func TestSimulationGoesOnWithWhatIsOpen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		w := &world{t: t, start: d.Clock.Now().Truncate(time.Hour), fails: map[string]int{}, slow: map[string]bool{}, names: map[int64]string{}}
		attempts := store.Attempts(3)
		for _, name := range []string{"a", "b", "paused", "held"} {
			j := ticktest.Hourly(name)
			j.Steps = []store.Step{ticktest.Step("", "SELECT 1")} // the real passes execute no other step
			j.Queue, j.Overlap, j.Retry.Attempts = "worker", store.OverlapWaitAll, &attempts
			w.slow[name], w.fails[name] = true, 60
			w.defs.Jobs = append(w.defs.Jobs, j)
		}
		both := store.Job{Name: "both", After: []store.After{{Job: "a", On: store.OnEnd}, {Job: "b", On: store.OnEnd}}, Overlap: store.OverlapAllow, MaxRunning: 1000}
		both.Steps = w.defs.Jobs[0].Steps
		w.defs.Jobs = append(w.defs.Jobs, both)

		r := w.real(d)
		o := simulate.Options{From: w.start, Every: 10 * time.Minute}
		middle := w.start
		for ; !r.halfMet() || !r.triedAgain(); middle = middle.Add(o.Every) {
			if middle.Sub(w.start) > 10*24*time.Hour {
				t.Fatal("it never comes to that")
			}
			r.until(middle, middle.Add(o.Every), o)
		}
		for name, until := range map[string]time.Time{"paused": middle.Add(5 * time.Hour), "held": {}} {
			ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: name}, until)
		}
		settled := r.settled()
		before := r.ledger(nil)
		o.From, o.To = middle, middle.Add(60*time.Hour)
		if d.Engine != "sqlite" {
			o.To = middle.Add(12 * time.Hour) // only the way in which rows are read may differ
		}
		half := w.simulated(r.read(middle), &r.keys, o)
		r.until(middle, o.To, o)
		want := added(before, r.ledger(settled))
		if text := differences(want, r.seen(half)); text != "" || len(want) < 20 {
			t.Errorf("of %d lines:\n%s", len(want), text)
		}
	})
}

func (r *reality) halfMet() bool {
	return r.d.Int(r.t, "SELECT COUNT(*) FROM "+r.d.Table("job_ends")) > 0
}

func (r *reality) triedAgain() bool {
	runs, err := r.d.Runs(r.t.Context(), store.RunFilter{States: []string{store.Running}, Limit: 100})
	r.must(err)
	for i := range runs {
		if runs[i].Attempt > 1 && runs[i].Job != "both" {
			return true
		}
	}
	return false
}

// A simulation that begins later counts the runs before it for max_runs.
func TestSimulationFromLaterCountsMaxRuns(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		limited := func(name string, most int64, schedules ...string) store.Job {
			return store.Job{Name: name, Schedules: schedules, MaxRuns: most, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}
		}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "early", Rule: "daily at 3:30"}, {Name: "late", Rule: "daily at 15:30"}},
			Jobs: []store.Job{limited("three", 3, "early"), limited("twelve", 12, "early"), limited("two rules", 25, "early", "late"), limited("held", 8, "early")}})
		ticktest.Run(t, d)
		now := d.Clock.Now()
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "held"}, now.AddDate(0, 0, 5))
		from := now.AddDate(0, 0, 10)
		in, _, err := simulate.Read(t.Context(), d.Store, from, now)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		o := simulate.Options{From: from, To: from.AddDate(0, 0, 20), Run: func(r store.Run) { got[r.Job]++ }}
		if _, err := simulate.Run(t.Context(), in, o); err != nil {
			t.Fatal(err)
		}
		if want := (map[string]int{"twelve": 2, "two rules": 5, "held": 3}); !maps.Equal(got, want) {
			t.Errorf("the simulation has %v, want %v", got, want)
		}
	})
}
