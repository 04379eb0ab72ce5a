package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// ample is a timeout that is much longer than every pass here.
const ample = 5 * time.Minute

// TestLambda: a cold invocation, a warm one that keeps the connection, and events of all kinds.
func TestLambda(t *testing.T) {
	onServers(t, func(t *testing.T, c *cloud) {
		c.ticker()
		c.dbjobs("job", "create", "other", "--sql", "SELECT 1", "--queue", "reports")
		c.dbjobs("job", "create", "start", "--sql", "SELECT 1", "--on-startup")
		f := c.function("DBJOBS_NAME=prod")
		if r := f.report(f.invoke("{}", ample)); r.Decided < 3 || r.Name != "prod" {
			t.Errorf("cold: %+v", r)
		}
		time.Sleep(time.Second)
		const bridge = `{"version":"0","id":"53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa","detail-type":"Scheduled Event","source":"aws.events",
			"time":"2026-01-05T08:00:00Z","resources":["arn:aws:events:eu-central-1:123456789012:rule/minute"],"detail":{}}`
		if r := f.report(f.invoke(bridge, ample)); r.Made < 1 || r.Succeeded < 1 {
			t.Errorf("warm: %+v", r)
		}
		if n := c.number("SELECT count(*) FROM " + c.table("runs") + " WHERE occurrence LIKE 'start:jobs:7%'"); n != 1 {
			t.Errorf("%d runs of the function's version", n)
		}
		time.Sleep(2 * time.Second)
		if r := f.report(f.invoke(`{"limit": 1}`, ample)); r.Started != 1 {
			t.Errorf("limit: %+v", r)
		}
		f.report(f.invoke("", ample))
		c.nothingLost()
		c.dbjobs("job", "run-now", "other")
		f.report(f.invoke("{}", ample)) // decides
		if r := f.report(f.invoke(`{"command": "work", "queue": "reports"}`, ample)); r.Succeeded != 1 || r.Name != "prod-work" {
			t.Errorf("work: %+v", r)
		}
		for _, event := range []string{`{"command": "migrate"}`, `{"comand": "tick"}`, `{"limit": "5"}`, `[]`, `"tick"`, `{"queue": "reports"}`} {
			if kind, message := f.refused(f.invoke(event, ample)); kind != "BadInput" || message == "" {
				t.Errorf("%s: %s: %s", event, kind, message)
			}
		}
		if kind, message := f.refused(f.deliver("short", "{}", time.Second, time.After(ample))); kind != "BadInput" || !strings.Contains(message, "raise the function's timeout") {
			t.Errorf("%s: %s", kind, message)
		}
		for i, p := range f.passes() {
			checkEmbedded(t, p)
			if cold := i == 0; p["cold"] != cold || p["function_version"] != "7" || !strings.HasPrefix(fmt.Sprint(p["request_id"]), "request-") {
				t.Errorf("pass %d: %v", i, p)
			}
		}
		if n := len(f.passes()); n != 6 {
			t.Errorf("%d lines of passes:\n%s", n, f.log)
		}
	})
}

// TestLambdaDoesNotLeak: warm invocations leave nothing behind, neither here nor on the server.
func TestLambdaDoesNotLeak(t *testing.T) {
	c := onPostgres(t)
	c.ticker()
	const name = "a-function"
	// Garbage is collected at once, so that only memory in use remains.
	f := c.function("DBJOBS_DATABASE_URL="+c.url+"&application_name="+name, "GOGC=5")
	type use struct{ files, threads, memory, backends int }
	measure := func() use {
		f.report(f.invoke("{}", ample))
		dir := filepath.Join("/proc", strconv.Itoa(f.cmd.Process.Pid))
		files, err := os.ReadDir(filepath.Join(dir, "fd"))
		if err != nil {
			storetest.Skip(t, "no /proc to look into: %v", err)
		}
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			t.Fatal(err)
		}
		var threads, memory int
		for line := range strings.Lines(string(status)) {
			_, _ = fmt.Sscanf(line, "Threads: %d", &threads) // it fails for the other lines
			_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &memory)
		}
		return use{len(files), threads, memory, c.backends(name, 1)}
	}
	for range 5 {
		measure()
	}
	before := measure()
	for range 20 {
		c.dbjobs("job", "run-now", "ticker")
		measure()
	}
	after := measure()
	t.Logf("after 6 invocations: %+v; after 27: %+v", before, after)
	if after.files > before.files || after.backends != 1 || after.threads > before.threads+4 || after.memory > before.memory+8<<10 {
		t.Errorf("after 6 invocations: %+v; after 27: %+v", before, after)
	}
	if strings.Contains(f.log.String(), "kept connection") {
		t.Errorf("a healthy connection was thrown away:\n%s", f.log)
	}
}

