package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick"
)

// watcher is a service that gets heartbeats. If answer is set, it is called before a signal is accepted.
type watcher struct {
	*httptest.Server
	mu      sync.Mutex
	signals []string // METHOD PATH BODY, without the id
	ids     map[string]bool
}

func newWatcher(answer http.HandlerFunc) *watcher {
	w := &watcher{ids: map[string]bool{}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if answer != nil {
			answer(rw, r)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.signals = append(w.signals, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		w.ids[r.URL.Query().Get("rid")] = true
	}))
	return w
}

func (w *watcher) got() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.signals)
}

// monitor starts a service that gets heartbeats: its URL is in $MONITOR, and each signal becomes a line of a file.
func monitor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: monitor FILE")
	}
	path := ts.MkAbs(args[0])
	ts.Check(os.WriteFile(path, nil, 0o600))
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			fmt.Fprintln(f, r.Method, r.RequestURI, string(body))
			f.Close()
		}
	}))
	ts.Defer(s.Close)
	ts.Setenv("MONITOR", s.URL)
}

// pass runs the program with a heartbeat, on a database with the given job. Without a job, the database has no tables.
func pass(t *testing.T, database, url, job string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	env := map[string]string{"HOME": t.TempDir(), "DBJOBS_DATABASE_URL": database, "DBJOBS_CONFIG": "heartbeat: " + url}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok && v != "" }
	var out, errs bytes.Buffer
	for _, first := range [][]string{{"migrate"}, {"apply", "-f", "-"}} {
		if job == "" {
			break
		}
		if code := run(t.Context(), first, strings.NewReader(job), &out, &out, lookup, nil); code != 0 {
			t.Fatal(out.String())
		}
	}
	out.Reset()
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs, lookup, nil)
	return code, out.String(), errs.String()
}

const (
	goodJob = "jobs: {good: {repeat_after: 1d, sql: SELECT 1}}"
	badJob  = "jobs: {bad: {repeat_after: 1d, sql: SELECT nothing}}"
)

// One signal says that a pass begins, and one how it ended. A job that failed is no failure of the pass. A command that
// makes no pass sends no signal.
func TestHeartbeatOfAPass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		job  string
		args []string
		code int
		want []string
	}{
		{goodJob, []string{"tick"}, 0, []string{"POST /x/start", "POST /x 2 decisions; 1 run made; 1 started: 1 succeeded, 0 failed"}},
		{badJob, []string{"tick", "--fail-on-job-error"}, 3, []string{"POST /x/start", "POST /x 2 decisions; 1 run made; 1 started: 0 succeeded, 1 failed"}},
		{"", []string{"tick"}, 4, []string{"POST /x/start", "POST /x/fail "}},
		{goodJob, []string{"tick", "--max-clock-skew", "1ms", "--database", "sqlite:/nowhere/at/all.db"}, 4, []string{"POST /x/start", "POST /x/fail "}},
		{goodJob, []string{"tick", "--dry-run"}, 0, nil},
		{goodJob, []string{"work"}, 0, nil},
		{goodJob, []string{"job", "list"}, 0, nil},
	} {
		w := newWatcher(nil)
		defer w.Close()
		code, _, stderr := pass(t, storetest.URL(t, "sqlite"), w.URL+"/x", c.job, c.args...)
		got := w.got()
		if code != c.code || len(got) != len(c.want) || len(got) > 0 && (got[0] != c.want[0] || !strings.HasPrefix(got[1], c.want[1]) || len(w.ids) != 1) {
			t.Errorf("%v ended with %d and told %q with %d ids, want %d and %q\n%s", c.args, code, got, len(w.ids), c.code, c.want, stderr)
		}
		if strings.Contains(stderr, "heartbeat") {
			t.Error(stderr)
		}
	}
}

// The pass does not wait until the start is accepted: the service accepts it only when it sees the run in the database.
func TestHeartbeatDelaysNoDecision(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t, "sqlite")
	var seen atomic.Bool
	w := newWatcher(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/start") {
			seen.Store(ends(r.Context(), url))
			time.Sleep(300 * time.Millisecond) // so that an end that does not wait for the start comes before it
		}
	})
	defer w.Close()
	if code, _, stderr := pass(t, url, w.URL+"/x", goodJob, "tick"); code != 0 || stderr != "" {
		t.Fatal(code, stderr)
	}
	if got := w.got(); !seen.Load() || len(got) < 2 || !strings.HasPrefix(got[len(got)-1], "POST /x 2 decisions") {
		t.Errorf("the run was seen: %t; told %q", seen.Load(), got)
	}
}

