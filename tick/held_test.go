package tick_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A run that waits says for which runs, or which pause holds it. The name of a job cancels its only open run; if several
// are open, it cancels none.
func TestRunsThatWaitNameWhatHoldsThem(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		aside := func(name, group string) store.Job {
			return store.Job{Name: name, Group: group, Queue: "other", Steps: []store.Step{ticktest.Nop("")}}
		}
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "one", MaxRunning: 1}}, Jobs: []store.Job{
			aside("first", "one"), aside("second", "one"), aside("alone", ""), aside("queued", "")}})
		request := func(jobs ...string) {
			t.Helper()
			for _, job := range jobs {
				ticktest.Request(t, d, job)
				ticktest.DecideOnly(t, d)
			}
		}
		run := func(name string) store.RunDetail {
			t.Helper()
			r, err := d.Run(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		label := func(job string, number int) string {
			return (&store.Run{Owner: run(job).Owner, Job: job, Number: int64(number)}).Label()
		}

		// A worker may take a queued run until a pass has seen the pause of its job. So the run is not held before.
		held := func(want string) {
			t.Helper()
			list, err := d.Runs(t.Context(), store.RunFilter{Job: "queued"})
			if views := seen(t, d, "v_runs", "state, held_by", "WHERE job = 'queued'"); err != nil || len(list) != 1 || list[0].State+"|"+list[0].HeldBy != want || !slices.Equal(views, []string{want}) {
				t.Errorf("%v: run list has %+v, v_runs has %q, want %s", err, list, views, want)
			}
		}
		request("queued")
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "queued"}, time.Time{})
		held("queued|")
		ticktest.DecideOnly(t, d)
		held("waiting|pause")
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeJob, Name: "queued"}, false)
		ticktest.DecideOnly(t, d)
		held("queued|")
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "queued"}, time.Time{})
		if tasks, err := d.Take(t.Context(), "other", 10, store.Holder{Name: "h", Lease: time.Hour}); err != nil || len(tasks) != 1 {
			t.Fatalf("%v: %d taken", err, len(tasks))
		}

		request("first", "second", "alone", "alone")
		if tasks, err := d.Take(t.Context(), "other", 10, store.Holder{Name: "h", Lease: time.Hour}); err != nil || len(tasks) != 2 {
			t.Fatalf("%v: %d taken", err, len(tasks))
		}
		if r := run("second"); r.HeldBy != store.HeldByGroup || r.Group != "one" || !slices.Equal(r.Behind, []string{label("first", 1)}) {
			t.Errorf("behind the group: held by %q, group %q, %q", r.HeldBy, r.Group, r.Behind)
		}
		// It has begun before, and waits for its next delivery: it does not wait for itself.
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET started_at = "+ticktest.Literal(d, d.Clock.Now())+" WHERE id = '"+run("second").ID+"'")
		if r := run("second"); !slices.Equal(r.Behind, []string{label("first", 1)}) {
			t.Errorf("begun before, behind the group: %q", r.Behind)
		}
		if r := run("alone"); r.Number != 2 || r.HeldBy == "" || r.Group != "" || !slices.Equal(r.Behind, []string{label("alone", 1)}) {
			t.Errorf("behind the run of its job: #%d held by %q, %q", r.Number, r.HeldBy, r.Behind)
		}

		if _, err := d.CancelRun(t.Context(), "alone", store.Author{}); err == nil || !strings.Contains(err.Error(), label("alone", 1)+" (running), "+label("alone", 2)+" (waiting)") {
			t.Errorf("cancel of one of two: %v", err)
		}
		if r, err := d.CancelRun(t.Context(), "second", store.Author{}); err != nil || r.Number != 1 {
			t.Errorf("cancel of the only one: %v, %+v", err, r)
		}
		ticktest.DecideOnly(t, d)
		if first, second := run("alone#1"), run("second"); first.CancelAt != (time.Time{}) || second.State != store.Cancelled {
			t.Errorf("cancelled at %v; %s", first.CancelAt, second.State)
		}

		if _, err := d.Pause(t.Context(), store.Subject{Scope: store.ScopeJob, Name: "second"}, time.Time{}, store.Author{By: "ada", Reason: "the source is down"}); err != nil {
			t.Fatal(err)
		}
		request("second")
		if r := run("second"); r.HeldBy != store.HeldByPause || r.Paused == nil || r.Paused.Reason != "the source is down" || len(r.Behind) > 0 {
			t.Errorf("in the pause: held by %q, %+v, %q", r.HeldBy, r.Paused, r.Behind)
		}
	})
}