// slow asks for a run of the job slow, whose first delivery takes five minutes, and whose second takes none.
func (c *cloud) slow() {
	c.Helper()
	c.with(strings.NewReader(`jobs:
  slow: {sql: "SELECT pg_sleep(CASE WHEN $1::int = 1 THEN 300 ELSE 0 END)", args: ["${fence}"]}
`), "apply", "-f", "-")
	c.dbjobs("job", "run-now", "slow")
}

// TestLambdaCutByTheDeadline: the runs that execute are cut in good time, the answer says so, and the next invocation
// goes on.
func TestLambdaCutByTheDeadline(t *testing.T) {
	c := onPostgres(t)
	c.ticker()
	c.slow()
	f := c.function("DBJOBS_MARGIN=10s")                                                   // a busy machine may need seconds from the end of the budget to the answer
	if r := f.report(f.invoke("{}", 30*time.Second)); r.CutShort == "" || r.Started == 0 { // a tenth of the rest is for returning the run
		t.Errorf("%+v", r)
	}
	f.report(f.invoke("{}", ample))
	f.report(f.invoke("{}", ample))
	if state := c.text("SELECT r.state FROM dbjobs.runs r JOIN dbjobs.jobs j ON j.id = r.job_id WHERE j.name = 'slow'"); state != store.Succeeded {
		t.Errorf("the run that was cut is %s:\n%s", state, f.log)
	}
	c.nothingLost()
}

// TestLambdaStubborn: a job that cannot be stopped does not delay the answer.
func TestLambdaStubborn(t *testing.T) {
	c := onPostgres(t)
	c.with(strings.NewReader(`jobs:
  stubborn:
    sql:
      - DO $$ BEGIN
          LOOP
            BEGIN PERFORM pg_sleep(300); EXCEPTION WHEN query_canceled THEN NULL; END;
          END LOOP;
        END $$
`), "apply", "-f", "-")
	c.dbjobs("job", "run-now", "stubborn")
	f := c.function("DBJOBS_MARGIN=8s") // half of it is for the answer
	if kind, message := f.refused(f.invoke("{}", 14*time.Second)); kind != "PassFailed" || !strings.Contains(message, "did not end") {
		t.Errorf("%s: %s", kind, message)
	}
}

// TestLambdaRetriedEvent: Lambda delivers an asynchronous event again, under the same id.
func TestLambdaRetriedEvent(t *testing.T) {
	c := onPostgres(t)
	c.ticker()
	f, g := c.function(), c.function()
	f.report(f.invokeAs("one", "{}", ample))
	time.Sleep(2 * time.Second)
	var both sync.WaitGroup
	for _, instance := range []*aFunction{f, g} {
		both.Go(func() {
			for range 3 {
				if a := instance.invokeAs("one", "{}", ample); a.failed || a.killed {
					t.Errorf("answered %+v", a)
				}
			}
		})
	}
	both.Wait()
	f.report(f.invokeAs("one", "{}", ample))
	c.nothingLost() // a second run would have failed on the key of effects
	if n := c.number("SELECT count(*) FROM dbjobs.runs WHERE state <> 'succeeded'"); n != 0 {
		t.Errorf("%d runs did not succeed", n)
	}
}

// TestLambdaBrokenDatabase: a problem that a retry can solve is an error. The error hides the password, and the
// instance goes on.
func TestLambdaBrokenDatabase(t *testing.T) {
	onServers(t, func(t *testing.T, c *cloud) {
		c.ticker()
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		wrong := *u
		wrong.User = url.UserPassword(u.User.Username(), "geheim")
		f := c.function("DBJOBS_DATABASE_URL=" + wrong.String())
		if kind, message := f.refused(f.invoke("{}", ample)); kind != "Unreachable" || strings.Contains(message, "geheim") {
			t.Errorf("%s: %s", kind, message)
		}
		p := newProxy(t, u.Host)
		u.Host = p.address
		f = c.function("DBJOBS_DATABASE_URL=" + u.String())
		p.refuse(true)
		if kind, message := f.refused(f.invoke("{}", ample)); kind != "Unreachable" || message == "" {
			t.Errorf("%s: %s", kind, message)
		}
		if p := f.passes(); len(p) != 1 || p[0]["errors"] != 1.0 || p[0]["level"] != "ERROR" || p[0]["error"] == "" {
			t.Errorf("%v", p)
		}
		p.refuse(false)
		f.report(f.invoke("{}", ample))

		for _, fault := range []func(){func() { p.drop() }, p.silence} { // the kept connection dies, with and without a message
			fault()
			f.report(f.invoke("{}", ample))
		}
		if !strings.Contains(f.log.String(), "the kept connection is dead") {
			t.Errorf("nothing was noticed:\n%s", f.log)
		}
		time.Sleep(1500 * time.Millisecond) // until something is due
		f.report(f.invoke("{}", ample))
		c.nothingLost()
	})
}

