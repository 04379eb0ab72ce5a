package main

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// deaf is a connection to a server that stops forwarding when a client sends a text with a certain word. It stops in
// both directions, and also for new connections. Nothing is closed, so neither side learns of it.
type deaf struct {
	server, word string
	mu           sync.Mutex
	isDeaf       bool
	since        func() // called once; nil: nothing
	closes       bool   // it closes each connection with that text instead, and no other, as a server that is killed
}

func (d *deaf) hears(text []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if (d.closes || !d.isDeaf) && bytes.Contains(text, []byte(d.word)) {
		if d.isDeaf = true; d.since != nil {
			d.since()
		}
		return false
	}
	return !d.isDeaf || d.closes
}

func (d *deaf) serve(t *testing.T, l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { client.Close() })
		server, err := net.Dial("tcp", d.server)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { server.Close() })
		forward := func(to io.Writer, from io.Reader) {
			if d.closes {
				defer func() { client.Close(); server.Close() }()
			}
			b := make([]byte, 64<<10)
			for {
				n, err := from.Read(b)
				heard := d.hears(b[:n])
				if err != nil || heard && !written(to, b[:n]) || !heard && d.closes {
					return
				}
			}
		}
		go forward(server, client)
		go forward(client, server)
	}
}

// before serves in front of the server of a URL, and returns the URL by which it is reached.
func (d *deaf) before(t *testing.T, direct string) string {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	d.server, u.Host = u.Host, l.Addr().String()
	go d.serve(t, l)
	return u.String()
}

func written(to io.Writer, b []byte) bool {
	_, err := to.Write(b)
	return err == nil
}

