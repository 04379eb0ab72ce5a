package tick_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// runsOf are the runs of a job, the oldest first, with their intervals.
func runsOf(t *testing.T, d *storetest.DB, job string) (list []string) {
	t.Helper()
	runs, err := d.Runs(t.Context(), store.RunFilter{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	at := func(v time.Time) string {
		if v.IsZero() {
			return "-"
		}
		return v.Format("02T15:04")
	}
	for _, r := range slices.Backward(runs) {
		list = append(list, fmt.Sprintf("%s %s..%s", r.State, at(r.IntervalStart), at(r.IntervalEnd)))
	}
	return list
}

// A job that runs after several others has a run for each interval that ends for all of them at the same time. The
// interval of that run begins where the earliest interval of theirs begins. An interval that only some of them have
// makes no run.
func TestAfterAll(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "often", Own: &store.Schedule{Rule: "every 20m"}, Missed: "all", MissedLimit: 9, Overlap: "wait-all", Steps: ok},
			{Name: "rarely", Own: &store.Schedule{Rule: "every 1h"}, Steps: ok},
			{Name: "both", After: []store.After{{Job: "often"}, {Job: "rarely"}}, Steps: ok},
			{Name: "after both", After: []store.After{{Job: "both"}}, Steps: ok},
		}})
		ticktest.Run(t, d)
		for range 2 {
			d.Clock.Add(time.Hour)
			ticktest.Run(t, d)
		}
		want := []string{"succeeded 05T08:00..05T09:00", "succeeded 05T09:00..05T10:00"}
		for _, job := range []string{"both", "after both"} {
			if got := runsOf(t, d, job); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", job, got, want)
			}
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("job_ends")+" WHERE seen = "+map[string]string{"postgres": "true"}[d.Engine]+map[string]string{"sqlite": "1", "mariadb": "1"}[d.Engine]); n != 4 {
			t.Errorf("%d ends wait for others, want those of the four times that one job has alone", n)
		}
		// The ends wait no longer than a month.
		d.Clock.Add(waitsForOthers)
		ticktest.Run(t, d)
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("job_ends")+" WHERE ended_at < "+ticktest.Literal(d, d.Clock.Now().Add(-24*time.Hour))); n != 0 {
			t.Errorf("%d ends wait for more than a month", n)
		}
	})
}

const waitsForOthers = 31 * 24 * time.Hour

// A repetition of runs, which makes no second run, does not use up max_runs.
func TestAfterAllCountsNoRunThatItDoesNotMake(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: ok}, {Name: "b", Steps: ok},
			{Name: "all", MaxRuns: 2, After: []store.After{{Job: "a"}, {Job: "b"}}, Steps: ok}}})
		for _, day := range []int{1, 1, 2} {
			for _, job := range []string{"a", "b"} {
				within := store.Interval{Start: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 1, day+1, 0, 0, 0, 0, time.UTC)}
				ticktest.RunNow(t, d, job, store.Request{Interval: within})
			}
			ticktest.Run(t, d)
			d.Clock.Add(time.Minute)
		}
		if got, want := runsOf(t, d, "all"), []string{"succeeded 01T00:00..02T00:00", "succeeded 02T00:00..03T00:00"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("job_ends")); n != 0 {
			t.Errorf("%d ends wait for others", n)
		}
	})
}

// A run of a job has ended, and then the job after it no longer runs after that job, or the run is not kept. Such an end
// neither makes the job wait nor counts for it: what counts are the ends of the jobs after which it runs now.
func TestAfterAllWithoutAnEndThatIsOver(t *testing.T) {
	within := store.Interval{Start: ticktest.Morning(7, 0), End: ticktest.Morning(8, 0)}
	prune := func(t *testing.T, d *storetest.DB) {
		for _, table := range []string{"attempts", "runs"} {
			d.Exec(t, "DELETE FROM "+d.Table(table))
		}
	}
	for name, c := range map[string]struct {
		over func(t *testing.T, d *storetest.DB)
		ends []string // the jobs that run then
	}{
		"not followed": {func(t *testing.T, d *storetest.DB) {
			if _, err := d.AlterJob(t.Context(), "all", store.AlterOptions{}, func(j store.Job) (store.Job, error) {
				j.After = []store.After{{Job: "b"}, {Job: "c"}}
				return j, nil
			}); err != nil {
				t.Fatal(err)
			}
		}, []string{"b", "c"}},
		"not kept":           {prune, []string{"b", "c", "a"}},
		"made again at once": {prune, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ok := []store.Step{ticktest.Nop("")}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: ok}, {Name: "b", Steps: ok}, {Name: "c", Steps: ok},
					{Name: "all", After: []store.After{{Job: "a"}, {Job: "b"}, {Job: "c"}}, Steps: ok}}})
				end := func(job string) {
					t.Helper()
					ticktest.RunNow(t, d, job, store.Request{Interval: within})
					ticktest.Run(t, d)
					d.Clock.Add(time.Minute)
				}
				end("a")
				c.over(t, d)
				for i, job := range c.ends {
					if got := runsOf(t, d, "all"); len(got) > 0 {
						t.Errorf("after %q: %q", c.ends[:i], got)
					}
					end(job)
				}
				if got := runsOf(t, d, "all"); !slices.Equal(got, []string{"succeeded 05T07:00..05T08:00"}) {
					t.Errorf("%q", got)
				}
				if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("job_ends")); n != 0 {
					t.Errorf("%d ends are left", n)
				}
			})
		})
	}
}

