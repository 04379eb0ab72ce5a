package tick_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// fills returns the nominal times and intervals of the backfilled runs, the oldest first.
func fills(t testing.TB, d *storetest.DB, from, to string, limit int, again bool) (got string, more bool) {
	t.Helper()
	at := func(s string) time.Time {
		v, err := time.Parse("15:04", s)
		if err != nil {
			return time.Time{}
		}
		return time.Date(2026, 1, 5, v.Hour(), v.Minute(), 0, 0, time.UTC)
	}
	runs, chosen, err := tick.Backfill(t.Context(), d.Store, "job", tick.Range{From: at(from), To: at(to), Limit: limit, Again: again})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if !r.ScheduledFor.Equal(r.IntervalEnd) || r.State != store.Waiting {
			t.Errorf("%+v", r)
		}
		got += r.IntervalStart.Format("15:04-") + r.IntervalEnd.Format("15:04 ")
	}
	return got, !chosen.More.IsZero()
}

// A time for which a backfill has made a run is missed no more, however often that was. Other times of its gap are.
func TestBackfillMakesUpForMissedTimes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d)
		d.Clock.Add(32 * time.Minute) // 08:30 becomes a run
		ticktest.Run(t, d)
		missed := func() (list []string) {
			t.Helper()
			gaps, err := tick.Missed(t.Context(), d.Store, "job", time.Time{}, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range gaps {
				list = append(list, fmt.Sprint(*g.Times, g.First.UTC().Format(" 15:04"), g.Last.UTC().Format(" 15:04")))
			}
			return list
		}
		if got := missed(); !slices.Equal(got, []string{"5 08:05 08:25"}) {
			t.Fatalf("%q", got)
		}
		for _, again := range []bool{false, true} {
			fills(t, d, "08:03", "08:12", 9, again)
			if got := missed(); !slices.Equal(got, []string{"3 08:15 08:25"}) {
				t.Errorf("again %v: %q", again, got)
			}
		}
		fills(t, d, "08:15", "08:25", 9, false)
		if got := missed(); len(got) > 0 {
			t.Errorf("after all: %q", got)
		}
	})
}

// A limit counts the gaps that are listed: newer ones without a time that is missed do not hide an older one that has some.
func TestMissedBehindGapsThatAreMadeUpFor(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d)
		for range 4 { // 08:05 to 08:25 are missed, and so on
			d.Clock.Add(32 * time.Minute)
			ticktest.Run(t, d)
		}
		fills(t, d, "08:33", "10:05", 99, true)
		for _, job := range []string{"", "job"} {
			gaps, err := tick.Missed(t.Context(), d.Store, job, d.Clock.Now().Add(-24*time.Hour), 1)
			if err != nil || len(gaps) != 1 || gaps[0].First.UTC().Format("15:04") != "08:05" {
				t.Errorf("%q: %+v, %v; want the one gap with times that are missed", job, gaps, err)
			}
		}
	})
}

// This shows which times a backfill takes and leaves, and that it works in order.
func TestBackfill(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (upto varchar(40), wanted varchar(40))")
		st := ticktest.StepWith(false, map[bool]string{true: "INSERT INTO effects VALUES ($1, $2)", false: "INSERT INTO effects VALUES (?, ?)"}[d.Engine == "postgres"],
			"to ${interval_end}", "for ${scheduled_for}")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Overlap: "skip", Steps: []store.Step{st}}}})
		ticktest.Run(t, d)
		d.Clock.Add(12 * time.Minute) // 08:10 becomes a run, whose interval begins at 08:05, a missed one
		ticktest.Run(t, d)
		if got, more := fills(t, d, "07:48", "", 3, false); got != "07:45-07:50 07:50-07:55 07:55-08:00 " || !more {
			t.Errorf("before the job was made: %q, %v", got, more)
		}
		d.Clock.Add(time.Second)
		if got, more := fills(t, d, "07:48", "08:10", 9, false); got != "08:00-08:05 " || more {
			t.Errorf("the rest: %q, %v", got, more)
		}
		if got, _ := fills(t, d, "07:48", "08:11", 9, false); got != "" {
			t.Errorf("twice: %q", got)
		}
		d.Clock.Add(20 * time.Minute) // no decision for this time is made yet
		if got, _ := fills(t, d, "07:58", "08:30", 9, true); got != "07:55-08:00 08:00-08:05 08:05-08:10 " {
			t.Errorf("again: %q", got)
		}
		if r := ticktest.Run(t, d); r.Succeeded != 7 || r.Gaps[store.Overlap] != 1 {
			t.Errorf("%+v", r)
		}
		var order []string
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(runs, func(x, y store.Run) int { return int(x.Number - y.Number) })
		for _, r := range runs {
			order = append(order, r.ScheduledFor.Format("15:04"))
		}
		if want := []string{"08:10", "07:50", "07:55", "08:00", "08:05", "08:00", "08:05", "08:10"}; !slices.Equal(order, want) {
			t.Errorf("%v", order)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects WHERE upto = 'to 2026-01-05T08:05:00.000000Z' AND wanted = 'for 2026-01-05T08:05:00.000000Z'"); n != 2 {
			t.Errorf("%d runs got 08:05", n)
		}
		if j, err := d.Job(t.Context(), "job"); err != nil || !j.LastScheduled.Equal(time.Date(2026, 1, 5, 8, 10, 0, 0, time.UTC)) {
			t.Errorf("%v: the schedule's own interval goes on from %s", err, j.LastScheduled)
		}
	})
}

