package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/secret"
)

const (
	// marginVariable is the time between the end of the budget and the deadline of the invocation. At the
	// deadline, the platform kills the process or no longer waits for the answer.
	marginVariable = "DBJOBS_MARGIN"

	defaultMargin = 3 * time.Second
	leastBudget   = 500 * time.Millisecond
	wakePatience  = time.Second // for the answer on a kept connection
)

// service is a process that runs a command for each invocation: as a Lambda function, or by HTTP.
type service struct {
	stderr   io.Writer
	env      settings.Lookup
	environ  []string
	examined bool  // the process has looked for variables with mistyped names
	warm     *warm // nil: no connection is kept between invocations
	begun    sync.Once
	given    secret.Known // see cli.given
}

// invocation returns the program for one invocation, and the buffer that will contain its answer.
func (s *service) invocation(attrs ...slog.Attr) (*cli, *bytes.Buffer) {
	answer := &bytes.Buffer{}
	c := newCLI(bytes.NewReader(nil), answer, s.stderr, s.env)
	c.warm, c.environ, c.given = s.warm, s.environ, &s.given
	cold := false
	s.begun.Do(func() { cold = true })
	c.examined = s.examined || !cold // so mistyped variables are reported once
	c.invocation = append(attrs, slog.Bool("cold", cold))
	return c, answer
}

// failureKind returns the word for an exit code in the answer to an invocation that failed.
func failureKind(code int) string {
	switch code {
	case exitUsage:
		return "BadInput"
	case exitJobFailed:
		return "JobFailed"
	case exitSchema:
		return "Schema"
	case exitDatabase:
		return "Unreachable"
	case exitInterrupted:
		return "Ending"
	}
	return "PassFailed"
}

// event is what an invocation asks for. As the payload of a function, an event of EventBridge or an empty payload
// means a tick.
type event struct {
	Command string `json:"command"`
	Limit   *int   `json:"limit"`
	Queue   string `json:"queue"`
}

// args returns the command line for the event.
func (e event) args(budget time.Duration, startup string) []string {
	args := []string{e.Command, "--json", "--budget", budget.Truncate(time.Millisecond).String()}
	if e.Limit != nil {
		args = append(args, "--limit", strconv.Itoa(*e.Limit))
	}
	if e.Queue != "" { // a single name, whatever it contains: the flag reads a line of CSV
		args = append(args, "--queue", `"`+strings.ReplaceAll(e.Queue, `"`, `""`)+`"`)
	}
	if startup != "" && e.Command == "tick" {
		args = append(args, "--startup-id", startup)
	}
	return args
}

// budget returns the time for a pass that has to be answered within left, and the time that is reserved for the
// answer.
func (s *service) budget(left time.Duration) (budget, margin time.Duration, err error) {
	if margin, err = s.duration(marginVariable, defaultMargin); err != nil {
		return 0, 0, err
	}
	most, err := s.duration("DBJOBS_BUDGET", 0)
	if err != nil {
		return 0, 0, err
	}
	if budget = left - margin; most > 0 {
		budget = min(budget, most)
	}
	return budget, margin, nil
}

func (s *service) duration(variable string, otherwise time.Duration) (time.Duration, error) {
	text, _ := s.env(variable)
	if text == "" {
		return otherwise, nil
	}
	d, err := store.ParseDuration(text)
	if err != nil {
		return 0, badInput("%s: %v", variable, err)
	}
	return time.Duration(d), nil
}

// warm keeps a store, with one connection, for the next invocation. Between two invocations the process is frozen,
// for minutes or hours. A proxy or a NAT between the process and the database may drop the connection in that
// time. So the connection is used again only after the database has answered on it. A nil warm keeps nothing.
type warm struct {
	mu     sync.Mutex
	s      *store.Store
	db     settings.Database
	opened time.Time
}

// take returns the kept store if it is healthy, and sets in c the database to which it belongs, and when it was opened. A store is not
// used for longer than a connection: where the database is, and with which password, may be another answer by now.
func (w *warm) take(ctx context.Context, c *cli) *store.Store {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	s, db, opened := w.s, w.db, w.opened
	w.s = nil
	w.mu.Unlock()
	if s == nil {
		return nil
	}
	if time.Now().Round(0).Sub(opened) >= store.ConnLifetime { // by the wall clock: the process was frozen
		go s.Close()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wakePatience)
	defer cancel()
	if err := s.Wake(ctx); err != nil {
		c.db = db
		c.tell(slog.LevelInfo, "the kept connection is dead; connecting again: %v", err)
		go s.Close() // it may wait for the dead connection
		return nil
	}
	c.db, c.opened = db, opened
	return s
}

// keep keeps the store of c and reports whether it did. It does not if an invocation that ran at the same time has
// already left its store.
func (w *warm) keep(c *cli, s *store.Store) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s != nil {
		return false
	}
	s.Sleep()
	w.s, w.db, w.opened = s, c.db, c.opened
	return true
}

// drop closes the kept store after a command that has failed. A server that has become a standby still answers, but takes no
// writes, and a new connection may lead to the server that does.
func (w *warm) drop() {
	if w == nil {
		return
	}
	w.mu.Lock()
	s := w.s
	w.s = nil
	w.mu.Unlock()
	if s != nil {
		go s.Close() // it may wait for a dead connection
	}
}

func (w *warm) close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s != nil {
		w.s.Close()
	}
}