// A run that was held is ready from the decision that lets it go, however long ago its time was: no process could take it before.
func TestQueueReportsARunFromItsRelease(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		never := func(name, group string) store.Job {
			return store.Job{Name: name, Group: group, Queue: name, Timeout: store.Duration(time.Hour), Steps: []store.Step{ticktest.Nop("")}}
		}
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "one", MaxRunning: 1}},
			Jobs: []store.Job{never("paused", ""), never("follows", ""), never("holds", "one"), never("held", "one")}})
		queue := func(job string) {
			t.Helper()
			ticktest.Request(t, d, job)
			ticktest.DecideOnly(t, d)
		}
		cancel := func(job string) {
			t.Helper()
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: job, States: []string{store.Queued}})
			if err != nil || len(runs) != 1 {
				t.Fatalf("%v: %+v", err, runs)
			}
			if _, err := d.CancelRun(t.Context(), runs[0].ID, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
		paused := store.Subject{Scope: store.ScopeJob, Name: "paused"}
		tk := ticktest.New(t, d.Store)
		tk.Gauges, tk.Limit = true, -1
		for _, c := range []struct {
			queue         string
			hold, release func()
		}{
			{"paused", func() { ticktest.Pause(t, d, paused, time.Time{}); queue("paused") }, func() { ticktest.Resume(t, d, paused, false) }},
			{"paused", func() { queue("paused"); ticktest.Pause(t, d, paused, time.Time{}) }, func() { ticktest.Resume(t, d, paused, false) }},
			{"follows", func() { queue("follows"); queue("follows") }, func() { cancel("follows") }},
			{"held", func() { queue("holds"); queue("held") }, func() { cancel("holds") }},
		} {
			c.hold()
			ticktest.DecideOnly(t, d)
			d.Clock.Add(56 * time.Hour)
			c.release()
			released := d.Clock.Now()
			for _, after := range []time.Duration{0, 2 * time.Hour} {
				d.Clock.Set(released.Add(after))
				r, err := tk.Run(t.Context())
				if err != nil || !r.OldestQueued.Equal(released) {
					t.Errorf("%s: %v: %s after the release, the oldest run is ready since %s, want %s", c.queue, err, after, r.OldestQueued, released)
				}
				f, err := d.Figures(t.Context(), time.Hour)
				if stuck := after > 0; err != nil || f.Stuck > 0 != stuck || stuck && !f.StuckSince.Equal(released) {
					t.Errorf("%s: %v: %s after the release, %d are stuck since %s", c.queue, err, after, f.Stuck, f.StuckSince)
				}
				open, err := d.OpenRuns(t.Context(), 10)
				if err != nil || len(open) != 1 || open[0].State != store.Queued || !open[0].Ready.Equal(released) {
					t.Errorf("%s: %v: %s after the release: %+v", c.queue, err, after, open)
				}
				probe, err := d.Probe(t.Context(), "", c.queue)
				if err != nil || !probe.QueuedSince.Equal(released) {
					t.Errorf("%s: %v: %s after the release, the probe finds a run since %s", c.queue, err, after, probe.QueuedSince)
				}
				late, err := d.TooLong(t.Context(), c.queue, time.Minute)
				if err != nil || len(late) != 1 || !late[0].Since.Equal(released) {
					t.Errorf("%s: %v: %s after the release: %+v", c.queue, err, after, late)
				}
				damages, err := d.Damages(t.Context(), 10)
				damages = slices.DeleteFunc(damages, func(g store.Damage) bool { return g.Kind != "queued" })
				if stuck := after > 0; err != nil || len(damages) > 0 != stuck || stuck && !damages[0].At.Equal(released) {
					t.Errorf("%s: %v: %s after the release: %+v", c.queue, err, after, damages)
				}
			}
			cancel(c.queue)
			ticktest.DecideOnly(t, d)
		}
	})
}

// A run that was let go while the clock of the database was ahead is ready from the correction on.
func TestReplanOfRunsThatWereQueuedAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "held", Queue: "never", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		held := store.Subject{Scope: store.ScopeJob, Name: "held"}
		ticktest.Pause(t, d, held, time.Time{})
		ticktest.Request(t, d, "held")
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		ticktest.Resume(t, d, held, false)
		d.Clock.Set(right.AddDate(0, 0, 20))
		ticktest.DecideOnly(t, d)
		d.Clock.Set(right.Add(time.Minute))
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 1 {
			t.Fatalf("%+v, %v", n, err)
		}
		if since, err := d.OldestQueued(t.Context()); err != nil || !since.Equal(right.Add(time.Minute)) {
			t.Errorf("%v: it is ready since %v", err, since)
		}
	})
}
