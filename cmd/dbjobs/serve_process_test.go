package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// aServer is a process of dbjobs serve, with its own database.
type aServer struct {
	*testing.T
	cmd  *exec.Cmd
	url  string
	log  logFile
	s    *store.Store
	gone chan struct{}
}

const itsToken = "a-token-that-nobody-guesses"

// startServer starts the program on an embedded database with the jobs. In them, DIR is the working folder of the
// program. What begins with -- in env is a flag.
func startServer(t *testing.T, jobs string, env ...string) *aServer {
	t.Helper()
	dir := t.TempDir()
	database := "sqlite:" + filepath.Join(dir, "jobs.db")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	srv := &aServer{T: t, log: logFile{log}, gone: make(chan struct{})}
	var talk bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	for _, args := range [][]string{{"migrate"}, {"apply", "-f", "-"}} {
		if code := run(t.Context(), append(args, "--database", database), strings.NewReader(strings.ReplaceAll(jobs, "DIR", dir)), &talk, &talk, none, nil); code != exitDone {
			t.Fatalf("%q: code %d: %s", args, code, &talk)
		}
	}
	if srv.s, err = store.Open(t.Context(), database, store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.s.Close() })
	srv.cmd = exec.Command(program(t), "serve", "--listen", "127.0.0.1:0")
	srv.cmd.Env = []string{"DBJOBS_DATABASE_URL=" + database, "DBJOBS_SERVE_TOKEN=an-older-token-of-ours " + itsToken, "PATH=" + os.Getenv("PATH"),
		"GORACE=" + os.Getenv("GORACE")}
	for _, given := range env {
		if strings.HasPrefix(given, "--") {
			srv.cmd.Args = append(srv.cmd.Args, given)
		} else {
			srv.cmd.Env = append(srv.cmd.Env, given)
		}
	}
	srv.cmd.Dir, srv.cmd.Stdout, srv.cmd.Stderr = dir, log, log
	if err := srv.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = srv.cmd.Wait() // ProcessState has the code
		close(srv.gone)
	}()
	t.Cleanup(func() {
		_ = srv.cmd.Process.Kill() // it may be gone
		<-srv.gone
		if text := srv.log.String(); strings.Contains(text, itsToken) {
			t.Errorf("the log has the token:\n%s", text)
		}
	})
	at := regexp.MustCompile(`listening on (http://[0-9.:]+)\b`)
	until(t, "the process listens", func() bool {
		if m := at.FindStringSubmatch(srv.log.String()); m != nil {
			srv.url = m[1]
		}
		return srv.url != ""
	})
	return srv
}

// response is the answer to a request.
type response struct {
	status int
	header http.Header
	body   string
	tick.Report
	sent time.Time
}

func (srv *aServer) ask(ctx context.Context, method, path string, header ...string) (response, error) {
	r, err := http.NewRequestWithContext(ctx, method, srv.url+path, strings.NewReader("{}"))
	if err != nil {
		return response{}, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a := response{sent: time.Now()}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	a.status, a.header, a.body = got.StatusCode, got.Header, string(text)
	if err == nil && a.status == http.StatusOK && strings.HasPrefix(a.body, "{") {
		err = json.Unmarshal(text, &a.Report)
	}
	return a, err
}

// post sends a request as an authorised caller.
func (srv *aServer) post(path string) response {
	srv.Helper()
	a, err := srv.ask(srv.Context(), http.MethodPost, path, "Authorization", "Bearer "+itsToken)
	if err != nil {
		srv.Fatalf("%s: %v\n%s", path, err, srv.log)
	}
	return a
}

// authorised is the line of a header with which a caller is allowed.
const authorised = "Authorization: Bearer " + itsToken + "\r\n"

// open connects and sends a POST /tick by hand: rest is the other lines of its header, and what follows them.
func (srv *aServer) open(rest string) *net.TCPConn {
	srv.Helper()
	conn, err := new(net.Dialer).DialContext(srv.Context(), "tcp", strings.TrimPrefix(srv.url, "http://"))
	if err != nil {
		srv.Fatal(err)
	}
	srv.Cleanup(func() { conn.Close() })
	if _, err = io.WriteString(conn, "POST /tick HTTP/1.1\r\nHost: jobs\r\n"+rest); err != nil {
		srv.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

func (srv *aServer) end() int {
	srv.Helper()
	if err := srv.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		srv.Fatal(err)
	}
	select {
	case <-srv.gone:
	case <-time.After(time.Minute):
		srv.Fatalf("a minute after SIGTERM it is still there:\n%s", srv.log)
	}
	return srv.cmd.ProcessState.ExitCode()
}
