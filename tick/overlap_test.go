package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// policyTable has the results of every value of overlap and missed for a job that is due every five minutes from 08:05
// on. The run of 08:05 goes on all the time. Ticks come at 08:05, at 08:26 and at 08:33. missed_limit and max_running
// are 2, and grace is two minutes.
var policyTable = []struct{ overlap, missed, want string }{
	{"wait", "latest", "08:05 running; 08:25 waiting predecessor; missed (08:05:00, 08:24:59.999999]; overlap (08:29:59.999999, 08:33:00]"},
	{"wait", "all", "08:05 running; 08:20 waiting predecessor; 08:25 waiting predecessor; missed (08:05:00, 08:19:59.999999]; overlap (08:29:59.999999, 08:33:00]"},
	{"wait", "skip", "08:05 running; 08:25 waiting predecessor; missed (08:05:00, 08:24:59.999999]; missed (08:26:00, 08:33:00]"},
	{"wait-all", "latest", "08:05 running; 08:25 waiting predecessor; 08:30 waiting predecessor; missed (08:05:00, 08:24:59.999999]"},
	{"wait-all", "all", "08:05 running; 08:20 waiting predecessor; 08:25 waiting predecessor; 08:30 waiting predecessor; missed (08:05:00, 08:19:59.999999]"},
	{"wait-all", "skip", "08:05 running; 08:25 waiting predecessor; missed (08:05:00, 08:24:59.999999]; missed (08:26:00, 08:33:00]"},
	{"skip", "latest", "08:05 running; missed (08:05:00, 08:24:59.999999]; overlap (08:24:59.999999, 08:26:00]; overlap (08:29:59.999999, 08:33:00]"},
	{"skip", "all", "08:05 running; missed (08:05:00, 08:19:59.999999]; overlap (08:19:59.999999, 08:26:00]; overlap (08:29:59.999999, 08:33:00]"},
	{"skip", "skip", "08:05 running; missed (08:05:00, 08:24:59.999999]; overlap (08:24:59.999999, 08:26:00]; missed (08:26:00, 08:33:00]"},
	{"allow", "latest", "08:05 running; 08:25 queued; 08:30 waiting predecessor; missed (08:05:00, 08:24:59.999999]"},
	{"allow", "all", "08:05 running; 08:20 queued; 08:25 waiting predecessor; 08:30 waiting predecessor; missed (08:05:00, 08:19:59.999999]"},
	{"allow", "skip", "08:05 running; 08:25 queued; missed (08:05:00, 08:24:59.999999]; missed (08:26:00, 08:33:00]"},
	{"replace", "latest", "08:05 running; 08:25 cancelled; 08:30 waiting predecessor; missed (08:05:00, 08:24:59.999999]"},
	{"replace", "all", "08:05 running; 08:20 cancelled; 08:25 cancelled; 08:30 waiting predecessor; missed (08:05:00, 08:19:59.999999]"},
	{"replace", "skip", "08:05 running; 08:25 waiting predecessor; missed (08:05:00, 08:24:59.999999]; missed (08:26:00, 08:33:00]"},
}

// Each value of overlap works with each value of missed.
func TestOverlapWithMissed(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		var defs store.Definitions
		for _, row := range policyTable {
			j := ticktest.Grouped(row.overlap+" "+row.missed, "", 0)
			if j.Overlap, j.Missed = row.overlap, row.missed; row.overlap == "allow" {
				j.MaxRunning = 2
			}
			if row.missed == "all" {
				j.MissedLimit = 2
			}
			defs.Jobs = append(defs.Jobs, j)
		}
		ticktest.Apply(t, d, defs)
		ticktest.DecideOnly(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d)
		tasks, err := d.Take(t.Context(), "another", 100, store.Holder{Name: "h", Lease: time.Hour})
		if err != nil || len(tasks) != len(policyTable) {
			t.Fatalf("%v: %d taken", err, len(tasks))
		}
		for _, wait := range []time.Duration{21 * time.Minute, 7 * time.Minute} {
			d.Clock.Add(wait)
			ticktest.DecideOnly(t, d)
		}
		for _, row := range policyTable {
			got := strings.ReplaceAll(ticktest.Told(t, d, row.overlap+" "+row.missed), "01-05T", "")
			if want := row.want + "; next 08:35"; got != want {
				t.Errorf("overlap %s, missed %s:\n got %s\nwant %s", row.overlap, row.missed, got, want)
			}
		}
	})
}

// With replace, a new time cancels the run that waits, and requests the end of the run that executes.
func TestOverlapReplaceMakesWayForTheNewest(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Overlap: "replace", Steps: []store.Step{ticktest.Nop("")}}}})
		decide := func() {
			t.Helper()
			ticktest.DecideOnly(t, d)
			d.Clock.Add(5 * time.Minute)
		}
		decide()
		decide() // 08:05 is queued
		h := store.Holder{Name: "h", Lease: time.Hour}
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		decide() // 08:10 waits for it, and is reported
		decide() // 08:15 takes the place of the run that waits
		signs, err := d.Heartbeat(t.Context(), []string{tasks[0].Run.ID}, h)
		if err != nil || !signs[tasks[0].Run.ID].Cancel {
			t.Fatalf("%v: %+v", err, signs)
		}
		if err := d.EndStep(t.Context(), &tasks[0], store.StepEnd{State: store.Cancelled, Final: store.Cancelled}, h); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		runs, err := d.Runs(t.Context(), store.RunFilter{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range runs {
			got += r.ScheduledFor.Format("15:04 ") + r.State + ", "
		}
		if got != "08:20 succeeded, 08:15 cancelled, 08:10 cancelled, 08:05 cancelled, " {
			t.Fatal(got)
		}
	})
}