// What somebody requests before the first pass of a job decides nothing about the times of its schedule: neither about
// those between a backfill and the creation of the job, nor about those before a run that waits for its time.
func TestRequestsBeforeTheFirstPass(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		job := func(name string) store.Job {
			return store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), Missed: "all", Overlap: "wait-all", Steps: []store.Step{ticktest.Nop("")}}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job("job"), job("ahead")}})
		if got, _ := fills(t, d, "07:00", "07:10", 9, false); got != "06:55-07:00 07:00-07:05 07:05-07:10 " {
			t.Fatalf("%q", got)
		}
		ticktest.RunNow(t, d, "ahead", store.Request{At: ticktest.Morning(9, 0)})
		if r := ticktest.Run(t, d); r.Made != 0 || r.Succeeded != 3 || len(r.Gaps) != 0 {
			t.Errorf("the first pass: %+v", r)
		}
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Made != 2 || r.Succeeded != 2 || len(r.Gaps) != 0 {
			t.Errorf("at the first time of the schedule: %+v", r)
		}
	})
}

// A backfill asks for no time that is still to come, whatever the clock was when the job was made: its tick decides those times.
func TestBackfillOfAJobThatWasMadeAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		right := d.Clock.Now()
		d.Clock.Set(right.AddDate(0, 0, 1))
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{fiveMinutely("job")}})
		d.Clock.Set(right)
		if got, more := fills(t, d, "07:50", "", 2, false); got != "07:45-07:50 07:50-07:55 " || !more {
			t.Errorf("before the first pass: %q, %v", got, more)
		}
		ticktest.DecideOnly(t, d)
		d.Clock.Add(7 * time.Minute)
		if got, more := fills(t, d, "07:50", "", 9, false); got != "07:55-08:00 " || more {
			t.Errorf("%q, %v", got, more)
		}
		if got, more := fills(t, d, "07:50", "08:07", 9, false); got != "" || more {
			t.Errorf("what the next pass decides: %q, %v", got, more)
		}
	})
}

// A run of a time that has not come covers none of the times before it: a clock that was ahead made it.
func TestBackfillBehindARunOfAClockThatWasAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{fiveMinutely("job")}})
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute) // the interval of the next run begins here
		ticktest.Run(t, d)
		right := d.Clock.Now()
		d.Clock.Set(right.AddDate(1, 0, 0))
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		d.Clock.Set(right.Add(time.Minute))
		if n, err := d.Replan(t.Context(), "", decide.Start, store.Author{}); err != nil || n.Jobs != 1 {
			t.Fatalf("%+v, %v", n, err)
		}
		ticktest.DecideOnly(t, d)
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeAll}, time.Time{})
		d.Clock.Set(right.Add(15 * time.Minute))
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeAll}, false)
		d.Clock.Add(time.Minute)
		ticktest.Run(t, d)
		if got, more := fills(t, d, "08:06", "08:17", 9, false); got != "08:05-08:10 08:10-08:15 " || more {
			t.Errorf("%q, %v", got, more)
		}
	})
}

