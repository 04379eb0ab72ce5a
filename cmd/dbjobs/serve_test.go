package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// TestServeAnswers: the answer to each request, from callers that may call and from others.
func TestServeAnswers(t *testing.T) {
	t.Parallel()
	srv := startServer(t, `jobs:
  due: {rule: every 1s, sql: SELECT 1}
  reports: {queue: reports, sql: SELECT 1}
  wrong: {sql: SELECT nothing FROM nowhere}
`, "DBJOBS_NAME=prod", "K_SERVICE=jobs", "K_REVISION=jobs-00001")
	for _, job := range []string{"reports", "wrong"} {
		if _, err := srv.s.RunNow(t.Context(), job, store.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	if a := srv.post("/tick"); a.status != http.StatusOK || a.Name != "prod" || a.Failed != 1 || a.Started < 1 {
		t.Errorf("tick: %d: %s", a.status, a.body)
	}
	if a := srv.post("/work?queue=reports&limit=5"); a.status != http.StatusOK || a.Name != "prod-work" || a.Succeeded != 1 {
		t.Errorf("work: %d: %s", a.status, a.body)
	}
	bearer := "Bearer " + itsToken
	for _, c := range []struct {
		method, path, authorization string
		want                        int
		says                        string
	}{
		{http.MethodPost, "/tick?limit=1", "Bearer an-older-token-of-ours", http.StatusOK, `"name": "prod"`},
		{http.MethodPost, "/tick", "", http.StatusUnauthorized, `"kind":"Refused"`},
		{http.MethodPost, "/tick", "Bearer another-token-that-somebody-guessed", http.StatusUnauthorized, `"kind":"Refused"`},
		{http.MethodPost, "/work", "Basic " + itsToken, http.StatusUnauthorized, `"kind":"Refused"`},
		{http.MethodPost, "/work?queue=%00", bearer, http.StatusBadRequest, "which no queue can have as its name"},
		{http.MethodPost, "/tick?limit=five", bearer, http.StatusBadRequest, "want a number"},
		{http.MethodPost, "/tick?limit=-1", bearer, http.StatusBadRequest, "want a number"},
		{http.MethodPost, "/tick?limit=1&limit=2", bearer, http.StatusBadRequest, "one value"},
		{http.MethodPost, "/tick?limit=1;limit=2", bearer, http.StatusBadRequest, "cannot be read"},
		{http.MethodPost, "/tick?limit=1&%zz", bearer, http.StatusBadRequest, "cannot be read"},
		{http.MethodPost, "/work?queue=%22", bearer, http.StatusOK, `"name": "prod-work"`},
		{http.MethodPost, "/tick?queue=reports", bearer, http.StatusBadRequest, "no parameter"},
		{http.MethodPost, "/work?qeueu=reports", bearer, http.StatusBadRequest, "it has limit and queue"},
		{http.MethodPost, "/tick?limt=1", "", http.StatusUnauthorized, "Refused"},
		{http.MethodGet, "/tick", bearer, http.StatusMethodNotAllowed, `{"kind":"BadInput","error":"/tick takes POST, not GET"}`},
		{http.MethodDelete, "/healthz", "", http.StatusMethodNotAllowed, `{"kind":"BadInput","error":"/healthz takes GET, not DELETE"}`},
		{http.MethodPost, "/migrate", bearer, http.StatusNotFound, `{"kind":"BadInput","error":"no such path; there are POST /tick, POST /work and GET /healthz"}`},
		{http.MethodPost, "/", bearer, http.StatusNotFound, `{"kind":"BadInput"`},
		{http.MethodPost, "/tick/", bearer, http.StatusNotFound, `{"kind":"BadInput"`},
		{http.MethodPost, "//tick", bearer, http.StatusNotFound, `{"kind":"BadInput"`},
		{http.MethodPost, "/x/../tick?limit=1", bearer, http.StatusNotFound, `{"kind":"BadInput"`},
		{http.MethodGet, "/healthz", "", http.StatusOK, "ok"},
	} {
		a, err := srv.ask(t.Context(), c.method, c.path, "Authorization", c.authorization)
		if err == nil && (a.status != c.want || !strings.Contains(a.body, c.says) || strings.Contains(a.body, itsToken)) {
			err = fmt.Errorf("%d: %s; want %d, %q", a.status, a.body, c.want, c.says)
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.method, c.path, err)
		}
		if a.status == http.StatusUnauthorized && a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: %v", c.path, a.header)
		}
	}
	if n := strings.Count(srv.log.String(), "was refused"); n != 1 {
		t.Errorf("%d lines about callers that were refused; want one, not a line for each:\n%s", n, srv.log)
	}
	if code := srv.end(); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, srv.log)
	}
}