// One of the jobs fails, and is tried again by hand. Another one is run again for the same interval.
func TestAfterAllOnceForAnInterval(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "one", Own: ticktest.EveryFiveMinutes(), Steps: ok},
			{Name: "two", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "INSERT INTO later VALUES (1)")}},
			{Name: "all", After: []store.After{{Job: "one"}, {Job: "two"}}, Steps: ok},
			{Name: "ends", After: []store.After{{Job: "one"}, {Job: "two", On: store.OnEnd}}, Steps: ok},
			{Name: "failure", After: []store.After{{Job: "one", On: store.OnEnd}, {Job: "two", On: store.OnFailure}}, Steps: ok},
		}})
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		ticktest.Run(t, d)
		check := func(want map[string]int) {
			t.Helper()
			for job, n := range want {
				if got := runsOf(t, d, job); len(got) != n {
					t.Errorf("%s: %q, want %d", job, got, n)
				}
			}
		}
		check(map[string]int{"all": 0, "ends": 1, "failure": 1})
		d.Exec(t, "CREATE TABLE later (n int)")
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "two"})
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err)
		}
		again := func() {
			t.Helper()
			for _, job := range []string{"one", "two"} {
				ticktest.RunNow(t, d, job, store.Request{Interval: store.Interval{Start: runs[0].IntervalStart, End: runs[0].IntervalEnd}})
			}
			ticktest.Run(t, d)
		}
		if _, err := d.RetryRun(t.Context(), runs[0].ID, "", store.Author{}); err != nil {
			t.Fatal(err)
		}
		ticktest.Run(t, d)
		check(map[string]int{"all": 1, "ends": 1, "failure": 1})
		again()
		check(map[string]int{"all": 1, "ends": 1, "failure": 1})
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("job_ends")+" WHERE job_id = (SELECT id FROM "+d.Table("jobs")+" WHERE name = 'all')"); n != 0 {
			t.Errorf("%d ends are left", n)
		}
	})
}

// An end does not count while its run is open again, nor where that run has ended otherwise since, or the job now runs after another
// end. The next end for the interval counts, of that run or of another one.
func TestAfterAllCountsAnEndAsItIsNow(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		within := store.Interval{Start: ticktest.Morning(7, 0), End: ticktest.Morning(8, 0)}
		after := func(on string) []store.After { return []store.After{{Job: "load", On: on}, {Job: "check"}} }
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "load", Queue: "worker", Steps: ok}, {Name: "check", Steps: ok},
			{Name: "failure", After: after(store.OnFailure), Steps: ok}, {Name: "end", After: after(store.OnEnd), Steps: ok},
			{Name: "edited", After: after(store.OnFailure), Steps: ok}}})
		pass := func() {
			t.Helper()
			ticktest.Run(t, d)
			d.Clock.Add(time.Minute)
		}
		request := func(job string) (id string) {
			t.Helper()
			id = ticktest.RunNow(t, d, job, store.Request{Interval: within}).ID
			pass()
			return id
		}
		end := func(state string) {
			t.Helper()
			endOneAs(t, d, "worker", state)
			pass()
		}
		check := func(when string, want ...int) {
			t.Helper()
			for i, job := range []string{"failure", "end", "edited"} {
				if got := runsOf(t, d, job); len(got) != want[i] {
					t.Errorf("%s, %s: %q, want %d", when, job, got, want[i])
				}
			}
		}
		id := request("load")
		end(store.Failed)
		if _, err := d.AlterJob(t.Context(), "edited", store.AlterOptions{}, func(j store.Job) (store.Job, error) {
			j.After = after(store.OnSuccess)
			return j, nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.RetryRun(t.Context(), id, "", store.Author{}); err != nil {
			t.Fatal(err)
		}
		pass()
		request("check")
		check("open again", 0, 0, 0)
		end(store.Succeeded)
		check("then succeeded", 0, 1, 1)
		request("load")
		end(store.Failed)
		check("another run failed", 1, 1, 1)
	})
}

