package tick_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Each edit is one statement of plain SQL, at 08:31, on a job of "every 20m" that was planned and has run at 08:20. The
// times that the old rule still owes from then on make no run. The time of the next decision shows that the edit was
// noticed.
func TestEditIsNoticedByTheNextTick(t *testing.T) {
	cases := []struct {
		name, edit string // of the job, with the tables of %[1]s jobs, %[2]s schedules, %[3]s links
		next       time.Time
		runs       int // up to 09:31
	}{
		{"rule", "UPDATE %[2]s SET rule = 'every 30m' WHERE name = 'mine'", ticktest.Morning(9, 0), 3},
		{"zone", "UPDATE %[2]s SET rule = '0 9 * * *', zone = 'Atlantic/Azores' WHERE name = 'mine'", ticktest.Morning(10, 0), 1},
		{"reading of clock changes", "UPDATE %[2]s SET ambiguous = 'both' WHERE name = 'mine'", ticktest.Morning(8, 40), 4},
		{"a link more", "INSERT INTO %[3]s (job_id, schedule_id) SELECT j.id, s.id FROM %[1]s j, %[2]s s WHERE j.name = 'job' AND s.name = 'other'", ticktest.Morning(8, 35), 13},
		{"another link", "UPDATE %[3]s SET schedule_id = (SELECT id FROM %[2]s WHERE name = 'other') WHERE job_id = (SELECT id FROM %[1]s WHERE name = 'job')", ticktest.Morning(8, 35), 13},
		{"validity", "UPDATE %[1]s SET not_after = " + "%[4]s WHERE name = 'job'", ticktest.Morning(8, 40), 2},
		{"disabled", "UPDATE %[1]s SET enabled = false WHERE name = 'job'", time.Time{}, 1},
		{"policy", "UPDATE %[1]s SET max_runs = 2 WHERE name = 'job'", ticktest.Morning(8, 40), 2},
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		var names []string
		for _, c := range cases {
			names = append(names, c.name)
		}
		planned(t, d, names...)
		for _, c := range cases {
			d.Exec(t, strings.NewReplacer("'mine'", "'mine "+c.name+"'", "'job'", "'job "+c.name+"'").Replace(edit(d, c.edit)))
		}
		if r := ticktest.Run(t, d); r.Decided != len(cases) || r.Made != 0 {
			t.Errorf("the tick after the edits: %+v", r)
		}
		for _, c := range cases {
			if j, err := d.Job(t.Context(), "job "+c.name); err != nil || !j.NextRun.Equal(c.next) {
				t.Errorf("%s: %v: next %s", c.name, err, j.NextRun)
			}
		}
		if r := ticktest.Run(t, d); r.Decided != 0 {
			t.Errorf("noticed twice: %+v", r)
		}
		each(t, d, 5*time.Minute, 12)
		for _, c := range cases {
			if got := ticktest.States(t, d, "job "+c.name); len(got) != c.runs {
				t.Errorf("%s: %d runs", c.name, len(got))
			}
		}
	})
}

// planned makes jobs of "every 20m" at 08:31 that have run at 08:20. Each has its own schedule: "mine", with its name
// if it has one. There is also a schedule "every 5m" that they do not use.
func planned(t testing.TB, d *storetest.DB, names ...string) {
	t.Helper()
	defs := store.Definitions{Schedules: []store.Schedule{{Name: "other", Rule: "every 5m"}}}
	for _, name := range names {
		own := strings.TrimSpace("mine " + name)
		defs.Schedules = append(defs.Schedules, store.Schedule{Name: own, Rule: "every 20m"})
		defs.Jobs = append(defs.Jobs, store.Job{Name: strings.TrimSpace("job " + name), Schedules: []string{own}, Steps: []store.Step{ticktest.Nop("")}})
	}
	ticktest.Apply(t, d, defs)
	ticktest.Run(t, d)
	d.Clock.Set(ticktest.Morning(8, 20))
	if r := ticktest.Run(t, d); r.Succeeded != len(names) {
		t.Fatalf("%+v", r)
	}
	d.Clock.Set(ticktest.Morning(8, 31))
}

// edit fills in the names of the tables, and an instant at 08:45.
func edit(d *storetest.DB, statement string) string {
	return fmt.Sprintf(statement+"%.0[1]s%.0[2]s%.0[3]s%.0[4]s", d.Table("jobs"), d.Table("schedules"), d.Table("job_schedules"), ticktest.Literal(d, ticktest.Morning(8, 45)))
}