// TestServeWritesMetricsOfEachCommand: a worker's pass leaves the figures of the ticks.
func TestServeWritesMetricsOfEachCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := startServer(t, "jobs:\n  a: {sql: SELECT 1}\n", "DBJOBS_METRICS="+filepath.Join(dir, "${name}.prom"))
	for _, path := range []string{"/tick", "/work"} {
		if a := srv.post(path); a.status != http.StatusOK {
			t.Fatalf("%s: %d: %s", path, a.status, a.body)
		}
	}
	for _, name := range []string{"tick", "work"} {
		if got := readProm(t, filepath.Join(dir, name+".prom")); got["dbjobs_pass_timestamp_seconds"] == 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestServeReadsNoBodyOfStrangers: somebody who may not call is refused before the body has come, so that many of them cannot
// fill the memory. A body that is too long is refused.
func TestServeReadsNoBodyOfStrangers(t *testing.T) {
	t.Parallel()
	const signed = "webhook-id: a\r\nwebhook-timestamp: 1\r\nwebhook-signature: v1,abc\r\n"
	srv := startServer(t, "jobs:\n  a: {sql: SELECT 1}\n", "DBJOBS_SERVE_WEBHOOK_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	for _, c := range []struct {
		name, header string
		length, sent int
		want         int
	}{
		{"no credential", "", mostBody, 0, http.StatusUnauthorized},
		{"a wrong token", "Authorization: Bearer another-token-that-somebody-guessed\r\n", mostBody, 0, http.StatusUnauthorized},
		{"a wrong signature", signed, 2, 2, http.StatusUnauthorized},
		{"signed, but long", signed, mostSigned + 1, mostSigned + 1, http.StatusRequestEntityTooLarge},
		{"allowed, but long", authorised, mostBody + 1, mostBody + 1, http.StatusRequestEntityTooLarge},
		{"allowed", authorised, mostSigned + 1, mostSigned + 1, http.StatusOK},
	} {
		conn := srv.open(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", c.header, c.length, strings.Repeat("x", c.sent)))
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			a.Body.Close()
			if a.StatusCode != c.want {
				err = fmt.Errorf("%d, want %d", a.StatusCode, c.want)
			}
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		conn.Close()
	}
}

// TestServeManyAtOnce: 200 requests come at once. No two passes run at the same time. A pass that began after a request
// came answers it, so all jobs that were due when it came have been decided.
func TestServeManyAtOnce(t *testing.T) {
	t.Parallel()
	srv := startServer(t, "jobs:\n  due: {rule: every 1s, sql: SELECT 1}\n", "DBJOBS_LOG_FORMAT=json")
	answers := make([]response, 200)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = srv.ask(t.Context(), http.MethodPost, "/tick", "Authorization", "Bearer "+itsToken); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	all.Wait()
	answered := map[time.Time]int{}
	for i, a := range answers {
		answered[a.StartedAt]++
		// The clock of the answer has milliseconds.
		if a.status != http.StatusOK || a.StartedAt.Before(a.sent.Truncate(time.Millisecond)) {
			t.Errorf("request %d was sent at %s and got %d, of a pass at %s: %s", i, a.sent, a.status, a.StartedAt, a.body)
		}
	}
	var end time.Time
	passes := 0
	for line := range strings.Lines(srv.log.String()) {
		var p struct {
			Time    time.Time `json:"time"`
			Message string    `json:"msg"`
			Seconds float64   `json:"duration_seconds"`
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil || p.Message != "pass" {
			continue
		}
		passes++
		if begin := p.Time.Add(-time.Duration(p.Seconds * float64(time.Second))); begin.Before(end) {
			t.Errorf("a pass began at %s, and the one before ended at %s", begin, end)
		}
		end = p.Time
	}
	if passes != len(answered) || passes > len(answers)/2 {
		t.Errorf("%d passes for 200 requests at once; the answers are of %d", passes, len(answered))
	}
}

// slow is a job that reports that it has begun, and ends when it may.
const slow = `jobs:
  slow: {shell: "touch DIR/begun; while [ ! -e DIR/may-end ]; do sleep 0.02; done"}
`

// begin starts a pass that runs the slow job, by a request that ends with ctx.
func (srv *aServer) begin(ctx context.Context) <-chan response {
	srv.Helper()
	if _, err := srv.s.RunNow(srv.Context(), "slow", store.Request{}); err != nil {
		srv.Fatal(err)
	}
	answered := make(chan response, 1)
	go func() {
		a, err := srv.ask(ctx, http.MethodPost, "/tick", "Authorization", "Bearer "+itsToken)
		if err != nil {
			a.body = err.Error()
		}
		answered <- a
	}()
	until(srv.T, "the job runs", func() bool { return srv.made("begun") })
	return answered
}

func (srv *aServer) made(file string) bool {
	_, err := os.Stat(filepath.Join(srv.cmd.Dir, file))
	return err == nil
}

func (srv *aServer) release() {
	srv.Helper()
	if err := os.WriteFile(filepath.Join(srv.cmd.Dir, "may-end"), nil, 0o600); err != nil {
		srv.Fatal(err)
	}
}

// latest returns the state of the slow job's latest run.
func (srv *aServer) latest() string {
	srv.Helper()
	runs, err := srv.s.Runs(srv.Context(), store.RunFilter{Job: "slow", Limit: 1})
	if err != nil || len(runs) != 1 {
		srv.Fatalf("%v: %v", runs, err)
	}
	return runs[0].State
}

// TestServeWhoseCallerHasGone: when the caller has gone, the pass goes on, and the next request is answered.
func TestServeWhoseCallerHasGone(t *testing.T) {
	t.Parallel()
	srv := startServer(t, slow)
	ctx, gone := context.WithCancel(t.Context())
	answered := srv.begin(ctx)
	gone()
	if a := <-answered; a.status != 0 {
		t.Fatalf("answered: %+v", a)
	}
	srv.release()
	if a := srv.post("/tick"); a.status != http.StatusOK {
		t.Errorf("%d: %s", a.status, a.body)
	}
	if state := srv.latest(); state != "succeeded" {
		t.Errorf("the run is %s:\n%s", state, srv.log)
	}
}

// TestServeWhoseCallerSendsNoMore: a caller that has closed only its own side looks like one that has gone. It gets no 200 for a
// pass that has not ended.
func TestServeWhoseCallerSendsNoMore(t *testing.T) {
	t.Parallel()
	srv := startServer(t, slow)
	conn := srv.open(authorised + "Content-Length: 0\r\n\r\n")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || len(answer) > 0 {
		t.Errorf("%v: %s", err, answer)
	}
}

// TestServeBusy: a request whose time ends before its pass can begin gets 429.
func TestServeBusy(t *testing.T) {
	t.Parallel()
	for range 10 {
		srv := startServer(t, slow, "DBJOBS_REQUEST_TIMEOUT=3s", "DBJOBS_MARGIN=500ms")
		first := srv.begin(t.Context())
		second := srv.post("/tick")
		// The first pass is stopped at the end of its budget. The rest of the time may or may not be enough to return the run, or
		// to record the pass.
		late := func(a response) bool {
			return a.status == http.StatusInternalServerError && strings.Contains(a.body, "within the budget") ||
				a.status == http.StatusServiceUnavailable && (strings.Contains(a.body, "record the pass") || strings.Contains(a.body, "record tick")) ||
				a.status >= http.StatusInternalServerError && strings.Contains(a.body, "shows as running until its lease ends")
		}
		a := <-first
		given := a.status == http.StatusOK && strings.Contains(a.body, `"cut_short": "the budget was used up`) && strings.Contains(a.body, `"waiting": 1`)
		if !given && !late(a) {
			t.Errorf("the first one: %d: %s", a.status, a.body)
		}
		if a := srv.post("/work"); a.status != http.StatusOK && !late(a) { // it got its turn, so the server was not busy
			t.Errorf("a worker beside it: %d: %s", a.status, a.body)
		}
		if second.status == http.StatusOK || late(second) {
			continue // the machine is slow: the second request came when the first one had little time left, and got its turn
		}
		if second.status != http.StatusTooManyRequests || second.header.Get("Retry-After") == "" || !strings.Contains(second.body, `"kind":"Busy"`) {
			t.Errorf("%d: %v: %s", second.status, second.header, second.body)
		}
		return
	}
	t.Error("each request got its turn")
}

// TestServeEnds: after SIGTERM the run that executes may end, the request that waits gets 503, and the
// process exits with 0.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	srv := startServer(t, slow)
	first := srv.begin(t.Context())
	// When a server ends, it drops the requests that it has not begun to read, without an answer. The status 100 shows
	// that it reads a body.
	waiting, read := make(chan response), make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: sync.OnceFunc(func() { close(read) })})
	go func() {
		a, err := srv.ask(ctx, http.MethodPost, "/tick", "Authorization", "Bearer "+itsToken, "Expect", "100-continue")
		if err != nil {
			a.body = err.Error()
		}
		waiting <- a
	}()
	<-read
	if err := srv.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "it takes no more requests", func() bool { _, err := srv.ask(t.Context(), http.MethodGet, "/healthz"); return err != nil })
	srv.release()
	if a := <-first; a.status != http.StatusServiceUnavailable && a.status != http.StatusOK {
		t.Errorf("%d: %s", a.status, a.body)
	}
	if a := <-waiting; a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "Ending") {
		t.Errorf("the one that waited: %d: %s", a.status, a.body)
	}
	<-srv.gone
	if code := srv.cmd.ProcessState.ExitCode(); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, srv.log)
	}
	if state := srv.latest(); state != "succeeded" {
		t.Errorf("the run is %s:\n%s", state, srv.log)
	}
}

