package tick_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A start schedule is resolved to its first time. These are the results of a start schedule, made by apply, or by plain
// SQL, which does not say to which time it is resolved.
func TestStartIsTheNotBefore(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		st := []store.Step{ticktest.Nop("")}
		bring := func(start string) string {
			t.Helper()
			changes, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{
				{Name: "job", Queue: "another", Start: start, Own: ticktest.EveryFiveMinutes(), Steps: st},
				{Name: "again", Queue: "another", Start: start, RepeatAfter: store.Duration(time.Hour), Steps: st},
				{Name: "by SQL", Queue: "another", Own: ticktest.EveryFiveMinutes(), Steps: st},
			}}, store.ApplyOptions{Start: decide.Start})
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(len(changes))
		}
		bring("D 8:13")
		d.Exec(t, fmt.Sprintf("UPDATE %s SET start_rule = 'D 8:13' WHERE name = 'by SQL'", d.Table("jobs")))
		for range 12 {
			ticktest.DecideOnly(t, d)
			d.Clock.Add(time.Minute)
		}
		d.Exec(t, fmt.Sprintf("UPDATE %s SET priority = 3", d.Table("jobs"))) // brings back no time before the start
		for range 4 {
			ticktest.DecideOnly(t, d)
			d.Clock.Add(time.Minute)
		}
		for name, want := range map[string]string{"job": "08:15 queued; next 08:20", "by SQL": "08:15 queued; next 08:20", "again": "08:13 queued; next 0001-"} {
			got := strings.ReplaceAll(strings.ReplaceAll(ticktest.Told(t, d, name), "01-05T", ""), "01-01T00:00", "0001-")
			if got != want {
				t.Errorf("%s: %s", name, got)
			}
		}
		if v, err := d.Job(t.Context(), "job"); err != nil || !v.NotBefore.Equal(ticktest.Morning(8, 13)) {
			t.Errorf("%v: %s", err, v.NotBefore)
		}
		d.Exec(t, fmt.Sprintf("UPDATE %s SET start_rule = NULL, not_before = NULL WHERE name = 'by SQL'", d.Table("jobs")))
		d.Exec(t, fmt.Sprintf("UPDATE %s SET priority = 0", d.Table("jobs")))
		if n := bring("D 8:13"); n != "0" {
			t.Errorf("the same again: %s changes", n)
		}
		if n := bring("D 9:13"); n != "2" { // it is resolved again
			t.Errorf("another start: %s changes", n)
		}
		d.Clock.Set(ticktest.Morning(9, 14))
		ticktest.DecideOnly(t, d)
		if v, err := d.Job(t.Context(), "job"); err != nil || !v.NotBefore.Equal(ticktest.Morning(9, 13)) || !v.NextRun.Equal(ticktest.Morning(9, 15)) {
			t.Errorf("%v: %s, next %s", err, v.NotBefore, v.NextRun)
		}
	})
}

// A job whose start has come does not wait again because the file has another zone. Before that, the start is read in the new
// zone. A simulation and a diff say the same.
func TestStartInAnotherZone(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		for _, start := range []string{"D 8:13", "at 2026-01-05T08:13:00"} {
			j := store.Job{Name: start, Start: start, Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}
			for _, c := range []struct {
				at   time.Time
				zone string
				want time.Time
			}{
				{ticktest.Morning(5, 0), "UTC", ticktest.Morning(8, 13)},
				{ticktest.Morning(6, 0), "Europe/Berlin", ticktest.Morning(7, 13)}, {ticktest.Morning(7, 0), "UTC", ticktest.Morning(8, 13)},
				{ticktest.Morning(8, 13), "Europe/Berlin", ticktest.Morning(8, 13)}, {ticktest.Morning(9, 0), "Asia/Tokyo", ticktest.Morning(8, 13)},
			} {
				d.Clock.Set(c.at)
				j.StartZone = c.zone
				foreseen := j
				if v, err := d.Job(t.Context(), start); err == nil {
					decide.KeepStart(&foreseen, &v.Job, d.Clock.Now())
				}
				if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j}}, store.ApplyOptions{Start: decide.Start}); err != nil {
					t.Errorf("%s: at %s: %v", start, c.at, err)
				}
				v, err := d.Job(t.Context(), start)
				if err != nil || !v.NotBefore.Equal(c.want) || v.StartZone != c.zone || !foreseen.NotBefore.IsZero() && !foreseen.NotBefore.Equal(c.want) {
					t.Errorf("%s: at %s, in %s: %s, foreseen %s, want %s: %v", start, c.at, v.StartZone, v.NotBefore, foreseen.NotBefore, c.want, err)
				}
			}
		}
	})
}

