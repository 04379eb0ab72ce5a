package tick_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// onTargets runs a test with a database of each engine as a target of each engine's store.
func onTargets(t *testing.T, fn func(t *testing.T, d, target *storetest.DB)) {
	t.Helper()
	t.Parallel()
	for _, own := range storetest.Engines(t) {
		for _, e := range storetest.Engines(t) {
			t.Run(own+" on "+e, func(t *testing.T) {
				t.Parallel()
				fn(t, storetest.Open(t, own, store.Options{}), storetest.Open(t, e, store.Options{}))
			})
		}
	}
}

// withTargets is a tick whose host has these targets, with their names.
func withTargets(t *testing.T, d *storetest.DB, urls map[string]string) *tick.Tick {
	t.Helper()
	h := &executor.Host{Known: &secret.Known{}, Targets: map[string]executor.Target{}}
	for name, url := range urls {
		h.Targets[name] = executor.Target{URL: func(context.Context) (string, error) { return url, nil }}
	}
	return withHost(t, d, h)
}

func withHost(t *testing.T, d *storetest.DB, h *executor.Host) *tick.Tick {
	t.Helper()
	tk := ticktest.New(t, d.Store)
	x, err := executor.Open(d.Store, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	tk.Executors = x
	return tk
}

// on is a step whose statements run in a target.
func on(target, name string, list ...executor.Statement) store.Step {
	spec, err := json.Marshal(executor.SQLSpec{SQL: list, Target: target})
	if err != nil {
		panic(err)
	}
	return store.Step{Name: name, Executor: "sql", Spec: spec}
}

// A step with a target runs in that database, with the SQL of its engine, and later steps get its results. The next
// step gets a session like a new one.
func TestTarget(t *testing.T) {
	onTargets(t, func(t *testing.T, d, target *storetest.DB) {
		at := map[string]string{"postgres": "timestamptz", "mariadb": "datetime(6)", "sqlite": "text"}[target.Engine]
		target.Exec(t, "CREATE TABLE effects (run varchar(50), at "+at+", n int)")
		d.Exec(t, "CREATE TABLE IF NOT EXISTS told (engine varchar(20), v varchar(100))")
		rude := map[string]string{"postgres": "SET TIME ZONE 'Asia/Kathmandu'", "mariadb": "SET @kept = 1", "sqlite": "CREATE TEMPORARY TABLE effects (n int)"}[target.Engine]
		look := map[string]string{"postgres": "SELECT current_setting('TimeZone') <> 'Asia/Kathmandu' AS clean", "mariadb": "SELECT @kept IS NULL AS clean",
			"sqlite": "SELECT count(*) = 0 AS clean FROM sqlite_temp_master"}[target.Engine]
		job := "of " + target.Engine
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: job, Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{
			on("shop", "write", executor.Statement{Text: "INSERT INTO effects VALUES (" + places(target, 3) + ")", Args: []any{"${run_id}", "${scheduled_for}", json.Number("7")}},
				executor.Statement{Text: rude}),
			on("shop", "ask", executor.Statement{Text: "SELECT n FROM effects"}),
			on("shop", "look", executor.Statement{Text: look}),
			func() store.Step {
				st := ticktest.StepWith(false, "INSERT INTO told VALUES ("+places(d, 2)+")", target.Engine, "${steps.ask.row.n}, ${steps.look.row.clean}")
				st.Name = "note"
				return st
			}(),
		}}}})
		tk := withTargets(t, d, map[string]string{"shop": target.URL})
		ticktest.DecideOnly(t, d)
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Pass(t, tk); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		run := ticktest.LastRun(t, d, job)
		if n := target.Int(t, "SELECT count(*) FROM effects WHERE run = '"+run.ID+"' AND at = "+ticktest.Literal(target, run.ScheduledFor)); n != 1 {
			t.Errorf("%d rows of the run, want 1", n)
		}
		if n := d.Int(t, "SELECT count(*) FROM told WHERE engine = '"+target.Engine+"' AND v IN ('7, 1', '7, true')"); n != 1 {
			t.Error("the last step was told something else")
		}
	})
}

// A statement is stopped on the target's server as on the store's server.
func TestTimeoutStopsTheStatementOnTheTarget(t *testing.T) {
	onTargets(t, func(t *testing.T, d, target *storetest.DB) {
		st := on("shop", "slow", executor.Statement{Text: endless(target)})
		st.Timeout = store.Duration(300 * time.Millisecond)
		opens := on("shop", "opens", executor.Statement{Text: "SELECT 1"}) // the session, however long a busy server takes for it
		job := "of " + target.Engine
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: job, Steps: []store.Step{opens, st}}}})
		ticktest.Request(t, d, job)
		if r := ticktest.Pass(t, withTargets(t, d, map[string]string{"shop": target.URL})); r.Failed != 1 || !strings.Contains(r.Runs[0].Error, "timeout after 300ms") {
			t.Fatalf("%+v", r)
		}
		if n := stillRunning(t, target); n != 0 {
			t.Fatalf("%d statements still run on the target", n)
		}
	})
}

