package tick_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The result for the times at which no tick came, for each value of missed.
func TestMissed(t *testing.T) {
	weeks := 21 * 24 * time.Hour
	for i, c := range []struct {
		name   string
		job    store.Job
		down   time.Duration
		runs   int
		missed int // gaps
	}{
		{"latest", store.Job{}, weeks, 1, 1},
		{"all, capped", store.Job{Missed: "all", MissedLimit: 7}, weeks, 7, 1},
		{"all, few", store.Job{Missed: "all"}, 3 * 24 * time.Hour, 3, 0},
		{"skip, late", store.Job{Missed: "skip"}, weeks + 3*time.Minute, 0, 1},
		{"skip, in time", store.Job{Missed: "skip", MissedGrace: store.Duration(30 * time.Minute)}, weeks + 20*time.Minute, 1, 1},
		{"within", store.Job{Missed: "all", MissedWithin: store.Duration(49 * time.Hour)}, weeks, 3, 1},
		{"no more than max_runs", store.Job{Missed: "all", MaxRuns: 2}, weeks, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.InTurn(t, i, func(t *testing.T, d *storetest.DB) {
				j := c.job
				j.Name, j.Own, j.Steps = "job", &store.Schedule{Rule: "0 8 * * *", Zone: "UTC"}, []store.Step{ticktest.Nop("")}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
				ticktest.Run(t, d)
				d.Clock.Add(c.down)
				r := ticktest.Run(t, d)
				if r.Made != c.runs || r.Succeeded != c.runs || r.Gaps[store.Missed]+r.Gaps[store.OverLimit] != c.missed {
					t.Fatalf("%+v", r)
				}
				if r := ticktest.Run(t, d); r.Decided != 0 {
					t.Fatalf("again: %+v", r)
				}
			})
		})
	}
}

// The trigger was dead for three weeks, which include the night in which the clocks of the zone change. Then there is
// one tick. The daily job has a wall time that does not exist in that night, or exists twice.
func TestMissedForThreeWeeks(t *testing.T) {
	for i, c := range []struct {
		zone, wall  string
		from        time.Time
		latest, all string // the results of the policies all and latest; skip is as latest, without its run
		next        string
	}{
		{"Europe/Berlin", "30 2 * * *", time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC), "04-05T00:30", "03-28T01:30 03-29T01:30 03-30T00:30 03-31T00:30 04-01T00:30 04-02T00:30 04-03T00:30 04-04T00:30 04-05T00:30", "04-06T00:30"},
		{"Europe/Berlin", "30 2 * * *", time.Date(2026, 10, 12, 12, 0, 0, 0, time.UTC), "11-02T01:30", "10-25T00:30 10-26T01:30 10-27T01:30 10-28T01:30 10-29T01:30 10-30T01:30 10-31T01:30 11-01T01:30 11-02T01:30", "11-03T01:30"},
		{"America/New_York", "30 2 * * *", time.Date(2026, 2, 22, 12, 0, 0, 0, time.UTC), "03-15T06:30", "03-07T07:30 03-08T07:30 03-09T06:30 03-10T06:30 03-11T06:30 03-12T06:30 03-13T06:30 03-14T06:30 03-15T06:30", "03-16T06:30"},
		{"America/New_York", "30 1 * * *", time.Date(2026, 10, 19, 12, 0, 0, 0, time.UTC), "11-09T06:30", "11-01T05:30 11-02T06:30 11-03T06:30 11-04T06:30 11-05T06:30 11-06T06:30 11-07T06:30 11-08T06:30 11-09T06:30", "11-10T06:30"},
		{"Australia/Lord_Howe", "10 2 * * *", time.Date(2026, 9, 20, 12, 0, 0, 0, time.UTC), "10-10T15:10", "10-02T15:40 10-03T15:40 10-04T15:10 10-05T15:10 10-06T15:10 10-07T15:10 10-08T15:10 10-09T15:10 10-10T15:10", "10-11T15:10"},
		{"Australia/Lord_Howe", "40 1 * * *", time.Date(2026, 3, 22, 12, 0, 0, 0, time.UTC), "04-11T15:10", "04-03T14:40 04-04T14:40 04-05T15:10 04-06T15:10 04-07T15:10 04-08T15:10 04-09T15:10 04-10T15:10 04-11T15:10", "04-12T15:10"},
	} {
		t.Run(c.zone+c.from.Format(" January"), func(t *testing.T) {
			storetest.InTurn(t, i, func(t *testing.T, d *storetest.DB) {
				d.Clock.Set(c.from)
				var defs store.Definitions
				for _, missed := range []string{"latest", "all", "skip"} {
					j := store.Job{Name: missed, Missed: missed, Overlap: "wait-all", Queue: "another",
						Own: &store.Schedule{Rule: c.wall, Zone: c.zone}, Steps: []store.Step{ticktest.Nop("")}}
					if missed == "all" {
						j.MissedLimit = 9
					}
					defs.Jobs = append(defs.Jobs, j)
				}
				ticktest.Apply(t, d, defs)
				ticktest.DecideOnly(t, d)
				now := c.from.AddDate(0, 0, 21)
				d.Clock.Set(now)
				ticktest.DecideOnly(t, d)
				before := func(first string) string {
					at, err := time.Parse("2006-01-02T15:04", "2026-"+first)
					if err != nil {
						t.Fatal(err)
					}
					return fmt.Sprintf("missed (%s, %s]; next %s", c.from.Format("01-02T15:04:05.999999"), at.Add(-time.Microsecond).Format("01-02T15:04:05.999999"), c.next)
				}
				all := strings.Fields(c.all)
				want := map[string]string{
					"latest": c.latest + " queued; " + before(c.latest),
					"all":    all[0] + " queued; " + strings.Join(all[1:], " waiting predecessor; ") + " waiting predecessor; " + before(all[0]),
					"skip":   fmt.Sprintf("missed (%s, %s]; next %s", c.from.Format("01-02T15:04:05.999999"), now.Format("01-02T15:04:05.999999"), c.next),
				}
				for job, want := range want {
					if got := ticktest.Told(t, d, job); got != want {
						t.Errorf("%s:\n got %s\nwant %s", job, got, want)
					}
				}
			})
		})
	}
}

// A nominal time that two rules of a job give is missed once, however the gaps of the two are listed.
func TestATimeOfTwoRulesIsMissedOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "a", Rule: "every 1h"}, {Name: "b", Rule: "every 2h"}, {Name: "c", Rule: "45 * * * *"}},
			Jobs: []store.Job{{Name: "job", Schedules: []string{"a", "b", "c"}, Missed: store.MissedSkip, Steps: []store.Step{ticktest.Nop("")}}}})
		d.Clock.Set(ticktest.Morning(8, 30))
		ticktest.Run(t, d)
		d.Clock.Set(ticktest.Morning(13, 30))
		ticktest.Run(t, d)
		list, err := tick.Missed(t.Context(), d.Store, "job", time.Time{}, 10)
		n := int64(0)
		for _, m := range list {
			if m.Times != nil {
				n += *m.Times
			}
		}
		if err != nil || n != 10 {
			t.Errorf("%v: %d times, want those of 9 to 13 and of 8:45 to 12:45: %+v", err, n, list)
		}
	})
}
