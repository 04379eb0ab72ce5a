package tick

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A run whose lease has ended and that is cancelled goes on if its holder reports before that is written.
func TestAHeartbeatIsNotOverrunByACancellation(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("one writer at a time")
		}
		steps := []store.Step{{Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "j", Queue: "others", Handouts: 3, Steps: steps}}}, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		decideFor(t, d, store.JobChanged)
		r, err := d.RunNow(t.Context(), "j", nil)
		if err != nil {
			t.Fatal(err)
		}
		decideFor(t, d, store.RunWakes)
		h := store.Holder{Name: "away", Lease: time.Minute}
		if tasks, err := d.Take(t.Context(), "others", 1, h); err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		if _, err := d.CancelRun(t.Context(), r.ID, store.Author{}); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(time.Hour)
		page := store.NewPage(store.RunWakes, d.Clock.Now())
		if more, err := d.Next(t.Context(), page, 100); err != nil || !more {
			t.Fatal(more, err)
		}
		parse, beaten := newParser("", ""), false
		if login, err := d.Login(t.Context()); err == nil {
			parse = newParser(login, "")
		}
		if _, err := d.Decide(t.Context(), page, func(now time.Time, c *store.Case) store.Decision {
			if !beaten {
				beaten = true
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if signs, err := d.Heartbeat(ctx, []string{r.ID}, h); err != nil || len(signs) != 1 {
					t.Error(err, signs)
				}
			}
			return decide(now, c, parse)
		}, share); err != nil {
			t.Fatal(err)
		}
		if now, err := d.Run(t.Context(), r.ID); err != nil || !beaten || now.State != store.Running {
			t.Fatalf("%v, heartbeat %v: %+v", err, beaten, now)
		}
	})
}

// Where one of a job's rules gives up, nothing of the decision on its nominal times stays, and all of it is decided later.
func TestARuleThatGivesUpTakesAllBack(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 30, 0, time.UTC)
	j := store.Job{ID: 1, Name: "job", Overlap: "replace", OnStartup: true, CreatedAt: now.AddDate(-1, 0, 0), Steps: []store.Step{{Executor: "sql"}}}
	j.Normalize()
	rule := func(id int64, text string) store.Rule {
		return store.Rule{ScheduleID: id, Linked: true, LinkPlanned: true, LinkedAt: j.CreatedAt, Input: "a", NewInput: "a", Text: text}
	}
	good := rule(1, "DTSTART:20260101T000000Z\nRRULE:FREQ=MINUTELY")
	for name, text := range map[string]string{"good": "", "bad": "DTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30"} {
		c := &store.Case{Plan: store.Plan{JobID: 1, RunsMade: 7, DecidedThrough: now.Add(-time.Minute), LastScheduledFor: now.Add(-90 * time.Second), StartupID: "old"}, Job: j,
			Rules: []store.Rule{good}, Runs: []store.Run{{ID: "1", JobID: 1, Number: 6, State: store.Queued, Occurrence: "at:x", ScheduledFor: now.Add(-90 * time.Second), ReadyAt: now.Add(-time.Minute)},
				{ID: "2", JobID: 1, Number: 7, State: store.Running, HolderAlive: true, Occurrence: "at:y", ScheduledFor: now.Add(-80 * time.Second)}}}
		if text != "" {
			c.Rules = append(c.Rules, rule(2, text))
		}
		d := decide(now, c, newParser("", "new"))
		if text == "" { // else the test would be empty
			if d.Plan.RunsMade != 9 || len(d.Made) != 2 || len(d.Moved) != 1 || len(d.Cancel) != 1 || d.Plan.StartupID != "new" {
				t.Fatalf("%s: %+v", name, d)
			}
			continue
		}
		if d.Plan.Error == "" {
			t.Fatalf("%s: it does not give up: %+v", name, d)
		}
		d.Plan.Error, d.Plan.NextRun = "", time.Time{}
		if len(d.Made)+len(d.Moved)+len(d.Cancel)+len(d.Gaps) > 0 || !reflect.DeepEqual(d.Plan, c.Plan) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
