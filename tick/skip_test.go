package tick_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A skipped time becomes its own gap when it has come, and the next time runs. A time whose skip was undone runs.
func TestSkippedTimesAreGaps(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{
			Schedules: []store.Schedule{{Name: "tens", Rule: "every 10m"}},
			Jobs: []store.Job{
				{Name: "one", Own: ticktest.EveryFiveMinutes(), Missed: store.MissedAll, Steps: []store.Step{ticktest.Nop("")}},
				{Name: "both", Own: ticktest.EveryFiveMinutes(), Schedules: []string{"tens"}, Missed: store.MissedAll, Steps: []store.Step{ticktest.Nop("")}},
			}})
		ticktest.Run(t, d) // 08:00
		who := store.Author{By: "ada", Reason: "the source is down"}
		skip := func(job, schedule string, count int, want ...string) {
			t.Helper()
			list, err := tick.SkipNext(t.Context(), d.Store, job, schedule, count, who)
			if err != nil {
				t.Fatal(err)
			}
			sameTimes(t, list, want...)
		}
		skip("one", "", 1, "08:05")
		skip("one", "", 2, "08:10", "08:15") // beyond the times that are skipped already
		skip("both", "tens", 1, "08:10")     // the job's own rule has this time, too
		v, err := d.Job(t.Context(), "one")
		if err != nil || v.NextRun.Format("15:04") != "08:20" || len(v.Skips) != 3 || v.Skips[0].By != "ada" || v.Skips[0].Reason != who.Reason {
			t.Errorf("%v: next %s, skips %+v", err, v.NextRun, v.Skips)
		}
		all, err := d.Jobs(t.Context(), store.JobFilter{})
		if err != nil {
			t.Fatal(err)
		}
		u, err := tick.Upcoming(t.Context(), d.Store, all, d.Clock.Now(), d.Clock.Now().Add(21*time.Minute), 100)
		if err != nil || len(u.Runs) != 5 || len(u.Skipped) != 4 {
			t.Errorf("%v: %+v", err, u)
		}
		undone, err := tick.UndoSkips(t.Context(), d.Store, "one", "", who)
		if err != nil {
			t.Fatal(err)
		}
		sameTimes(t, undone, "08:05", "08:10", "08:15")
		skip("one", "", 2, "08:05", "08:10")
		for range 2 { // at 08:05 one time by itself, then 08:10 to 08:20 in one pass
			d.Clock.Add(5 * time.Minute)
			ticktest.Run(t, d)
			d.Clock.Add(5 * time.Minute)
		}
		ticktest.Run(t, d)
		for job, want := range map[string][]string{"one": {"08:15", "08:20"}, "both": {"08:05", "08:10", "08:15", "08:20"}} {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: job})
			if err != nil || len(runs) != len(want) {
				t.Fatalf("%v: %s has %d runs, want %v", err, job, len(runs), want)
			}
			for i, r := range runs { // the newest first
				if got := r.ScheduledFor.Format("15:04"); got != want[len(want)-1-i] {
					t.Errorf("%s: run %d is for %s, want %v", job, i, got, want)
				}
			}
		}
		gaps, err := d.Gaps(t.Context(), "one", 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range gaps {
			if g.Reason != store.Skipped {
				t.Errorf("a gap by %s", g.Reason)
			}
		}
		if v, err = d.Job(t.Context(), "one"); err != nil || len(gaps) != 2 || len(v.Skips) != 0 || v.NextRun.Format("15:04") != "08:25" {
			t.Errorf("%v: %d gaps, skips %+v, next %s", err, len(gaps), v.Skips, v.NextRun)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("plans")+" WHERE skips IS NOT NULL"); n != 0 {
			t.Errorf("%d plans have skips of times that have come", n)
		}
	})
}

func sameTimes(t *testing.T, list []store.Skip, want ...string) {
	t.Helper()
	if len(list) != len(want) {
		t.Fatalf("%+v, want %v", list, want)
	}
	for i, k := range list {
		if k.At.Format("15:04") != want[i] {
			t.Errorf("%s, want %s", k.At, want[i])
		}
	}
}