// A job that no tick has seen owes nothing.
func TestEditBeforeTheFirstTick(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		j := store.Job{Name: "job", Own: &store.Schedule{Rule: "every 5m"}, Missed: "all", Steps: []store.Step{ticktest.Nop("")}}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		d.Clock.Add(31 * time.Minute)
		j.Own.Rule = "every 10m"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		if r := ticktest.Run(t, d); r.Made != 0 || len(r.Gaps) != 0 {
			t.Errorf("the first tick: %+v", r)
		}
		d.Clock.Add(30 * time.Minute)
		if r := ticktest.Run(t, d); r.Made != 3 {
			t.Errorf("afterwards: %+v", r)
		}
	})
}

// An edit in a transaction that stays open blocks nothing: the committed definition is used until the edit is
// committed, too. (On SQLite, every open write blocks all others.)
func TestEditThatStaysOpenBlocksNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("one writer at a time")
		}
		planned(t, d, "")
		for _, st := range []string{"UPDATE %[2]s SET rule = 'every 15m' WHERE name = 'mine'", "UPDATE %[1]s SET priority = 2"} {
			d.Exec(t, edit(d, st))
		}
		tx, err := d.SQL.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // after Commit it does nothing
		for _, st := range []string{"UPDATE %[2]s SET rule = 'every 30m' WHERE name = 'mine'", "UPDATE %[1]s SET priority = 3, jitter_ms = 1",
			"UPDATE %[3]s SET created_at = created_at"} {
			if _, err := tx.ExecContext(t.Context(), edit(d, st)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for _, c := range []struct{ minute, runs int }{{31, 0}, {45, 1}} { // the earlier edit is noticed, and cannot be marked
			d.Clock.Set(ticktest.Morning(8, c.minute))
			if r, err := ticktest.New(t, d.Store).Run(ctx); err != nil || r.Decided == 0 || r.Succeeded != c.runs {
				t.Fatalf("beside it: %v: %+v", err, r)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if r := ticktest.Run(t, d); r.Decided != 1 || r.Made != 0 {
			t.Errorf("committed: %+v", r)
		}
		if j, err := d.Job(t.Context(), "job"); err != nil || !j.NextRun.Equal(ticktest.Morning(9, 0)) {
			t.Errorf("%v: next %s", err, j.NextRun)
		}
	})
}

// A command's edit may be committed after a pass has decided the job by the old rule. The new rule counts from that decision: each of
// its times has a run or lies in a gap. A later edit by plain SQL counts from now. (SQLite has one writer: there the edit comes late.)
func TestEditCommittedAfterAPassLosesNoTime(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		planned(t, d, "")
		rule := func(text, more string) string {
			return "UPDATE " + d.Table("schedules") + " SET rule = '" + text + "'" + more + " WHERE name = 'mine'"
		}
		called := rule("every 5m", ", changed_at = "+ticktest.Literal(d, ticktest.Morning(8, 39)))
		commit := func() error { _, err := d.SQL.ExecContext(t.Context(), called); return err }
		if d.Engine != "sqlite" {
			tx, err := d.SQL.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }() // after Commit it does nothing
			if _, err := tx.ExecContext(t.Context(), called); err != nil {
				t.Fatal(err)
			}
			commit = tx.Commit
		}
		d.Clock.Set(ticktest.Morning(8, 40))
		if r := ticktest.Run(t, d); r.Succeeded != 1 {
			t.Fatalf("by the old rule: %+v", r)
		}
		if err := commit(); err != nil {
			t.Fatal(err)
		}
		d.Clock.Set(ticktest.Morning(9, 0))
		if r := ticktest.Run(t, d); r.Made != 1 || r.Gaps[store.Missed] != 1 || r.Gaps[store.Edited] != 0 {
			t.Errorf("by the new rule: %+v", r)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(runs) != 3 || !runs[0].ScheduledFor.Equal(ticktest.Morning(9, 0)) {
			t.Errorf("%v: %+v", err, runs)
		}
		d.Clock.Set(ticktest.Morning(9, 3))
		d.Exec(t, rule("every 1m", ""))
		if r := ticktest.Run(t, d); r.Decided != 1 || r.Made != 0 {
			t.Errorf("by plain SQL: %+v", r)
		}
	})
}