// TestALockedFileKeepsNoTick: a budget is shorter than the time for which SQLite waits. It ends a tick that waits for
// another process. That is no failure: the next tick does the work.
func TestALockedFileKeepsNoTick(t *testing.T) {
	t.Parallel()
	const budget = 3 * time.Second
	home := t.TempDir()
	path := filepath.Join(home, "jobs.db")
	dbjobs := func(args ...string) (code int, stderr string) {
		t.Helper()
		return invoke(t.Context(), t, home, nil, io.Discard, append(args, "--database", "sqlite:"+path)...)
	}
	for _, args := range [][]string{{"migrate"}, {"job", "create", "a", "--sql", "SELECT 1"}, {"job", "run-now", "a"}} {
		if code, stderr := dbjobs(args...); code != exitDone {
			t.Fatalf("%q: code %d, said %q", args, code, stderr)
		}
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	ctx, cancel := context.WithTimeout(t.Context(), 9500*time.Millisecond) // SQLite waits for ten seconds
	defer cancel()
	var stdout strings.Builder
	code, stderr := invoke(ctx, t, home, nil, &stdout, "tick", "--budget", budget.String(), "--database", "sqlite:"+path)
	if ctx.Err() != nil {
		t.Error("the tick did not end by itself")
	}
	if code != exitDone || stderr != "" || !strings.Contains(stdout.String(), "cut short: a step of a job, or another process, writes to the database file") {
		t.Errorf("code %d, said %q, printed %q", code, stderr, &stdout)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if code, stderr := dbjobs("tick", "--budget", "1m", "--fail-on-job-error"); code != exitDone || stderr != "" {
		t.Errorf("when the lock is free: code %d, said %q", code, stderr)
	}
	var runs int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM dbjobs_runs WHERE state = 'succeeded' AND fence = 1").Scan(&runs); err != nil || runs != 1 {
		t.Errorf("%d runs: %v", runs, err)
	}
}

// TestAServerThatDoesNotAnswerKeepsNoPass: the server stops answering at any point of a pass. A pass with a budget
// ends.
func TestAServerThatDoesNotAnswerKeepsNoPass(t *testing.T) {
	t.Parallel()
	const budget = 3 * time.Second
	for _, engine := range storetest.Engines(t) {
		if engine == "sqlite" {
			continue
		}
		for when, word := range map[string]string{
			"connecting":           "",
			"probing":              "installation",
			"deciding":             "SKIP LOCKED",
			"committing":           map[string]string{"postgres": "commit\x00", "mariadb": "\x03COMMIT"}[storetest.Dialect(engine)],
			"executing":            "nobody hears this",
			"executing atomically": "nobody hears that",
			"ending a step":        "rows_affected",
			"recording":            "passes = passes",
		} {
			t.Run(engine+"/"+when, func(t *testing.T) {
				t.Parallel()
				direct := storetest.Open(t, engine, store.Options{}).URL
				home := t.TempDir()
				dbjobs := func(args ...string) {
					t.Helper()
					if code, stderr := invoke(t.Context(), t, home, nil, io.Discard, append(args, "--database", direct)...); code != exitDone {
						t.Fatalf("%q: code %d, said %q", args, code, stderr)
					}
				}
				dbjobs("job", "create", "one", "--sql", "SELECT 'nobody hears this'")
				dbjobs("job", "create", "two", "--atomic", "--sql", "SELECT 'nobody hears that'")
				dbjobs("tick")
				dbjobs("job", "run-now", "one")
				dbjobs("job", "run-now", "two")

				for _, budget := range []time.Duration{budget, 10 * budget} { // a slow machine may use up the first before the server is deaf
					d := &deaf{word: word}
					through := d.before(t, direct)
					ctx, cancel := context.WithTimeout(t.Context(), 4*budget)
					defer cancel()
					began := time.Now()
					code, stderr := invoke(ctx, t, home, nil, io.Discard, "tick", "--budget", budget.String(), "--database", through)
					t.Logf("%v of %v: code %d, said %q", time.Since(began).Round(10*time.Millisecond), budget, code, stderr)
					if ctx.Err() != nil || code == exitInterrupted {
						t.Errorf("it did not end by itself")
					}
					if (when == "connecting" || when == "probing") && (code != exitDatabase || !strings.Contains(stderr, "out of reach")) {
						t.Errorf("code %d, said %q", code, stderr)
					}
					if !d.hears(nil) {
						return
					}
				}
				t.Error("the server heard everything")
			})
		}
	}
}

// TestASilentServerKeepsNoStoppedPass: the server stops answering, and then the pass has to stop, without a budget. The pass
// ends soon, names the runs that it leaves, and the next delivery of each comes when its lease has ended.
func TestASilentServerKeepsNoStoppedPass(t *testing.T) {
	t.Parallel()
	const late = time.Minute // several times what it takes, and less than the tries to record one end take without an answer
	for _, engine := range storetest.Engines(t) {
		if engine == "sqlite" {
			continue
		}
		for when, word := range map[string]string{
			"connecting": "", "deciding": "SKIP LOCKED", "executing": "nobody hears this", "ending a step": "rows_affected", "recording": "passes = passes",
		} {
			t.Run(engine+"/"+when, func(t *testing.T) {
				t.Parallel()
				db, home := storetest.Open(t, engine, store.Options{}), t.TempDir()
				dbjobs := func(args ...string) {
					t.Helper()
					if code, stderr := invoke(t.Context(), t, home, nil, io.Discard, append(args, "--database", db.URL)...); code != exitDone {
						t.Fatalf("%q: code %d, said %q", args, code, stderr)
					}
				}
				dbjobs("job", "create", "one", "--sql", "SELECT 'nobody hears this'")
				dbjobs("tick")
				dbjobs("job", "run-now", "one")

				stopped, stop := context.WithCancel(t.Context())
				defer stop()
				d := &deaf{word: word, since: stop}
				through, ended := d.before(t, db.URL), make(chan struct{})
				go func() {
					defer close(ended)
					code, stderr := invoke(stopped, t, home, nil, io.Discard, "tick", "--grace", "100ms", "--database", through)
					held := db.Int(t, "SELECT count(*) FROM "+db.Table("runs")+" WHERE state = 'running'")
					if names := strings.Count(stderr, "shows as running until its lease ends"); when != "recording" && code != exitInterrupted || names != held {
						t.Errorf("code %d, %d runs are still running, and it said %q", code, held, stderr)
					}
				}()
				select {
				case <-ended:
				case <-time.After(late):
					t.Error("it goes on")
					<-ended
				}
			})
		}
	}
}

// TestAServerThatIsKilledIsNamed: the server is killed at each try while it works for a pass. All that the driver knows is that
// nothing more came. The error says that the connection was lost.
func TestAServerThatIsKilledIsNamed(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		if engine == "sqlite" {
			continue
		}
		db, home := storetest.Open(t, engine, store.Options{}), t.TempDir()
		for _, args := range [][]string{{"job", "create", "one", "--sql", "SELECT 1"}, {"job", "run-now", "one"}} {
			if code, stderr := invoke(t.Context(), t, home, nil, io.Discard, append(args, "--database", db.URL)...); code != exitDone {
				t.Fatalf("%q: code %d, said %q", args, code, stderr)
			}
		}
		for when, word := range map[string]string{"probing": "installation", "deciding": "SKIP LOCKED"} {
			d := &deaf{word: word, closes: true}
			code, stderr := invoke(t.Context(), t, home, nil, io.Discard, "tick", "--database", d.before(t, db.URL))
			if code != exitDatabase || !strings.Contains(stderr, "database out of reach: the connection to the server was lost") {
				t.Errorf("%s, %s: code %d, said %q", engine, when, code, stderr)
			}
		}
	}
}
