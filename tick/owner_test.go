package tick_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// asOwner is an installation with owners: ann has a job, and there is a tick of another login that may have her
// credentials.
func asOwner(t *testing.T, d *storetest.DB) (ann string, pass func(logins map[string]string) tick.Report) {
	t.Helper()
	if d.Engine == "sqlite" {
		t.Skip("knows no logins")
	}
	if err := d.SetOwners(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	ann, url := d.Account(t, "user")
	_, other := d.Account(t, "ticker")
	who, table := "LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))", "effects"
	if d.Engine == "postgres" {
		who, table = "session_user", "public.effects"
	}
	d.Exec(t, "CREATE TABLE "+table+" (who varchar(100))")
	d.Exec(t, "GRANT INSERT ON "+table+" TO "+ann)
	insert := "INSERT INTO " + table + " VALUES (" + who + ")"
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "hers", Owner: ann, Own: &store.Schedule{Rule: "every 5m"}, Steps: []store.Step{
		ticktest.Step("plain", insert),
		{Name: "first", Executor: "sql", Spec: []byte(`{"sql": ["` + insert + `"], "atomic": true}`)},
		{Name: "last", Executor: "sql", Spec: []byte(`{"sql": ["` + insert + `"], "atomic": true}`)},
	}}}})
	return ann, func(logins map[string]string) tick.Report {
		t.Helper()
		s, err := store.Open(t.Context(), other, store.Options{Clock: d.Clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		h := &executor.Host{Logins: map[string]executor.Read{}}
		tk := &tick.Tick{Store: s, Name: "test", Holder: "test", Version: "test", Now: time.Now}
		for owner, as := range logins {
			if as == "" {
				as = url
			}
			h.Logins[owner] = func() (string, error) { return as, nil }
			tk.Owners = append(tk.Owners, owner)
		}
		if tk.Executors, err = executor.Open(s, h); err != nil {
			t.Fatal(err)
		}
		defer tk.Executors.Close()
		r, err := tk.Run(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		return r
	}
}

// A tick executes a job as its owner, on a connection that logs in as the owner. Each step takes effect. The atomic
// steps have rights on none of our tables: a routine ends them. Without the owner's credentials, the job stays as it
// is, and is reported. A tick that has them may come, and neither tick undoes the other's decisions.
func TestAJobIsExecutedAsItsOwner(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, pass := asOwner(t, d)
		pass(nil) // plans the job
		d.Clock.Add(11 * time.Minute)
		if r := pass(nil); r.Started != 0 || len(r.Unserved) != 1 || r.Unserved[0].Owner != ann || len(r.Parked) > 0 {
			t.Fatalf("without credentials: %+v", r)
		}
		if d.Engine == "postgres" { // only the rights to use the schema and to call the routine remain
			d.Exec(t, "REVOKE ALL ON ALL TABLES IN SCHEMA dbjobs FROM "+ann)
		}
		if r := pass(map[string]string{ann: ""}); r.Succeeded != 1 || len(r.Unserved) > 0 {
			run := ticktest.LastRun(t, d, ann+"/hers")
			t.Fatalf("with credentials: %+v\n%+v", r, run)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects WHERE who = '"+ann+"'"); n != 3 {
			t.Errorf("%d effects of ann's, want 3", n)
		}
		run := ticktest.LastRun(t, d, ann+"/hers")
		if run.State != store.Succeeded || len(run.Tries) != 3 {
			t.Fatalf("%+v", run)
		}
		for i, a := range run.Tries {
			if a.State != store.Succeeded || a.Number != i+1 || a.Step != i+1 || a.Rows == nil || *a.Rows != 1 {
				t.Errorf("attempt %d: %+v", i+1, a)
			}
		}
		d.Clock.Add(5 * time.Minute)
		if r := pass(nil); r.Started != 0 || r.ParkedJobs > 0 {
			t.Errorf("again without credentials: %+v", r)
		}
	})
}

// Credentials of another user, or for another database, execute nothing. The credentials of an owner also execute
// nothing if anybody may write the owner of a job.
func TestAJobIsExecutedAsNobodyElse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, pass := asOwner(t, d)
		_, bobs := d.Account(t, "user")
		pass(nil)
		d.Clock.Add(6 * time.Minute)
		if r := pass(map[string]string{ann: bobs}); r.Succeeded != 0 {
			t.Fatalf("as bob: %+v", r)
		}
		if run := ticktest.LastRun(t, d, ann+"/hers"); !strings.Contains(run.Error, "it must be the login of the owner") {
			t.Errorf("the run says %q", run.Error)
		}
		if err := d.SetOwners(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(11 * time.Minute)
		if r := pass(map[string]string{ann: ""}); r.Started != 0 || len(r.Unserved) == 0 {
			t.Errorf("without owners: %+v", r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 0 {
			t.Errorf("%d effects", n)
		}
	})
}

// A run whose atomic step succeeds, and whose on_success is fail, fails by the routine. The decision that settles it
// makes the pause of on_error.
func TestAnOwnersFailurePausesTheJob(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, pass := asOwner(t, d)
		failing := []store.Step{{Name: "only", Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"], "atomic": true}`), OnSuccess: store.StepFail}}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "failing", Owner: ann, Own: &store.Schedule{Rule: "every 5m"}, OnError: store.OnErrorPause, Steps: failing}}})
		pass(nil)
		d.Clock.Add(6 * time.Minute)
		for range 2 {
			pass(map[string]string{ann: ""})
		}
		if run := ticktest.LastRun(t, d, ann+"/failing"); run.State != store.Failed || len(run.Tries) != 1 || run.Tries[0].State != store.Succeeded {
			t.Errorf("%+v", run)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("pauses")+" WHERE paused_by = 'dbjobs itself' AND resumed_at IS NULL"); n != 1 {
			t.Errorf("%d pauses", n)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("changes")+" WHERE changed_by = 'dbjobs itself' AND action = 'pause' AND subject = '"+ann+"/failing'"); n != 1 {
			t.Errorf("%d rows of the change log", n)
		}
	})
}
