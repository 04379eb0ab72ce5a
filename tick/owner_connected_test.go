package tick_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// connected is an installation in which an administrator has connected jobs of ann's with rows of bob's, which her own login does
// not see. Her job alone needs none. s is a store of her login, and bobs one of his.
func connected(t *testing.T, d *storetest.DB) (ann string, s, bobs *store.Store) {
	t.Helper()
	if d.Engine != "postgres" {
		t.Skip("has no row security")
	}
	if err := d.SetOwners(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	login := func(defined func(name string) store.Definitions) (string, *store.Store) {
		name, url := d.Account(t, "user")
		s, err := store.Open(t.Context(), url, store.Options{Clock: d.Clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if _, err := s.Apply(t.Context(), defined(name), store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		return name, s
	}
	jobs := func(names ...string) (list []store.Job) {
		for _, name := range names {
			list = append(list, store.Job{Name: name, Own: &store.Schedule{Rule: "every 5m"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}})
		}
		return list
	}
	bob, bobs := login(func(string) store.Definitions {
		return store.Definitions{Jobs: jobs("bobs"), Groups: []store.Group{{Name: "bobs", MaxRunning: 1}},
			Schedules: []store.Schedule{{Name: "bobs", Rule: "every 5m"}}, Calendars: []store.Calendar{{Name: "bobs", Days: []string{"2020-01-01"}}}}
	})
	ann, s = login(func(string) store.Definitions {
		return store.Definitions{Jobs: jobs("alone", "linked", "grouped", "follows", "hooked", "rests")}
	})
	for _, statement := range []string{
		"INSERT INTO dbjobs.job_schedules (job_id, schedule_id) SELECT j.id, s.id FROM dbjobs.jobs j, dbjobs.schedules s WHERE j.name = 'linked' AND s.name = 'bobs'",
		"UPDATE dbjobs.jobs SET group_name = 'bobs' WHERE name = 'grouped'",
		"INSERT INTO dbjobs.job_after (job_id, after_job_id) SELECT j.id, b.id FROM dbjobs.jobs j, dbjobs.jobs b WHERE j.name = 'follows' AND b.name = 'bobs'",
		"UPDATE dbjobs.jobs SET on_failed = '" + bob + "/bobs' WHERE name = 'hooked'",
		"UPDATE dbjobs.schedules SET calendar = 'bobs' WHERE job_id = (SELECT id FROM dbjobs.jobs WHERE name = 'rests')",
		"INSERT INTO dbjobs.job_ends (job_id, meets, after_job_id, run_id, ended_at) SELECT job_id, 'x', after_job_id, gen_random_uuid(), now() FROM dbjobs.job_after",
	} {
		d.Exec(t, statement)
	}
	return ann, s, bobs
}

// asBob is a pass of bob's login, with a name that rights allow.
func asBob(t *testing.T, bobs *store.Store) {
	t.Helper()
	pass := ticktest.New(t, bobs)
	var err error
	if pass.Name, err = bobs.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	ticktest.Pass(t, pass)
}

// Bob does not see which jobs of ann's use rows of his. What they use stays all the same, whatever removes it.
func TestWhatAnotherOwnerUsesStays(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, _, bobs := connected(t, d)
		refused := func(how string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "a job of another owner") {
				t.Errorf("%s: %v", how, err)
			}
		}
		_, err := bobs.RemoveUnused(t.Context(), store.AlterOptions{})
		refused("unused schedules", err)
		for _, detach := range []bool{false, true} {
			_, err = bobs.RemoveSchedule(t.Context(), "bobs", detach, store.AlterOptions{})
			refused("a schedule", err)
		}
		refused("a calendar", bobs.RemoveCalendar(t.Context(), "bobs", store.Author{}))
		refused("a predecessor and hook", bobs.RemoveJob(t.Context(), "bobs", store.Author{}))
		d.Exec(t, "DELETE FROM dbjobs.job_ends")
		d.Exec(t, "DELETE FROM dbjobs.job_after")
		refused("a hook", bobs.RemoveJob(t.Context(), "bobs", store.Author{}))
		for _, statement := range []string{"SELECT dbjobs.drop_unused_schedules()", "DELETE FROM dbjobs.schedules WHERE name = 'bobs'", "DELETE FROM dbjobs.calendars", "UPDATE dbjobs.calendars SET name = 'other'", "DELETE FROM dbjobs.groups", "UPDATE dbjobs.groups SET name = 'other'", "UPDATE dbjobs.jobs SET removed_at = now()", "UPDATE dbjobs.jobs SET name = 'other'", "DELETE FROM dbjobs.jobs"} {
			_, err := storetest.SQL(t, bobs).ExecContext(t.Context(), statement)
			refused(statement, err)
		}
		d.Exec(t, "DELETE FROM dbjobs.job_schedules WHERE job_id IN (SELECT id FROM dbjobs.jobs WHERE name = 'linked')")
		d.Exec(t, "UPDATE dbjobs.jobs SET on_failed = NULL")
		d.Exec(t, "UPDATE dbjobs.schedules SET calendar = ''")
		if gone, err := bobs.RemoveUnused(t.Context(), store.AlterOptions{}); err != nil || len(gone) != 1 {
			t.Errorf("a schedule that nobody uses: %v, %v", gone, err)
		}
		if err := bobs.RemoveCalendar(t.Context(), "bobs", store.Author{}); err != nil {
			t.Errorf("a calendar that nobody uses: %v", err)
		}
		if err := bobs.RemoveJob(t.Context(), "bobs", store.Author{}); err != nil {
			t.Errorf("a job that nobody needs: %v", err)
		}
		if _, err := d.Job(t.Context(), ann+"/linked"); err != nil {
			t.Error(err)
		}
	})
}

// A pass of bob's login does not see the runs of ann's jobs. Those that have a place in a group of his keep it.
func TestAGroupCountsTheRunsOfAnotherOwner(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, _, bobs := connected(t, d)
		d.Exec(t, "UPDATE dbjobs.jobs SET group_name = 'bobs' WHERE name = 'bobs'")
		ticktest.DecideOnly(t, d)
		r := ticktest.RunNow(t, d, ann+"/grouped", store.Request{})
		d.Exec(t, "UPDATE dbjobs.runs SET state = 'queued' WHERE id = '"+r.ID+"'")
		mine, err := bobs.RunNow(t.Context(), "bobs", store.Request{})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{store.Waiting, store.Succeeded} {
			asBob(t, bobs)
			if got, err := d.Run(t.Context(), mine.ID); err != nil || got.State != want {
				t.Errorf("bob's run: %v, %v; want %s", err, got.State, want)
			}
			d.Exec(t, "UPDATE dbjobs.runs SET state = 'cancelled', finished_at = created_at, settled_at = created_at WHERE id = '"+r.ID+"'")
			d.Exec(t, "UPDATE dbjobs.runs SET held_by = NULL WHERE id = '"+mine.ID+"'") // as the pass does that settles the other run
			d.Clock.Add(time.Minute)
		}
	})
}