// TestServeEndsInTime: after SIGTERM, a run that does not end within DBJOBS_GRACE is ended, and so is the process. The answer,
// the log and the record of the pass say that it was interrupted.
func TestServeEndsInTime(t *testing.T) {
	t.Parallel()
	srv := startServer(t, slow, "DBJOBS_GRACE=200ms", "DBJOBS_LOG_FORMAT=json")
	first := srv.begin(t.Context())
	if code := srv.end(); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, srv.log)
	}
	if a := <-first; a.status != http.StatusServiceUnavailable || a.body != `{"kind":"Ending","error":"interrupted"}`+"\n" || a.header.Get("Retry-After") != "1" {
		t.Errorf("%d: %v: %s", a.status, a.header, a.body)
	}
	if log := srv.log.String(); !strings.Contains(log, `"error":"interrupted"`) || strings.Contains(log, "context canceled") {
		t.Errorf("the log says of the pass:\n%s", log)
	}
	if passes, err := srv.s.Triggers(t.Context()); err != nil || len(passes) != 1 || passes[0].Error != "interrupted: the process was asked to end" {
		t.Errorf("the record of the pass: %+v, %v", passes, err)
	}
	if state := srv.latest(); state == "running" || state == "succeeded" {
		t.Errorf("the run is %s:\n%s", state, srv.log)
	}
}

// TestServeEndsBesideABody: a caller that does not send the rest of its body is not waited for.
func TestServeEndsBesideABody(t *testing.T) {
	t.Parallel()
	srv := startServer(t, slow)
	in := bufio.NewReader(srv.open(authorised + "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"))
	for range 2 { // 100 Continue shows that it reads the body
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if code := srv.end(); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, srv.log)
	}
	if rest, err := io.ReadAll(in); err != nil || !strings.Contains(string(rest), "503") || !strings.Contains(string(rest), "Ending") {
		t.Errorf("%v: %s", err, rest)
	}
}

// TestServeWithoutItsDatabase: if the database is not there, the answer is 503, and the same process serves when the
// database is back.
func TestServeWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	srv := startServer(t, "jobs:\n  due: {rule: every 1s, sql: SELECT 1}\n")
	file := filepath.Join(srv.cmd.Dir, "jobs.db")
	srv.s.Close()
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	if a := srv.post("/tick"); a.status == http.StatusOK || a.status < 500 {
		t.Errorf("no database: %d: %s", a.status, a.body)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	if a := srv.post("/tick"); a.status != http.StatusOK {
		t.Errorf("it is back: %d: %s", a.status, a.body)
	}
}