// A job that is enabled shortly before a nominal time runs at that time, though the tick comes
// after it.
func TestEditThatEnablesKeepsTheNextTime(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		j := ticktest.Hourly("job")
		j.Disabled = true
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		ticktest.Run(t, d)
		d.Clock.Add(2*time.Hour - 10*time.Second)
		j.Disabled = false
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		d.Clock.Add(20 * time.Second)
		if r := ticktest.Run(t, d); r.Made != 1 || r.Gaps[store.Disabled] != 1 {
			t.Fatalf("%+v", r)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(runs) != 1 || !runs[0].ScheduledFor.Equal(time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)) {
			t.Fatalf("%v: %+v", err, runs)
		}
	})
}

// A job that is enabled, and loses a schedule with the same edit, runs none of the earlier times.
func TestEditThatEnablesAndUnlinksFiresNothingBack(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{
			Schedules: []store.Schedule{{Name: "hours", Rule: "every 1h"}, {Name: "other", Rule: "every 2h"}},
			Jobs: []store.Job{{Name: "job", Missed: "all", Disabled: true, Schedules: []string{"hours", "other"},
				Steps: []store.Step{ticktest.Nop("")}}},
		}
		ticktest.Apply(t, d, defs)
		ticktest.Run(t, d)
		d.Clock.Add(24*time.Hour + 5*time.Minute)
		defs.Jobs[0].Disabled, defs.Jobs[0].Schedules = false, []string{"hours"}
		ticktest.Apply(t, d, defs)
		if r := ticktest.Run(t, d); r.Made != 0 || r.Gaps[store.Missed] != 0 || r.Gaps[store.Disabled] != 1 {
			t.Fatalf("fired back: %+v", r)
		}
		d.Clock.Add(time.Hour)
		if r := ticktest.Run(t, d); r.Made != 1 {
			t.Fatalf("afterwards: %+v", r)
		}
	})
}

// A job whose validity is extended runs no time between the old end of its validity and the edit.
func TestEditOfNotAfterFiresNothingBack(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		j := ticktest.Hourly("job")
		j.Missed, j.NotAfter = "all", d.Clock.Now().Add(90*time.Minute)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		made := 0
		for range 4 {
			made += ticktest.Run(t, d).Made
			d.Clock.Add(time.Hour)
		}
		d.Clock.Add(10*24*time.Hour + 30*time.Minute)
		j.NotAfter = d.Clock.Now().Add(1000 * time.Hour)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		if r := ticktest.Run(t, d); made != 1 || r.Made != 0 {
			t.Fatalf("%d before, and back: %+v", made, r)
		}
		d.Clock.Add(time.Hour)
		if r := ticktest.Run(t, d); r.Made != 1 {
			t.Fatalf("afterwards: %+v", r)
		}
	})
}

// A job's own schedule needs no row in job_schedules.
func TestEditOfAnOwnRuleNeedsNoLink(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Run(t, d)
		at := ticktest.Literal(d, d.Clock.Now())
		insert := func(id int, rule string) {
			d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, name, created_at, changed_at) VALUES (%d, 'job %d', %s, %s)", d.Table("jobs"), id, id, at, at))
			d.Exec(t, fmt.Sprintf(`INSERT INTO %s (job_id, position, name, executor, spec) VALUES (%d, 1, 'step', 'sql', '{"sql": ["SELECT 1"]}')`, d.Table("steps"), id))
			if id == 3 { // seen before it has a schedule
				ticktest.Run(t, d)
			}
			d.Exec(t, fmt.Sprintf("INSERT INTO %s (job_id, rule, created_at, changed_at) VALUES (%d, '%s', %s, %s)", d.Table("schedules"), id, rule, at, at))
		}
		insert(1, "every 5m")
		insert(2, "every now and then")
		insert(3, "every 10m")
		parkedWith(t, d, "job 2", "now and then")
		d.Clock.Add(10 * time.Minute)
		if r := ticktest.Run(t, d); r.Made != 2 || r.Succeeded != 2 {
			t.Fatalf("%+v", r)
		}
		if j, err := d.Job(t.Context(), "job 1"); err != nil || j.Own == nil || j.Own.Rule != "every 5m" || j.State != store.JobSleeping {
			t.Errorf("%v: %+v", err, j)
		}
		d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = 'every 10m' WHERE job_id = 2")
		mended(t, d)
		d.Clock.Add(10 * time.Minute)
		if r := ticktest.Run(t, d); r.Made != 3 {
			t.Errorf("%+v", r)
		}
		// A command that changes the rule finds the job's own schedule, and so does a command that removes it.
		j, err := d.Job(t.Context(), "job 1")
		if err != nil {
			t.Fatal(err)
		}
		j.Own.Rule = "every 30m"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j.Job}})
		mended(t, d)
		if v, err := d.Job(t.Context(), "job 1"); err != nil || v.NextRun.Minute() != 30 {
			t.Errorf("%v: %+v", err, v)
		}
		j.Own = nil
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j.Job}})
		mended(t, d)
		if v, err := d.Job(t.Context(), "job 1"); err != nil || !v.NextRun.IsZero() || v.State != store.JobEnabled {
			t.Errorf("%v: %+v", err, v)
		}
	})
}