// While passes decide, somebody skips times: each time is a run or lies in a gap, never both, and those
// that the command named do not run.
func TestSkipsBesidePasses(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Overlap: store.OverlapAllow, MaxRunning: 100,
			Queue: "another", Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.DecideOnly(t, d)
		const rounds = 12
		skipped := map[string]bool{}
		for range rounds {
			var list []store.Skip
			var err error
			var both sync.WaitGroup
			d.Clock.Add(5 * time.Minute)
			both.Go(func() { list, err = tick.SkipNext(t.Context(), d.Store, "job", "", 1, store.Author{}) })
			ticktest.DecideOnly(t, d)
			both.Wait()
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range list {
				skipped[k.At.UTC().Format("15:04")] = true
			}
			d.Clock.Add(5 * time.Minute)
			ticktest.DecideOnly(t, d)
			ticktest.DecideOnly(t, d) // in case the plan was locked
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job", Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if skipped[r.ScheduledFor.UTC().Format("15:04")] {
				t.Errorf("%s was skipped, and runs", r.ScheduledFor)
			}
		}
		gaps := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("gaps")+" WHERE reason = 'skipped'")
		if len(skipped) < rounds-1 || len(runs)+gaps != 2*rounds {
			t.Errorf("%d skipped, %d runs and %d gaps; want one of both for each of %d times", len(skipped), len(runs), gaps, 2*rounds)
		}
	})
}

// As many times as may be skipped at once have room, each with the longest reason.
func TestSkipsHaveRoom(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.DecideOnly(t, d)
		who := store.Author{By: "ann", Reason: strings.Repeat("<", 1000)}
		if list, err := tick.SkipNext(t.Context(), d.Store, "job", "", 100, who); err != nil || len(list) != 100 {
			t.Fatalf("%d skipped, %v", len(list), err)
		}
		d.Clock.Add(5 * time.Minute)
		ticktest.DecideOnly(t, d)
		if j, err := d.Job(t.Context(), "job"); err != nil || len(j.Skips) != 99 || j.Skips[98].Reason != who.Reason {
			t.Errorf("%d skips are left, %v", len(j.Skips), err)
		}
	})
}

// If two users skip times of a job at the same time, the later one knows the times that the earlier one has skipped.
func TestSkipsAtOnceLoseNothing(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.DecideOnly(t, d)
		other := make(chan error, 1)
		begun := false
		_, err := d.Skips(t.Context(), "job", "skip", store.Author{}, func(in store.SkipInput) ([]store.Skip, error) {
			if !begun {
				begun = true
				go func() {
					_, err := tick.SkipNext(t.Context(), d.Store, "job", "", 1, store.Author{})
					other <- err
				}()
				select { // without the lock of the plan, it ends at once, and is then lost
				case err := <-other:
					other <- err
				case <-time.After(500 * time.Millisecond):
				}
			}
			return append(in.Job.Skips, store.Skip{At: d.Clock.Now().Add(20 * time.Minute)}), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-other; err != nil {
			t.Fatal(err)
		}
		if v, err := d.Job(t.Context(), "job"); err != nil || len(v.Skips) != 2 {
			t.Errorf("%v: %+v, want the skips of both", err, v.Skips)
		}
	})
}

// Between the moment that a skipped time comes and the pass that decides it, commands leave its skip alone.
func TestSkipsOfTimesThatHaveComeStay(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Missed: store.MissedAll,
			Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d) // 08:00
		skip := func(want string) {
			t.Helper()
			list, err := tick.SkipNext(t.Context(), d.Store, "job", "", 1, store.Author{})
			if err != nil {
				t.Fatal(err)
			}
			sameTimes(t, list, want)
		}
		skip("08:05")
		d.Clock.Add(6 * time.Minute)
		skip("08:10")
		undone, err := tick.UndoSkips(t.Context(), d.Store, "job", "", store.Author{})
		if err != nil {
			t.Fatal(err)
		}
		sameTimes(t, undone, "08:10")
		skip("08:10")
		d.Clock.Add(9 * time.Minute)
		ticktest.Run(t, d)
		if got := ticktest.ToldIn(t, d, "job", "15:04"); got != "08:15 succeeded; skipped (08:04:59.999999, 08:05:00]; skipped (08:09:59.999999, 08:10:00]; next 08:20" {
			t.Error(got)
		}
	})
}

// The next times of a job that is paused are those after its pause.
func TestSkipsBeginAfterThePause(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d) // 08:00
		subject := store.Subject{Scope: store.ScopeJob, Name: "job"}
		ticktest.Pause(t, d, subject, d.Clock.Now().Add(12*time.Minute))
		list, err := tick.SkipNext(t.Context(), d.Store, "job", "", 1, store.Author{})
		if err != nil {
			t.Fatal(err)
		}
		sameTimes(t, list, "08:15")
		ticktest.Resume(t, d, subject, false)
		ticktest.Pause(t, d, subject, time.Time{})
		if _, err := tick.SkipNext(t.Context(), d.Store, "job", "", 1, store.Author{}); err == nil || !strings.Contains(err.Error(), "paused until somebody resumes it") {
			t.Error(err)
		}
	})
}

