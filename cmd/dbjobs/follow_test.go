package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// told is the output of a command so far, for a test that reads it while the command runs.
type told struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *told) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *told) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestWaitForARun: a user who waits for a run gets its id at once, learns that no tick comes, and learns of its end. If
// he stops waiting, the run stays as it is.
func TestWaitForARun(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			environment := map[string]string{"HOME": t.TempDir(), "DBJOBS_DATABASE_URL": storetest.Open(t, engine, store.Options{}).URL}
			env := func(name string) (string, bool) { v, ok := environment[name]; return v, ok }
			dbjobs := func(ctx context.Context, stdout, stderr *told, args ...string) int {
				return run(ctx, args, strings.NewReader(""), stdout, stderr, env, nil)
			}
			must := func(args ...string) {
				t.Helper()
				var talk told
				if code := dbjobs(t.Context(), &talk, &talk, args...); code != exitDone {
					t.Fatalf("%q: %d: %s", args, code, &talk)
				}
			}
			must("job", "create", "job", "--sql", "SELECT 1")

			var id, talk told
			ended := make(chan int, 1)
			go func() { ended <- dbjobs(t.Context(), &id, &talk, "job", "run-now", "job", "--wait") }()
			until(t, "the warning that no tick comes", func() bool { return strings.Contains(talk.String(), "no dbjobs tick has ever come") })
			if len(strings.TrimSpace(id.String())) != 36 {
				t.Errorf("not the id at once: %q", id.String())
			}
			must("tick")
			if code := <-ended; code != exitDone || !strings.Contains(talk.String(), ": succeeded\n") {
				t.Errorf("%d: %s", code, &talk)
			}

			var second, more told
			ctx, interrupt := context.WithCancel(t.Context())
			go func() { ended <- dbjobs(ctx, &second, &more, "job", "run-now", "job", "--wait") }()
			until(t, "the id", func() bool { return len(strings.TrimSpace(second.String())) == 36 })
			interrupt()
			if code := <-ended; code != exitInterrupted || !strings.Contains(more.String(), "goes on; dbjobs run show ") {
				t.Errorf("%d: %s", code, &more)
			}
			s, err := store.Open(t.Context(), environment["DBJOBS_DATABASE_URL"], store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if is := state(t, s, strings.TrimSpace(second.String())); is != store.Waiting {
				t.Errorf("the run of somebody who stopped waiting is %s", is)
			}
		})
	}
}

// TestWaitAfterTheClockWasSetBack: a pass that a clock recorded while it was ahead is no sign that ticks come.
func TestWaitAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{})
			d.Clock.Add(time.Hour)
			ticktest.DecideOnly(t, d)
			d.Clock.Add(-time.Hour)
			var said bytes.Buffer
			c := newCLI(nil, io.Discard, &said, onlyHome(t.TempDir()))
			f := &follower{cli: c, s: d.Store}
			if err := f.warnNoTick(t.Context()); err != nil || !strings.Contains(said.String(), "no dbjobs tick has come since the clock of the database was set back") {
				t.Errorf("%v: %q", err, said.String())
			}
		})
	}
}

// TestWaitOnADeadConnection: a connection that is dead without a notice does not end the wait.
func TestWaitOnADeadConnection(t *testing.T) {
	onServers(t, func(t *testing.T, c *cloud) {
		p, env := c.behindProxy(t)
		c.dbjobs("job", "create", "job", "--sql", "SELECT 1")
		var id, talk told
		ended := make(chan int, 1)
		go func() {
			ended <- run(t.Context(), []string{"job", "run-now", "job", "--wait"}, strings.NewReader(""), &id, &talk, env, nil)
		}()
		until(t, "the warning that no tick comes", func() bool { return strings.Contains(talk.String(), "no dbjobs tick has ever come") })
		until(t, "it tries again", func() bool {
			p.silence() // also a connection that was just being made
			return strings.Contains(talk.String(), "trying again")
		})
		c.dbjobs("tick")
		if code := <-ended; code != exitDone {
			t.Errorf("%d: %s", code, &talk)
		}
	})
}

// TestWaitWhenTheServerGoes: the server goes as soon as the run is requested, and comes back. The user gets the id, and learns of
// the end of the run.
func TestWaitWhenTheServerGoes(t *testing.T) {
	onServers(t, func(t *testing.T, c *cloud) {
		s, err := store.Open(t.Context(), c.url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		p, env := c.behindProxy(t)
		c.dbjobs("job", "create", "job", "--sql", "SELECT 1")
		var gone atomic.Bool
		p.sent = func([]byte) {
			if runs, err := s.Runs(t.Context(), store.RunFilter{Limit: 1}); err == nil && len(runs) > 0 && !gone.Swap(true) {
				p.refuse(true)
				p.drop()
			}
		}
		var id, talk told
		ended := make(chan int, 1)
		go func() {
			ended <- run(t.Context(), []string{"job", "run-now", "job", "--wait"}, strings.NewReader(""), &id, &talk, env, nil)
		}()
		until(t, "it tries again", func() bool { return strings.Contains(talk.String(), "trying again") || len(ended) > 0 })
		p.refuse(false)
		c.dbjobs("tick")
		if code := <-ended; code != exitDone || len(strings.TrimSpace(id.String())) != 36 {
			t.Errorf("%d, %q: %s", code, &id, &talk)
		}
	})
}

// A command that waits for a run asks for its state twice a second, and for its attempts with their output only to print them at the end.
func TestWaitReadsNoAttemptsBeforeTheEnd(t *testing.T) {
	t.Parallel()
	var c storetest.Calls
	d := storetest.Open(t, "sqlite", store.Options{Wrap: c.Wrap})
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Nop("")}}}})
	ticktest.Request(t, d, "job")
	id := ticktest.LastRun(t, d, "job").ID
	for _, asJSON := range []bool{false, true} {
		c.Reset()
		f := &follower{cli: &cli{asJSON: asJSON}, s: d.Store}
		if r, err := f.read(t.Context(), id); err != nil || r.ID != id {
			t.Fatalf("%v: %+v", err, r)
		}
		for _, call := range c.All() {
			if strings.Contains(call.SQL, d.Table("attempts")) {
				t.Errorf("attempts are read: %s", call.SQL)
			}
		}
	}
	ticktest.Run(t, d)
	f := &follower{cli: &cli{asJSON: true}, s: d.Store}
	if r, err := f.read(t.Context(), id); err != nil || len(r.Tries) != 1 {
		t.Errorf("%v: JSON has %d attempts at the end", err, len(r.Tries))
	}
}

// until waits for a condition that becomes true by itself.
func until(t *testing.T, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !come(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("within a minute it has not come to be that %s", what)
		}
	}
}