// ends reports whether a run of the database succeeds before the context ends.
func ends(ctx context.Context, url string) bool {
	for ctx.Err() == nil {
		if s, err := store.Open(ctx, url, store.Options{}); err == nil {
			runs, err := s.Runs(ctx, store.RunFilter{Limit: 1})
			s.Close()
			if err == nil && len(runs) == 1 && runs[0].State == store.Succeeded {
				return true
			}
		}
	}
	return false
}

// A service that hangs, refuses or redirects is a warning, in the log and in the report. Neither has the secrets of its
// URL.
func TestHeartbeatThatIsNotTold(t *testing.T) {
	t.Parallel()
	for want, answer := range map[string]http.HandlerFunc{
		"no answer within ":            func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"the answer is 404 Not Found":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"a heartbeat follows no redir": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", "/y"); w.WriteHeader(307) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWatcher(answer)
			defer w.Close()
			url := storetest.URL(t, "sqlite")
			code, stdout, stderr := pass(t, url, "{url: '"+w.URL+"/geheim/${secret:KEY}'}\nsecrets: {KEY: {value: s3cr3t-key, owners: [ann]}}", goodJob, "tick", "--json", "--budget", "20s")
			var r tick.Report
			if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil || r.Succeeded != 1 || r.UntoldSignals != 1 || !strings.Contains(r.Untold[0].Error, want) {
				t.Errorf("%d, %v, %s", code, err, stdout)
			}
			if !strings.Contains(stderr, "dbjobs: the heartbeat signal of this pass was not delivered: http://127.0.0.1:") || !strings.Contains(stderr, want) {
				t.Error(stderr)
			}
			if text := stdout + stderr; strings.Contains(text, "geheim") || strings.Contains(text, "s3cr3t") {
				t.Errorf("tells a secret: %s", text)
			}
			if !ends(t.Context(), url) {
				t.Error("the run is not on record")
			}
		})
	}
}

// The heartbeat of a tick over several databases belongs to none of them: the report of all has the signal that nobody took, and so
// has the log.
func TestHeartbeatOfSeveralDatabasesThatIsNotTold(t *testing.T) {
	t.Parallel()
	w := newWatcher(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	defer w.Close()
	const says = "the answer is 404 Not Found"
	one, other := storetest.URL(t, "sqlite"), storetest.URL(t, "sqlite")
	if code, _, stderr := pass(t, one, w.URL, goodJob, "job", "list"); code != 0 {
		t.Fatal(stderr)
	}
	code, stdout, stderr := pass(t, other, w.URL+"/geheim", goodJob, "tick", "--json", "--log-format", "json", "--database", one, "--database", other)
	var all servedAll
	if err := json.Unmarshal([]byte(stdout), &all); code != 0 || err != nil || len(all.Databases) != 2 {
		t.Fatalf("%d, %v: %s%s", code, err, stdout, stderr)
	}
	if len(all.Untold) != 1 || !strings.Contains(all.Untold[0].Error, says) || strings.Contains(stdout+stderr, "geheim") {
		t.Errorf("the report: %s", stdout)
	}
	if lines := strings.Split(strings.TrimSpace(stderr), "\n"); len(lines) != 3 || !strings.Contains(lines[2], `"level":"WARN"`) || !strings.Contains(lines[2], says) {
		t.Errorf("the log: %s", stderr)
	}
	for _, d := range all.Databases {
		if strings.Contains(string(d.Report), "untold") {
			t.Errorf("%s: %s", d.Database, d.Report)
		}
	}
}

// The address of the heartbeat may be in a file on a file server that is away, so that the beginning never comes.
func TestHeartbeatWhoseAddressCannotBeRead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		h := &heartbeat{begun: make(chan error, 1), stop: func(error) {}}
		err := (&cli{}).endHeartbeat(t.Context(), h, heartbeatPatience, "", nil)
		if err == nil || err.Error() != "no answer within 5s" {
			t.Errorf("%v: want that nothing answered", err)
		}
	})
}
