package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A database whose clock is a year ahead of the host's is refused: nothing of the year is used up.
func TestAClockAYearAheadIsRefused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Grouped("job", "", 0)}})
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		before := ticktest.Told(t, d, "job")
		d.Clock.Set(right.AddDate(1, 0, 0))
		tk := ticktest.New(t, d.Store)
		tk.Now, tk.MaxClockSkew = func() time.Time { return right.Add(time.Minute) }, 10*time.Minute
		r, err := tk.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "2027-01-05T08:00:00Z") || !strings.Contains(err.Error(), "nothing was claimed") || r.Decided != 0 {
			t.Fatalf("%v, %+v", err, r)
		}
		if now := ticktest.Told(t, d, "job"); now != before {
			t.Fatalf("%s, before: %s", now, before)
		}
		// What the refused pass has recorded of itself is no sign of a clock that was ahead when it was decided.
		d.Clock.Set(right.Add(5 * time.Minute))
		tk.Now = d.Clock.Now
		if r, err := tk.Run(t.Context()); err != nil || r.Made != 1 || r.Ahead != 0 {
			t.Fatalf("put right: %v, %+v", err, r)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("ticks")+" WHERE since > "+ticktest.Literal(d, d.Clock.Now())); n != 0 {
			t.Fatalf("%d records lie ahead", n)
		}
	})
}

// Without that guard, a year is decided at once: its gap is on record with its bounds, every later pass tells that the job
// sleeps, and Replan brings it back, without a nominal time that runs or is told twice.
func TestAClockThatWasAYearAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		slow := ticktest.Grouped("slow", "", 0)
		slow.Own = &store.Schedule{Rule: "0 12 1 1 *", Zone: "UTC"}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Grouped("job", "", 0), slow}})
		ticktest.DecideOnly(t, d)
		right := d.Clock.Now()
		d.Clock.Set(right.AddDate(1, 0, 0))
		if r := decideAnd(t, d); r.Made != 2 || r.Gaps[store.Missed] != 1 || r.Ahead != 0 {
			t.Fatalf("ahead: %+v", r)
		}
		d.Clock.Set(right.Add(7 * time.Minute))
		for range 2 {
			if r := decideAnd(t, d); r.Made != 0 || r.Ahead != 2 || !r.AheadUntil.Equal(right.AddDate(1, 0, 0)) {
				t.Fatalf("put right: %+v", r)
			}
		}
		if got := yearly(t, d, "job"); got != "2027-01-05T08:00 queued; missed (2026-01-05T08:00:00, 2027-01-05T07:59:59.999999]; next 2027-01-05T08:05" {
			t.Fatal(got)
		}

		if n, err := d.Replan(t.Context(), "slow", store.Author{By: "ada"}); err != nil || n != 1 {
			t.Fatalf("of one: %d, %v", n, err)
		}
		if r := decideAnd(t, d); r.Ahead != 1 {
			t.Fatalf("one of two: %+v", r)
		}
		if n, err := d.Replan(t.Context(), "", store.Author{By: "ada"}); err != nil || n != 1 {
			t.Fatalf("of all: %d, %v", n, err)
		}
		if n, err := d.Replan(t.Context(), "", store.Author{By: "ada"}); err != nil || n != 0 {
			t.Fatalf("again: %d, %v", n, err)
		}
		if r := decideAnd(t, d); r.Ahead != 0 || r.Made != 0 {
			t.Fatalf("planned anew: %+v", r)
		}
		if got := yearly(t, d, "job"); got != "2027-01-05T08:00 queued; missed (2026-01-05T08:00:00, 2026-01-05T08:07:00]; next 2026-01-05T08:10" {
			t.Fatal(got)
		}
		if got := yearly(t, d, "slow"); got != "2027-01-01T12:00 queued; next 2027-01-01T12:00" {
			t.Fatal(got)
		}
		changes, err := d.JobHistory(t.Context(), "job", 10)
		if err != nil || changes[0].Action != "replan" || changes[0].By != "ada" {
			t.Fatalf("%v, %+v", err, changes)
		}
		d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'succeeded'")
		d.Clock.Set(right.Add(10 * time.Minute))
		if r := decideAnd(t, d); r.Made != 1 {
			t.Fatalf("the next: %+v", r)
		}
		// Ordered by created_at, which replan moves to now for a run that is open.
		if got := yearly(t, d, "job"); !strings.HasPrefix(got, "2027-01-05T08:00 succeeded; 2026-01-05T08:10 queued; missed") {
			t.Fatal(got)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || !runs[0].IntervalStart.Equal(right.Add(5*time.Minute)) || !runs[0].IntervalEnd.Equal(right.Add(10*time.Minute)) {
			t.Fatalf("%v, %+v", err, runs)
		}
	})
}

// yearly is told, with the years.
func yearly(t *testing.T, d *storetest.DB, job string) string {
	t.Helper()
	return ticktest.ToldIn(t, d, job, "2006-01-02T15:04")
}

// decideAnd decides, starts nothing, and gives the report.
func decideAnd(t *testing.T, d *storetest.DB) tick.Report {
	t.Helper()
	tk := ticktest.New(t, d.Store)
	tk.Limit = -1
	r, err := tk.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What repeat_after counts from is brought back, too: the end of a run, or the run that was made last and is still open.
func TestRepeatAfterAClockThatWasAhead(t *testing.T) {
	for name, ends := range map[string]bool{"the run has ended": true, "the run is open": false} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				right := d.Clock.Now()
				ahead := right.AddDate(1, 0, 0)
				d.Clock.Set(ahead.Add(-time.Hour))
				again := ticktest.Grouped("again", "", 0)
				again.Own, again.RepeatAfter = nil, store.Duration(5*time.Minute)
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{again}})
				end := func() { d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'succeeded'") }
				decideAnd(t, d)
				end()
				d.Clock.Set(ahead)
				decideAnd(t, d)
				d.Clock.Set(ahead.Add(10 * time.Minute))
				if r := decideAnd(t, d); r.Made != 1 {
					t.Fatalf("ahead: %+v", r)
				}
				if ends {
					end()
					decideAnd(t, d)
				}
				d.Clock.Set(right)
				if n, err := d.Replan(t.Context(), "", store.Author{By: "ada"}); err != nil || n != 1 {
					t.Fatalf("%d, %v", n, err)
				}
				decideAnd(t, d)
				if !ends {
					d.Clock.Add(time.Minute)
					end()
					decideAnd(t, d)
					right = right.Add(time.Minute)
				}
				if j, err := d.Job(t.Context(), "again"); err != nil || !j.NextRun.Equal(right.Add(5*time.Minute)) {
					t.Fatalf("%v, next run %s: %s", err, j.NextRun, yearly(t, d, "again"))
				}
			})
		})
	}
}