// TestLambdaLeavesAServerThatTakesNoWrites: a server that has become a standby goes on answering on the kept connection. Its
// refusal ends the use of that connection, because a new one may lead to the server that takes writes.
func TestLambdaLeavesAServerThatTakesNoWrites(t *testing.T) {
	c := onPostgres(t)
	c.ticker()
	setting := "ALTER DATABASE " + pgx.Identifier{c.text("SELECT current_database()")}.Sanitize()
	c.exec(setting + " SET default_transaction_read_only = on") // for the sessions that begin from now on
	f := c.function()
	if kind, message := f.refused(f.invoke("{}", ample)); kind != "Unreachable" || !strings.Contains(message, "not writable") {
		t.Errorf("%s: %s", kind, message)
	}
	c.exec(setting + " RESET default_transaction_read_only")
	f.report(f.invoke("{}", ample))
	time.Sleep(1500 * time.Millisecond) // until something is due
	f.report(f.invoke("{}", ample))
	c.nothingLost()
}

// TestLambdaSecret: the password comes from the extension, which is not ready at once.
func TestLambdaSecret(t *testing.T) {
	onServers(t, func(t *testing.T, c *cloud) {
		c.ticker()
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		password, _ := u.User.Password()
		held, err := json.Marshal(map[string]string{"username": u.User.Username(), "password": password})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		asked := 0
		extension := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			switch {
			case r.Header.Get("X-Aws-Parameters-Secrets-Token") != "sitzung" || r.URL.Path != "/secretsmanager/get" || r.FormValue("secretId") != "arn:jobs":
				http.Error(w, "forbidden", http.StatusForbidden)
			case asked < 3:
				http.Error(w, "not ready to serve traffic, please wait", http.StatusBadRequest)
			default:
				_ = json.NewEncoder(w).Encode(map[string]string{"ARN": "arn:jobs", "SecretString": string(held)}) // the function notices that the rest is missing
			}
		}))
		defer extension.Close()
		u.User = nil
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(extension.URL, "http://"))
		f := c.function("DBJOBS_DATABASE_URL="+u.String(), "DBJOBS_DATABASE_SECRET_ARN=arn:jobs", "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT="+port)
		f.report(f.invoke("{}", ample))
		if asked != 3 {
			t.Errorf("asked %d times", asked)
		}
		f = c.function("DBJOBS_DATABASE_URL="+u.String(), "DBJOBS_DATABASE_SECRET_ARN=arn:other", "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT="+port)
		if _, message := f.refused(f.invoke("{}", ample)); !strings.Contains(message, "arn:other") || !strings.Contains(message, "GetSecretValue") {
			t.Error(message)
		}
	})
}

// TestLambdaWantsAURL: a function has no file that would persist.
func TestLambdaWantsAURL(t *testing.T) {
	t.Parallel()
	f := startFunction(t)
	if kind, message := f.refused(f.invoke("{}", ample)); kind != "BadInput" || !strings.Contains(message, "DBJOBS_DATABASE_URL") {
		t.Errorf("%s: %s", kind, message)
	}
}

// TestLambdaZipIsReproducible: two builds from the same commit are the same bytes.
func TestLambdaZipIsReproducible(t *testing.T) {
	t.Parallel()
	built(t)
	unpacked, err := bootstrap()
	if err != nil {
		t.Fatal(err)
	}
	again, out, err := makeZip(t.TempDir())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(strings.TrimSpace(string(out[bytes.LastIndexByte(bytes.TrimSpace(out), '\n')+1:])))
	var archives [2][]byte
	for i, archive := range []string{filepath.Join(filepath.Dir(unpacked), "lambda.zip"), again} {
		if archives[i], err = os.ReadFile(archive); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two builds differ")
	}
	dir := t.TempDir()
	z, err := zip.NewReader(bytes.NewReader(archives[0]), int64(len(archives[0])))
	if err == nil {
		err = os.CopyFS(dir, z)
	}
	if err != nil {
		t.Fatal(err)
	}
	checkLicences(t, filepath.Join(dir, "LICENSES"), filepath.Join(dir, "bootstrap"))
}