// Bob's group is full of runs of ann's, which his pass does not see. It lets his runs wait, whichever of his jobs come first, and ends.
func TestAPassEndsWhereAGroupIsFullOfTheRunsOfAnotherOwner(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, _, bobs := connected(t, d)
		if _, err := bobs.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "bobs2", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}}, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "UPDATE dbjobs.groups SET max_running = 2")
		d.Exec(t, "UPDATE dbjobs.jobs SET group_name = 'bobs' WHERE name IN ('bobs', 'bobs2', 'alone')")
		ticktest.DecideOnly(t, d)
		for _, name := range []string{"grouped", "alone"} {
			r := ticktest.RunNow(t, d, ann+"/"+name, store.Request{})
			d.Exec(t, "UPDATE dbjobs.runs SET state = 'queued' WHERE id = '"+r.ID+"'")
		}
		ctx, stop := context.WithTimeout(t.Context(), 15*time.Second) // it decided for ever
		defer stop()
		for _, name := range []string{"bobs", "bobs2"} {
			mine, err := bobs.RunNow(t.Context(), name, store.Request{})
			if err != nil {
				t.Fatal(err)
			}
			pass := ticktest.New(t, bobs)
			if pass.Name, err = bobs.Login(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := pass.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if got, err := d.Run(t.Context(), mine.ID); err != nil || got.State != store.Waiting || got.HeldBy != store.HeldByGroup {
				t.Errorf("the run of %s: %v, %s %s", name, err, got.State, got.HeldBy)
			}
			d.Clock.Add(time.Second)
		}
	})
}

// While such a run waits for the group, the clock goes back by some seconds. The run waits for the group as before, and no decision
// about its job fails.
func TestAClockGoesBackWhereAGroupIsFullOfTheRunsOfAnotherOwner(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, _, bobs := connected(t, d)
		d.Exec(t, "UPDATE dbjobs.jobs SET group_name = 'bobs', overlap = 'wait-all' WHERE name = 'bobs'")
		ticktest.DecideOnly(t, d)
		r := ticktest.RunNow(t, d, ann+"/grouped", store.Request{})
		d.Exec(t, "UPDATE dbjobs.runs SET state = 'queued' WHERE id = '"+r.ID+"'")
		var ids []string
		for range 2 {
			mine, err := bobs.RunNow(t.Context(), "bobs", store.Request{})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, mine.ID)
			asBob(t, bobs)
			d.Clock.Add(-3 * time.Second)
		}
		if j, err := bobs.Job(t.Context(), "bobs"); err != nil || j.Parked != "" {
			t.Errorf("%v: it is parked: %s", err, j.Parked)
		}
		for _, id := range ids {
			if got, err := d.Run(t.Context(), id); err != nil || got.State != store.Waiting || got.HeldBy != store.HeldByGroup {
				t.Errorf("bob's run: %v, %s %s", err, got.State, got.HeldBy)
			}
		}
		d.Exec(t, "UPDATE dbjobs.runs SET state = 'cancelled', finished_at = created_at, settled_at = created_at WHERE id = '"+r.ID+"'")
		d.Exec(t, "UPDATE dbjobs.runs SET held_by = NULL WHERE id = '"+ids[0]+"'") // as the pass does that settles the other run
		d.Clock.Add(time.Minute)
		asBob(t, bobs)
		if got, err := d.Run(t.Context(), ids[0]); err != nil || got.State != store.Succeeded {
			t.Errorf("bob's run: %v, %s", err, got.State)
		}
	})
}

