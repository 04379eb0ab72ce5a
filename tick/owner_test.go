package tick_test

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// asOwner is an installation with owners: ann has a job, and there is a tick of another login that may have her
// credentials.
func asOwner(t *testing.T, d *storetest.DB) (ann string, pass func(logins map[string]string, with ...func(*tick.Tick, *executor.Host)) tick.Report) {
	t.Helper()
	if d.Engine == "sqlite" {
		t.Skip("knows no logins")
	}
	if err := d.SetOwners(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	ann, url := d.Account(t, "user")
	_, other := d.Account(t, "ticker")
	known := &secret.Known{}
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
	return ann, func(logins map[string]string, with ...func(*tick.Tick, *executor.Host)) tick.Report {
		t.Helper()
		s, err := store.Open(t.Context(), other, store.Options{Clock: d.Clock.Now, Secrets: known})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		h := &executor.Host{Logins: map[string]executor.Read{}, Known: known}
		tk := &tick.Tick{Store: s, Name: "test", Holder: "test", Version: "test", Now: time.Now}
		for owner, as := range logins {
			if as == "" {
				as = url
			}
			h.Logins[owner] = func(context.Context) (string, error) { return as, nil }
			tk.Owners = append(tk.Owners, owner)
		}
		for _, set := range with {
			set(tk, h)
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
		dry := func(tk *tick.Tick, _ *executor.Host) { tk.DryRun = true }
		if r := pass(nil, dry); len(r.Due) > 0 {
			t.Errorf("a dry run without credentials: %+v", r.Due)
		}
		if r := pass(map[string]string{ann: ""}, dry); len(r.Due) != 1 || r.Due[0].Job != ann+"/hers" {
			t.Errorf("a dry run with credentials: %+v", r.Due)
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

// While migrate replaces the routine that ends the step of an owner, MySQL has none for a moment. The step is undone then, which
// uses up no attempt, and it is delivered again.
func TestAnOwnersStepWhileItsRoutineIsReplaced(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, pass := asOwner(t, d)
		if d.Engine == "postgres" {
			t.Skip("replaces its routines in one transaction")
		}
		pass(nil)
		d.Clock.Add(6 * time.Minute)
		var name, text string
		var other any
		if err := d.SQL.QueryRow("SHOW CREATE PROCEDURE dbjobs_end_own").Scan(&name, &other, &text, &other, &other, &other); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "DROP PROCEDURE dbjobs_end_own")
		if r := pass(map[string]string{ann: ""}); r.Waiting != 1 || r.Failed > 0 || !strings.Contains(r.Runs[0].Error, "is being replaced") {
			t.Errorf("without the routine: %+v", r)
		}
		d.Exec(t, text)
		d.Exec(t, "GRANT EXECUTE ON PROCEDURE dbjobs_end_own TO "+ann)
		d.Clock.Add(time.Minute)
		if r := pass(map[string]string{ann: ""}); r.Succeeded != 1 {
			t.Errorf("with the routine: %+v", r)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 3 {
			t.Errorf("%d effects, want 3", n)
		}
	})
}

// Of the URL of an owner, the password is the secret: what is recorded about a job still names the database.
func TestAnOwnersDatabaseIsNamed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, pass := asOwner(t, d)
		u, err := url.Parse(d.URL)
		if err != nil {
			t.Fatal("not a URL")
		}
		name := strings.TrimPrefix(u.Path, "/")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "asks", Owner: ann, Own: &store.Schedule{Rule: "every 5m"},
			Steps: []store.Step{ticktest.Step("", "SELECT * FROM "+name+".nowhere")}}}})
		pass(nil)
		d.Clock.Add(6 * time.Minute)
		pass(map[string]string{ann: ""})
		if run := ticktest.LastRun(t, d, ann+"/asks"); run.State != store.Failed || !strings.Contains(run.Error, name) {
			t.Errorf("the run is %s and says %q", run.State, run.Error)
		}
	})
}

// If the credentials of an owner lead to a server that does not answer, the jobs of another owner do not wait for it.
func TestAnOwnersSilentServerKeepsNoOtherOwner(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, pass := asOwner(t, d)
		bob, silent := d.Account(t, "user")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "his", Owner: bob, Own: &store.Schedule{Rule: "every 5m"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		pass(nil)
		d.Clock.Add(6 * time.Minute)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		asked, done := make(chan struct{}), make(chan struct{})
		var once sync.Once
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				once.Do(func() { close(asked) })
				<-done
				c.Close()
			}
		}()
		go func() {
			defer close(done)
			<-asked
			for end := time.Now().Add(5 * time.Second); d.Int(t, "SELECT count(*) FROM effects") < 3; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Error("ann's job waits for bob's server")
					return
				}
			}
		}()
		u, err := url.Parse(silent)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = l.Addr().String()
		r := pass(map[string]string{ann: "", bob: u.String()}, func(_ *tick.Tick, h *executor.Host) {
			read := h.Logins[ann]
			h.Logins[ann] = func(ctx context.Context) (string, error) {
				<-asked
				return read(ctx)
			}
		})
		if r.Succeeded != 1 || r.Waiting != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// A pass of ann's login parks her jobs that need rows which it does not see, and runs her other jobs as ever: also after a pass of