// A run that was cancelled before it did anything covers nothing: no other run has its interval. Neither a newer time that replaced it
// nor a person who cancelled it has made up for it. One that had begun covers its interval, and so does one of a backfill.
func TestBackfillOfRunsThatNeverBegan(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		j := fiveMinutely("job")
		j.Queue, j.Overlap = "others", store.OverlapReplace
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		ticktest.Run(t, d)
		h := store.Holder{Name: "another", Lease: time.Hour}
		for minute := 5; minute <= 20; minute += 5 { // 08:05 is replaced, 08:10 is stopped, 08:15 is replaced behind it
			d.Clock.Set(ticktest.Morning(8, minute))
			ticktest.DecideOnly(t, d)
			if minute != 10 {
				continue
			}
			if tasks, err := d.Take(t.Context(), "others", 1, h); err != nil || len(tasks) != 1 {
				t.Fatalf("%v: %+v", err, tasks)
			}
		}
		if got := standing(t, d); got != "job cancelled, job cancelled, job running, job waiting predecessor" {
			t.Fatal(got)
		}
		want := "08:00-08:05 08:10-08:15 "
		if got, _ := fills(t, d, "08:02", "08:20", 9, false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got, _ := fills(t, d, "08:02", "08:20", 9, false); got != "" {
			t.Errorf("made up for already: %q", got)
		}
		if _, err := d.AbortJob(t.Context(), "job", true, store.Author{}); err != nil {
			t.Fatal(err)
		}
		ticktest.DecideOnly(t, d)
		if got, _ := fills(t, d, "08:02", "08:20", 9, false); got != "08:15-08:20 " {
			t.Errorf("after a person has cancelled all of them: %q", got)
		}
	})
}

// Two users who backfill the same range at the same time request each nominal time once.
func TestBackfillByTwoAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d)
		made := make(chan int, 4)
		for range cap(made) {
			go func() {
				runs, _, err := tick.Backfill(t.Context(), d.Store, "job", tick.Range{From: d.Clock.Now().Add(-6 * time.Hour), Limit: 1000})
				if err != nil {
					t.Error(err)
				}
				made <- len(runs)
			}()
		}
		total := 0
		for range cap(made) {
			total += <-made
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")); total != 73 || n != 73 {
			t.Errorf("%d told, %d there", total, n)
		}
	})
}

// A backfill over times whose runs are no longer kept says so. Of times before the job was made, of those that a run on record
// covers, and with again, it says nothing.
func TestBackfillSaysWhatIsNotKept(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		step := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: ticktest.EveryFiveMinutes(), Keep: store.Keep{Runs: 3}, Steps: step},
			{Name: "whole", Own: ticktest.EveryFiveMinutes(), Steps: step}}})
		made := d.Clock.Now()
		ticktest.Run(t, d)
		since := func(job string, from, to time.Time, again bool) string {
			t.Helper()
			r := tick.Range{From: from, To: to, Limit: 100, Again: again}
			c, err := tick.BackfillDryRun(t.Context(), d.Store, job, r)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Intervals) == 0 || c.KeptSince.IsZero() {
				return fmt.Sprint(len(c.Intervals))
			}
			return fmt.Sprint(len(c.Intervals), " ", c.KeptSince.UTC().Format("15:04"))
		}
		check := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		check("before any run", since("job", made.Add(-time.Hour), time.Time{}, false), "13")
		for range 10 { // 08:05 to 08:50
			d.Clock.Add(5 * time.Minute)
			ticktest.Run(t, d)
		}
		if got := ticktest.States(t, d, "job"); len(got) != 3 {
			t.Fatalf("%q are kept", got)
		}
		now := d.Clock.Now()
		check("the whole time of the job", since("job", made.Add(time.Minute), time.Time{}, false), "7 08:40")
		check("with times before it", since("job", made.Add(-time.Hour), time.Time{}, false), "20 08:40")
		check("only before it", since("job", made.Add(-time.Hour), made, false), "13")
		check("only what is kept", since("job", now.Add(-12*time.Minute), time.Time{}, false), "0")
		check("again", since("job", made.Add(time.Minute), time.Time{}, true), "10")
		check("a job of which all is kept", since("whole", made.Add(-time.Hour), time.Time{}, false), "13")
		runs, c, err := tick.Backfill(t.Context(), d.Store, "job", tick.Range{From: made.Add(time.Minute), To: made.Add(12 * time.Minute), Limit: 100})
		if err != nil || len(runs) != 2 || c.KeptSince.UTC().Format("15:04") != "08:40" {
			t.Errorf("%v: %d runs; kept since %s", err, len(runs), c.KeptSince)
		}
		check("after a backfill of some", since("job", made.Add(time.Minute), time.Time{}, false), "5 08:40")
		d.Exec(t, "DELETE FROM "+d.Table("attempts"))
		d.Exec(t, "DELETE FROM "+d.Table("runs"))
		check("nothing is kept", since("job", made.Add(time.Minute), time.Time{}, false), "10 08:50")
	})
}