// The statement of a run that is cancelled, or that another process has got, is stopped, too. Both end the attempt in
// the same way.
func TestCancelStopsTheStatementOnTheTarget(t *testing.T) {
	onTargets(t, func(t *testing.T, d, target *storetest.DB) {
		job := "of " + target.Engine
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: job, Steps: []store.Step{on("shop", "slow", executor.Statement{Text: endless(target)})}}}})
		ticktest.Request(t, d, job)
		ticktest.DecideOnly(t, d)
		run := ticktest.LastRun(t, d, job)
		done := make(chan error)
		go func() {
			for r, err := d.Run(t.Context(), run.ID); err == nil && r.State != store.Running; r, err = d.Run(t.Context(), run.ID) {
				time.Sleep(10 * time.Millisecond)
			}
			_, err := d.CancelRun(t.Context(), run.ID, store.Author{})
			done <- err
		}()
		beside := *d
		beside.Store = ticktest.OpenBeside(t, d, "", store.Options{})
		r := ticktest.Pass(t, withTargets(t, &beside, map[string]string{"shop": target.URL}))
		if err := <-done; err != nil || r.Cancelled != 1 {
			t.Fatalf("%v: %+v", err, r)
		}
		if n := stillRunning(t, target); n != 0 {
			t.Fatalf("%d statements still run on the target", n)
		}
	})
}

// If a target cannot be reached, for whatever reason, the runs that need it fail, with the reason and according to
// their retry. Other jobs run at the same time, and no password is shown.
func TestTargetOutOfReach(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	refusing, err := net.Dial("tcp", silent.Addr().String()) // a port that is in use, and on which nothing listens
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { refusing.Close() })
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		urls := map[string]string{
			"silent-pg": "postgres://ann:geheimnis@" + silent.Addr().String() + "/shop?connect_timeout=2", "silent-my": "mysql://ann:geheimnis@" + silent.Addr().String() + "/shop?timeout=2s",
			"refusing-pg": "postgres://ann:geheimnis@" + refusing.LocalAddr().String() + "/shop", "refusing-my": "mysql://ann:geheimnis@" + refusing.LocalAddr().String() + "/shop",
			"missing": "sqlite://" + filepath.Join(t.TempDir(), "missing.db"), "relative": "sqlite:shop.db", "nonsense": "oracle://ann:geheimnis@h/d",
		}
		want := map[string]string{"silent-pg": "no connection could be made", "silent-my": "the server did not answer within 2s", "refusing-pg": "connection refused", "refusing-my": "connection refused",
			"missing": "there is no file", "relative": "absolute path", "nonsense": "database URL: want postgres:"}
		tries, none := store.Attempts(2), 0
		wait := store.Duration(time.Minute)
		var jobs []store.Job
		for name := range urls {
			for i := range 3 {
				jobs = append(jobs, store.Job{Name: fmt.Sprint(name, i), Retry: store.Retry{Attempts: &tries, Backoff: &wait, Jitter: &none},
					Steps: []store.Step{on(name, "", executor.Statement{Text: "SELECT 1"})}})
			}
		}
		jobs = append(jobs, store.Job{Name: "other", Steps: []store.Step{ticktest.Step("", "SELECT 1")}})
		ticktest.Apply(t, d, store.Definitions{Jobs: jobs})
		ticktest.DecideOnly(t, d)
		for _, j := range jobs {
			ticktest.RunNow(t, d, j.Name, store.Request{})
		}
		tk := withTargets(t, d, urls)
		tk.Concurrency = 1 // the silent targets would block it for 12 seconds
		began := time.Now()
		r := ticktest.Pass(t, tk)
		if t.Logf("the pass took %s", time.Since(began)); r.Succeeded != 1 || r.Waiting != len(jobs)-1 {
			t.Errorf("%+v", r)
		}
		left := 0
		for _, j := range jobs[:len(jobs)-1] {
			run := ticktest.LastRun(t, d, j.Name)
			if len(run.Tries) != 1 || run.State != store.Waiting {
				t.Errorf("%s is %s after %d attempts", j.Name, run.State, len(run.Tries))
				continue
			}
			text := run.Tries[0].Error
			target := j.Name[:len(j.Name)-1]
			if !strings.Contains(text, want[target]) || !strings.Contains(text, `"`+target+`"`) || strings.Contains(text, "geheimnis") {
				t.Errorf("%s: %s, want %s", j.Name, text, want[target])
			}
			if strings.Contains(text, "another attempt got no answer") {
				left++
			}
		}
		if left != 4 { // two of each silent target
			t.Errorf("%d attempts were spared the wait, want 4", left)
		}
	})
}