// somebody who sees all rows.
func TestAnOwnersJobThatNeedsAnothersRows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, s, _ := connected(t, d)
		for i, as := range []*store.Store{s, s, s, d.Store, s, s} {
			pass := ticktest.New(t, as)
			pass.Name = ann // as rights allow
			r, err := pass.Run(t.Context())
			if err != nil {
				t.Fatalf("pass %d: %v", i, err)
			}
			if i == 0 { // it plans
				if len(r.Parked) != 4 { // a hook is looked up only when there is something to tell
					t.Errorf("parked: %+v", r.Parked)
				}
			} else if run := ticktest.LastRun(t, d, ann+"/alone"); as == s && (run.State != store.Succeeded || run.CreatedAt.Before(d.Clock.Now().Add(-time.Minute))) {
				t.Errorf("pass %d: %+v", i, run)
			}
			d.Clock.Add(6 * time.Minute)
		}
	})
}

// An owner stops and skips what runs after a job that the owner does not see, before and after a pass has given both plans.
func TestAnOwnerStopsWhatFollowsAnothers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		_, s, _ := connected(t, d)
		d.Exec(t, "DELETE FROM dbjobs.plans")
		for _, when := range []string{"before", "after"} {
			if _, err := s.Skips(t.Context(), "follows", "skip", store.Author{}, func(in store.SkipInput) ([]store.Skip, error) { return in.Job.Skips, nil }); err != nil {
				t.Errorf("skip %s a pass: %v", when, err)
			}
			if _, err := s.AbortJob(t.Context(), "follows", true, store.Author{}); err != nil {
				t.Errorf("abort %s a pass: %v", when, err)
			}
			if _, err := storetest.SQL(t, s).ExecContext(t.Context(), "SELECT dbjobs.abort('follows', run_only => true)"); err != nil {
				t.Errorf("dbjobs.abort %s a pass: %v", when, err)
			}
			if _, err := ticktest.New(t, d.Store).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A row of ann's that is there gets no other reference to what her login does not see. References to what it sees can change.
func TestAnOwnersRowGetsNoReferenceToAnothers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, s, _ := connected(t, d)
		id := func(table, name string) string {
			return strconv.Itoa(d.Int(t, "SELECT id FROM dbjobs."+table+" WHERE name = '"+name+"'"))
		}
		alone, linked := id("jobs", "alone"), id("jobs", "linked")
		d.Exec(t, "INSERT INTO dbjobs.job_after (job_id, after_job_id) VALUES ("+linked+", "+alone+")")
		hers := storetest.SQL(t, s)
		for _, c := range []struct {
			statement string
			allowed   bool
		}{
			{"UPDATE dbjobs.jobs SET group_name = 'bobs' WHERE name = 'alone'", false},
			{"UPDATE dbjobs.jobs SET on_missed = 'bob/bobs' WHERE name = 'alone'", false},
			{"UPDATE dbjobs.schedules SET calendar = 'bobs' WHERE job_id = " + alone, false},
			{"UPDATE dbjobs.job_schedules SET schedule_id = " + id("schedules", "bobs") + " WHERE job_id = " + alone, false},
			{"UPDATE dbjobs.job_schedules SET job_id = " + alone + " WHERE schedule_id = " + id("schedules", "bobs"), false},
			{"UPDATE dbjobs.job_after SET after_job_id = " + id("jobs", "bobs") + " WHERE after_job_id = " + alone, false},
			{"UPDATE dbjobs.job_ends SET job_id = " + alone + " WHERE job_id = " + id("jobs", "follows"), false},
			{"UPDATE dbjobs.jobs SET description = 'new', group_name = 'bobs' WHERE name = 'grouped'", true},
			{"UPDATE dbjobs.jobs SET on_missed = 'linked' WHERE name = 'hooked'", true}, // beside bob's, which stays
			{"UPDATE dbjobs.jobs SET on_late = on_failed WHERE name = 'hooked'", false},
			{"UPDATE dbjobs.jobs SET on_missed = 'linked' WHERE name = 'grouped'", true},
			{"UPDATE dbjobs.jobs SET on_failed = NULL, on_missed = '" + ann + "/linked', group_name = NULL WHERE name = 'hooked'", true},
			{"UPDATE dbjobs.schedules SET rule = 'every 6m' WHERE job_id = (SELECT id FROM dbjobs.jobs WHERE name = 'rests')", true},
			{"UPDATE dbjobs.schedules SET calendar = '' WHERE job_id = (SELECT id FROM dbjobs.jobs WHERE name = 'rests')", true},
			{"UPDATE dbjobs.job_ends SET seen = true", true},
		} {
			if _, err := hers.ExecContext(t.Context(), c.statement); c.allowed != (err == nil) {
				t.Errorf("%s: %v", c.statement, err)
			}
		}
	})
}

// A server without the roles leaves their policies out of a restore. Then the pass of a tick for all owners is refused, and the
// error names what brings the policies back.
func TestATickWithoutThePoliciesOfItsRole(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	if err := d.SetOwners(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	_, s := d.As(t)
	d.Exec(t, "DROP POLICY every ON dbjobs.ticks")
	if _, err := ticktest.New(t, s).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "is a member of dbjobs_ticker; after a restore, run `dbjobs migrate --owners`") {
		t.Errorf("without the policy: %v", err)
	}
	if err := d.SetOwners(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if _, err := ticktest.New(t, s).Run(t.Context()); err != nil {
		t.Errorf("with all policies: %v", err)
	}
}