// Somebody chooses a time to skip, it comes, and a pass decides before the choice is written: the time does not run.
func TestPassBesideASkip(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Queue: "another", Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.DecideOnly(t, d) // 08:00
		passes := 0
		_, err := d.Skips(t.Context(), "job", "skip", store.Author{}, func(in store.SkipInput) ([]store.Skip, error) {
			if passes++; passes == 1 {
				d.Clock.Add(5 * time.Minute)
				ticktest.DecideOnly(t, d)
			}
			return append(in.Job.Skips, store.Skip{At: in.Job.NextRun}), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ticktest.DecideOnly(t, d)
		if got := ticktest.ToldIn(t, d, "job", "15:04"); got != "skipped (08:04:59.999999, 08:05:00]; next 08:10" {
			t.Error(got)
		}
	})
}

// A skipped time that comes in a pause is not decided until the pause ends, and stays skipped until then.
func TestSkipsStayInAPause(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Missed: store.MissedAll, Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d) // 08:00
		if _, err := tick.SkipNext(t.Context(), d.Store, "job", "", 1, store.Author{}); err != nil {
			t.Fatal(err)
		}
		subject := store.Subject{Scope: store.ScopeJob, Name: "job"}
		ticktest.Pause(t, d, subject, time.Time{})
		d.Clock.Add(12 * time.Minute)
		ticktest.Run(t, d)
		ticktest.Resume(t, d, subject, true)
		ticktest.Run(t, d)
		if got := ticktest.ToldIn(t, d, "job", "15:04"); got != "08:10 succeeded; skipped (08:04:59.999999, 08:05:00]; next 08:15" {
			t.Error(got)
		}
	})
}

// The skips of a schedule are found by its name of today. Those of all schedules stay.
func TestSkipsOfARenamedSchedule(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{
			Schedules: []store.Schedule{{Name: "tens", Rule: "every 10m"}},
			Jobs:      []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Schedules: []string{"tens"}, Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d) // 08:00
		for _, schedule := range []string{"tens", ""} {
			if _, err := tick.SkipNext(t.Context(), d.Store, "job", schedule, 1, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.RenameSchedule(t.Context(), "tens", "ten", store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		undone, err := tick.UndoSkips(t.Context(), d.Store, "job", "ten", store.Author{})
		if err != nil {
			t.Fatal(err)
		}
		sameTimes(t, undone, "08:10")
		undone, err = tick.UndoSkips(t.Context(), d.Store, "job", "", store.Author{})
		if err != nil {
			t.Fatal(err)
		}
		sameTimes(t, undone, "08:05")
	})
}

// The next run of a job after the skipped times is found by the rules and bounds that the job has now, not by those that it
// had when somebody skipped the times.
func TestSkipsOfAChangedJob(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Schedules: []store.Schedule{{Name: "often", Rule: "every 20m"}},
			Jobs: []store.Job{{Name: "job", Schedules: []string{"often"}, Steps: []store.Step{ticktest.Nop("")}}}}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d) // 08:00
		if _, err := tick.SkipNext(t.Context(), d.Store, "job", "", 2, store.Author{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		next := func(want string) {
			t.Helper()
			ticktest.Apply(t, d, defs)
			ticktest.Run(t, d)
			v, err := d.Job(t.Context(), "job")
			if got := v.NextRun.Format("15:04"); err != nil || got != want {
				t.Errorf("%v: the next run is at %s, not at %s; skips %+v", err, got, want, v.Skips)
			}
			u, err := tick.Upcoming(t.Context(), d.Store, []store.JobStatus{v}, d.Clock.Now(), d.Clock.Now().Add(61*time.Minute), 1)
			if err != nil || len(u.Runs) > 0 != (want != "00:00") || len(u.Runs) > 0 && u.Runs[0].At.Format("15:04") != want {
				t.Errorf("%v: upcoming has %+v, not %s", err, u.Runs, want)
			}
		}
		next("09:00")
		defs.Jobs[0].Own = &store.Schedule{Rule: "at 2026-01-05T08:30:00, 2026-01-05T08:50:00"} // after the first and after the last skip
		next("08:30")
		defs.Jobs[0].NotAfter = ticktest.Morning(8, 25)
		next("00:00")
	})
}