// An attempt that the host does not allow fails, with the line of the settings that would allow it.
func TestTargetNotAllowed(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		h := &executor.Host{Targets: map[string]executor.Target{"shop": {URL: func(context.Context) (string, error) { return d.URL, nil }, Owners: []string{"nobody"}}}}
		for name, c := range map[string]struct {
			host *executor.Host
			want string
		}{"none": {nil, "targets: {shop: {url_file: …}}"}, "others": {h, "targets: {shop: {url_file: …, owners: [nobody, "}} {
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: name, Steps: []store.Step{on("shop", "", executor.Statement{Text: "SELECT 1"})}}}})
			ticktest.Request(t, d, name)
			r := ticktest.Pass(t, withHost(t, d, c.host))
			if run := ticktest.LastRun(t, d, name); r.Failed != 1 || !strings.Contains(run.Error, `does not allow the target "shop"`) || !strings.Contains(run.Error, c.want) {
				t.Errorf("%s: %s, want %s", name, run.Error, c.want)
			}
		}
	})
}

// An SQLite file that belongs to another program keeps its mode. A file that is named as read-only is not written. No
// step can reach another file from one of these.
func TestTargetFile(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		path := filepath.Join(t.TempDir(), "shop.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		tk := withTargets(t, d, map[string]string{"shop": "sqlite://" + path, "read": "sqlite://" + path + "?mode=ro"})
		for i, c := range []struct{ target, sql, want string }{
			{"shop", "CREATE TABLE effects (n int)", ""},
			{"shop", "INSERT INTO effects SELECT 1 FROM pragma_journal_mode WHERE journal_mode = 'delete'", ""},
			{"read", "INSERT INTO effects VALUES (1)", "readonly"},
			{"read", "SELECT n FROM effects", ""},
			{"shop", "ATTACH '" + path + "2' AS x", "reaches another file"},
		} {
			job := fmt.Sprint("job ", i)
			st := on(c.target, "", executor.Statement{Text: c.sql})
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: job, Steps: []store.Step{st}}}})
			ticktest.Request(t, d, job)
			ticktest.Pass(t, tk)
			run := ticktest.LastRun(t, d, job)
			if (run.State == store.Succeeded) != (c.want == "") || !strings.Contains(run.Error, c.want) {
				t.Errorf("%s: %s: %s, want %q", c.sql, run.State, run.Error, c.want)
			}
			if c.target == "read" && c.want == "" && run.Tries[0].Output != `{"n": 1}` {
				t.Errorf("read %s", run.Tries[0].Output)
			}
		}
		for _, suffix := range []string{"-wal", "2"} {
			if _, err := os.Stat(path + suffix); err == nil {
				t.Errorf("there is a file %s", suffix)
			}
		}
	})
}

// A text with NUL, which not every engine can keep, reaches later steps with another character in its place, from every
// engine to every engine.
func TestNULIsTold(t *testing.T) {
	onTargets(t, func(t *testing.T, d, target *storetest.DB) {
		ask := map[string]string{"postgres": `SELECT '{"x": "a\u0000b"}'::json AS n`, "mariadb": "SELECT CONCAT('a', CHAR(0), 'b') AS n", "sqlite": "SELECT 'a' || char(0) || 'b' AS n"}[target.Engine]
		want := map[string]string{"postgres": "{\"x\":\"a\uFFFDb\"}"}[target.Engine]
		if want == "" {
			want = "a\uFFFDb"
		}
		d.Exec(t, "CREATE TABLE effects (job varchar(20), n int, told varchar(500)"+map[bool]string{true: " CHARACTER SET utf8mb4"}[d.Engine == "mariadb"]+")")
		job := "job"
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: job, Steps: []store.Step{on("shop", "ask", executor.Statement{Text: ask}), note(d, true, job, "${steps.ask.row.n}")}}}})
		ticktest.Request(t, d, job)
		ticktest.Pass(t, withTargets(t, d, map[string]string{"shop": target.URL}))
		if got := noted(t, d, job); got != "succeeded | "+want {
			t.Errorf("%q, want %q; %s", got, want, ticktest.LastRun(t, d, job).Error)
		}
	})
}