// Bob changes his calendar, by a command or by SQL, and his passes plan with the new days. A schedule of ann's has the same calendar:
// the next pass that sees it plans with the new days, too.
func TestACalendarOfAnotherOwnerIsEdited(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		_, _, bobs := connected(t, d)
		ticktest.DecideOnly(t, d)
		for how, edit := range map[string]func(day string) error{
			"command": func(day string) error {
				_, err := bobs.AlterCalendar(t.Context(), "bobs", store.AlterOptions{}, func(c *store.Calendar) (store.Calendar, error) {
					c.Days = []string{day}
					return *c, nil
				})
				return err
			},
			"SQL": func(day string) error {
				_, err := storetest.SQL(t, bobs).ExecContext(t.Context(), "UPDATE dbjobs.calendars SET days = $1", day)
				return err
			},
		} {
			today := d.Clock.Now()
			if err := edit(today.Format(time.DateOnly)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				asBob(t, bobs)
				ticktest.DecideOnly(t, d)
			}
			has := store.Calendar{Days: []string{today.Format(time.DateOnly)}}
			if n := d.Int(t, "SELECT count(*) FROM dbjobs.plan_rules r JOIN dbjobs.schedules s ON s.id = r.schedule_id AND s.plan_input = r.input WHERE s.calendar = 'bobs' AND s.calendar_version = $1", has.Version()); n != 1 {
				t.Errorf("%s: the plan of ann's job has other days", how)
			}
			if n := d.Int(t, "SELECT count(*) FROM dbjobs.calendars WHERE planned IS DISTINCT FROM plan_input"); n != 0 {
				t.Errorf("%s: a pass that sees all leaves the calendar unseen", how)
			}
			d.Clock.Set(today.AddDate(0, 0, 1))
		}
	})
}

// In a transaction that keeps its snapshot, ann still sees a group and a calendar that were hers. By now they are bob's, and no row of
// hers gets them.
func TestAnOldSnapshotGivesNoReference(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, s, _ := connected(t, d)
		d.Exec(t, "INSERT INTO dbjobs.groups (name, max_running, owner) VALUES ('hers', 1, '"+ann+"')")
		d.Exec(t, "INSERT INTO dbjobs.calendars (name, owner) VALUES ('hers', '"+ann+"')")
		for _, c := range []struct{ of, statement string }{
			{"groups", "INSERT INTO dbjobs.jobs (name, group_name) VALUES ('new', 'hers')"},
			{"groups", "UPDATE dbjobs.jobs SET group_name = 'hers' WHERE name = 'alone'"},
			{"calendars", "INSERT INTO dbjobs.schedules (name, rule, calendar) VALUES ('new', 'every 5m', 'hers')"},
			{"calendars", "UPDATE dbjobs.schedules SET calendar = 'hers' WHERE job_id = (SELECT id FROM dbjobs.jobs WHERE name = 'alone')"},
		} {
			now := storetest.SQL(t, s)
			if _, err := now.ExecContext(t.Context(), "BEGIN; "+c.statement+"; ROLLBACK"); err != nil {
				t.Errorf("%s while it is hers: %v", c.statement, err)
			}
			old, err := now.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
			if err != nil {
				t.Fatal(err)
			}
			if err := old.QueryRowContext(t.Context(), "SELECT count(*) FROM dbjobs.groups").Scan(new(int)); err != nil {
				t.Fatal(err)
			}
			columns := map[string]string{"groups": "name, max_running, owner) SELECT name, max_running, ", "calendars": "name, owner) SELECT name, "}[c.of]
			d.Exec(t, "SELECT * INTO public.gone FROM dbjobs."+c.of+" WHERE name = 'hers'")
			d.Exec(t, "DELETE FROM dbjobs."+c.of+" WHERE name = 'hers'")
			d.Exec(t, "INSERT INTO dbjobs."+c.of+" ("+columns+"'bob' FROM public.gone")
			if _, err := old.ExecContext(t.Context(), c.statement); err == nil || !strings.Contains(err.Error(), "40001") {
				t.Errorf("%s: %v", c.statement, err)
			}
			_ = old.Rollback()
			d.Exec(t, "DROP TABLE public.gone")
			d.Exec(t, "UPDATE dbjobs."+c.of+" SET owner = '"+ann+"' WHERE name = 'hers'")
		}
	})
}