// apply refuses a start that has no time, or no time before not_after. If plain SQL writes such a start, the first pass
// refuses it.
func TestStartWithoutATimeIsRefused(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		for start, want := range map[string]string{"at 2025-12-01T17:30:00": "start: \"at 2025-12-01T17:30:00\": has no time after", "D 17:30": "not_after: is before the first time of start, 2026-01-05T17:30:00Z"} {
			j := store.Job{Name: "job", Start: start, NotAfter: ticktest.Morning(9, 0), Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}
			_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j}}, store.ApplyOptions{Start: decide.Start})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", start, err)
			}
			if err := d.RemoveJob(t.Context(), "job", store.Author{}); err == nil {
				t.Errorf("%s: it was made all the same", start)
			}
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
			if r := ticktest.Run(t, d); len(r.Parked) != 1 || !strings.Contains(r.Parked[0].Error, want) {
				t.Errorf("left to the first decision: %+v", r)
			}
			if err := d.RemoveJob(t.Context(), "job", store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// apply names each job whose start has no time, as any other mistake.
func TestStartWithoutATimeIsRefusedWithTheOthers(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		j := store.Job{Name: "first", Start: "at 2025-12-01T17:30:00", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}}
		second := j
		second.Name = "second"
		_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j, second}}, store.ApplyOptions{Start: decide.Start})
		for _, name := range []string{"first", "second"} {
			if err == nil || !strings.Contains(err.Error(), name+": start: ") {
				t.Errorf("%v does not name the job %s", err, name)
			}
		}
	})
}

// A start that plain SQL changes counts from the change, as one that apply changes, and the decision writes what it has found. So later
// edits, and later passes, find the same.
func TestStartThatSQLChangesCountsFromThen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{fiveMinutely("job")}})
		ticktest.DecideOnly(t, d)
		d.Clock.Add(21 * 24 * time.Hour)
		ticktest.DecideOnly(t, d)
		next := func(step string, want time.Time) {
			t.Helper()
			for range 2 {
				d.Clock.Add(time.Minute)
				ticktest.DecideOnly(t, d)
				if j := jobOf(t, d, "job"); !j.NotBefore.Equal(want) || !j.NextRun.Equal(want) {
					t.Errorf("%s: it starts at %s, next %s, want %s", step, j.NotBefore, j.NextRun, want)
				}
			}
		}
		for _, c := range []struct {
			start string
			days  int
		}{{"D 7:30", 1}, {"W 4 7:30", 3}} { // the day is a Monday
			d.Exec(t, fmt.Sprintf("UPDATE %s SET start_rule = '%s', not_before = NULL", d.Table("jobs"), c.start))
			next(c.start, ticktest.Morning(7, 30).AddDate(0, 0, 21+c.days))
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET priority = priority + 1")
			next("an edit of "+c.start, ticktest.Morning(7, 30).AddDate(0, 0, 21+c.days))
		}
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET start_rule = 'at 2026-01-06T00:00:00', not_before = NULL") // it has come
		d.Clock.Add(time.Minute)
		ticktest.DecideOnly(t, d)
		if j := jobOf(t, d, "job"); j.Parked != "" || j.NextRun.Sub(d.Clock.Now()) > 5*time.Minute {
			t.Errorf("a start that has come: parked %q, next %s", j.Parked, j.NextRun)
		}
	})
}