// Runs that are started by hand have no interval: they meet where they follow the same run, also by way of runs that met there.
// Arguments are passed on.
func TestAfterAllByHand(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (a text, b text)")
		ok := []store.Step{ticktest.Nop("")}
		places := map[string]string{"postgres": "$1, $2"}[d.Engine] + map[string]string{"sqlite": "?, ?", "mariadb": "?, ?"}[d.Engine]
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "start", Steps: ok},
			{Name: "left", After: []store.After{{Job: "start"}}, Steps: ok},
			{Name: "right", After: []store.After{{Job: "start"}}, Steps: ok},
			{Name: "end", After: []store.After{{Job: "left"}, {Job: "right"}}, Steps: []store.Step{
				ticktest.StepWith(false, "INSERT INTO effects VALUES ("+places+")", "${args.left.day}", "${args.right.day}")}},
			{Name: "end too", After: []store.After{{Job: "left"}, {Job: "right"}}, Steps: ok},
			{Name: "last", After: []store.After{{Job: "end"}, {Job: "end too"}, {Job: "left"}}, Steps: ok},
		}})
		ticktest.DecideOnly(t, d)
		for _, day := range []string{"monday", "tuesday"} {
			ticktest.RunNow(t, d, "start", store.Request{Args: map[string]string{"day": day}})
			d.Clock.Add(time.Second)
		}
		meetTwice(t, d)
		if n := d.Int(t, "SELECT COUNT(*) FROM effects WHERE a = b AND a IN ('monday', 'tuesday')"); n != 2 {
			t.Errorf("%d runs had the arguments of those before", n)
		}
	})
}

// meetTwice looks at the two runs that each of the jobs end and last has after two of start. One of left alone leads to none.
func meetTwice(t *testing.T, d *storetest.DB) {
	t.Helper()
	ticktest.RunNow(t, d, "left", store.Request{})
	for range 2 {
		d.Clock.Add(time.Minute)
		ticktest.Run(t, d)
	}
	for _, job := range []string{"end", "last"} {
		if got := runsOf(t, d, job); !slices.Equal(got, []string{"succeeded -..-", "succeeded -..-"}) {
			t.Errorf("%s: %q", job, got)
		}
	}
}

// A run without an interval leads to a run of the job after several others also where these come after it by different numbers of
// jobs, or one of them is its own job.
func TestAfterAllByHandAlongWaysOfDifferentLength(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "start", Steps: ok},
			{Name: "left", After: []store.After{{Job: "start"}}, Steps: ok},
			{Name: "left 2", After: []store.After{{Job: "left"}}, Steps: ok},
			{Name: "left 3", After: []store.After{{Job: "left 2"}}, Steps: ok},
			{Name: "right", After: []store.After{{Job: "start"}}, Steps: ok},
			{Name: "end", After: []store.After{{Job: "left 3"}, {Job: "right"}}, Steps: ok},
			{Name: "next", After: []store.After{{Job: "end"}}, Steps: ok},
			{Name: "last", After: []store.After{{Job: "next"}, {Job: "left"}, {Job: "start"}}, Steps: ok},
		}})
		ticktest.DecideOnly(t, d)
		for range 2 {
			ticktest.RunNow(t, d, "start", store.Request{})
			d.Clock.Add(time.Second)
		}
		meetTwice(t, d)
	})
}

// Plain SQL may give a run any occurrence. What a run hands on leaves room for the occurrence of the next one.
func TestAfterARunOfALongOccurrence(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "one", Steps: ok}, {Name: "two", After: []store.After{{Job: "one"}}, Steps: ok}}})
		ticktest.RunNow(t, d, "one", store.Request{})
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET occurrence = 'after:x:"+strings.Repeat("y", 180)+"'")
		ticktest.Run(t, d)
		if got := runsOf(t, d, "two"); !slices.Equal(got, []string{"succeeded -..-"}) {
			t.Errorf("%q", got)
		}
	})
}

// A take names a bounded number of runs that follow several others. The next pass runs those that exceed it.
func TestAfterAllBeyondWhatATakeNames(t *testing.T) {
	const named, more = 400, 3
	storetest.InTurn(t, 0, func(t *testing.T, d *storetest.DB) {
		one, two := lastingJob("one"), lastingJob("two")
		one.Own, two.Own = ticktest.EveryFiveMinutes(), ticktest.EveryFiveMinutes()
		defs := store.Definitions{Jobs: []store.Job{one, two}}
		for i := range named + more {
			both := lastingJob(fmt.Sprint("both ", i))
			both.After = []store.After{{Job: "one"}, {Job: "two"}}
			defs.Jobs = append(defs.Jobs, both)
		}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Clock.Add(5 * time.Minute)
		l := &lasting{d: d, took: time.Millisecond, most: 2 * named}
		tk := ticktest.New(t, d.Store)
		tk.Batch, tk.Executors = 2*named, executor.Registry{"lasting": l} // all in one page
		for i, want := range []int{2 + named, more} {
			if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != want {
				t.Errorf("pass %d: %v, %d succeeded, want %d", i+1, err, r.Succeeded, want)
			}
		}
	})
}