// A run that somebody put back by plain SQL runs again, with the attempts that are on record.
func TestEditThatPutsARunBack(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job"), ticktest.Hourly("other")}})
		ticktest.Run(t, d)
		d.Clock.Add(time.Hour)
		if r := ticktest.Run(t, d); r.Succeeded != 2 {
			t.Fatalf("%+v", r)
		}
		for range 2 {
			d.Exec(t, fmt.Sprintf("UPDATE %s SET state = 'waiting', settled_at = NULL, finished_at = NULL, attempt = 0, attempts = 0, ready_at = %s WHERE job_id = (SELECT id FROM %s WHERE name = 'job')",
				d.Table("runs"), ticktest.Literal(d, d.Clock.Now()), d.Table("jobs")))
			d.Clock.Add(time.Hour)
			if r := ticktest.Run(t, d); r.Failed+r.Lost > 0 {
				t.Fatalf("%+v", r)
			}
		}
		if got := ticktest.States(t, d, "job"); slices.ContainsFunc(got, func(s string) bool { return s != store.Succeeded }) || len(got) < 2 {
			t.Errorf("job: %v", got)
		}
		if got := ticktest.States(t, d, "other"); len(got) != 3 {
			t.Errorf("other: %v", got)
		}
		if n := d.Int(t, fmt.Sprintf("SELECT MAX(number) FROM %s", d.Table("attempts"))); n != 3 {
			t.Errorf("the newest attempt has the number %d", n)
		}
	})
}

// A value that no column of the type can hold is refused on SQLite, too: there, such a row would stop every pass.
func TestEditOfAnotherTypeIsRefusedBySQLite(t *testing.T) {
	d := storetest.Open(t, "sqlite", store.Options{})
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{ticktest.Nop("")}}}})
	for _, set := range []string{"priority = 'high'", "priority = 1.5", "timeout_ms = '5m'", "enabled = 'no'", "jitter_ms = 1.5",
		"not_before = 'xxxx-xx-xxTxx:xx:xx.xxxxxxZ'", "not_before = '2026-02-31T08:00:00.000000Z'", "not_before = '2026-01-05 08:00:00'"} {
		if _, err := d.SQL.ExecContext(t.Context(), "UPDATE dbjobs_jobs SET "+set); err == nil {
			t.Errorf("%s is taken", set)
		}
	}
	for _, set := range []string{"priority = 7", "not_before = '2026-02-28T08:00:00.000000Z'", "not_before = NULL"} {
		d.Exec(t, "UPDATE dbjobs_jobs SET "+set)
	}
}

// A link that plain SQL has made anew, to the same schedule, changes nothing, and no later pass decides for its job again.
func TestALinkMadeAnewIsSeenOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		planned(t, d, "")
		links := d.Table("job_schedules")
		before, err := d.Job(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "UPDATE "+links+" SET planned = NULL")
		ticktest.DecideOnly(t, d)
		if n := d.Int(t, "SELECT count(*) FROM "+links+" WHERE planned IS NULL"); n != 0 {
			t.Errorf("%d links are still to be seen", n)
		}
		if j, err := d.Job(t.Context(), "job"); err != nil || !j.NextRun.Equal(before.NextRun) {
			t.Errorf("%v: next %s, want %s", err, j.NextRun, before.NextRun)
		}
	})
}

// A job that has lost its rule has no next time, also before a pass has seen that: its plan still has one.
func TestAJobWithoutItsRuleHasNoNextTime(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job")}})
		ticktest.Run(t, d)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("")}}}})
		for _, when := range []string{"before", "after"} {
			d.Clock.Add(2 * time.Hour)
			v, err := d.Job(t.Context(), "job")
			if err != nil || v.State != store.JobEnabled || !v.NextRun.IsZero() || v.Overdue != 0 || v.Stale {
				t.Errorf("%s a pass: %v: %s, next %s, overdue %s, stale %v", when, err, v.State, v.NextRun, v.Overdue, v.Stale)
			}
			ticktest.Run(t, d)
		}
	})
}
