package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
)

const (
	// runtimeAPIVariable is set where this process is the bootstrap of a Lambda function; it says where the invocations are.
	runtimeAPIVariable = "AWS_LAMBDA_RUNTIME_API"
	// marginVariable is the time that a pass leaves of an invocation: Lambda kills at the deadline, without a signal.
	marginVariable = "DBJOBS_MARGIN"

	defaultMargin = 3 * time.Second
	leastBudget   = 500 * time.Millisecond
	wakePatience  = time.Second // for a kept connection's sign of life
)

// serve is the program as a Lambda function: an invocation is a command line, and its answer what that prints. It ends
// only with the process.
func serve(ctx context.Context, stderr io.Writer, env settings.Lookup, environ []string) int {
	f := &function{stderr: stderr, env: env, environ: environ, warm: &warm{}}
	log.SetFlags(0)
	log.SetOutput(libraryLog{stderr})
	// Lambda ends a process that has extensions beside it with a signal, between invocations.
	context.AfterFunc(ctx, func() {
		f.busy.Lock()
		f.warm.close()
		os.Exit(exitDone)
	})
	lambda.StartWithOptions(f)
	return exitFailed // not reached
}

// libraryLog is what the runtime library logs: the errors that it hands on are in the line of the pass already.
type libraryLog struct{ w io.Writer }

func (l libraryLog) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("{")) {
		return len(b), nil
	}
	return l.w.Write(b)
}

// function handles invocations.
type function struct {
	stderr  io.Writer
	env     settings.Lookup
	environ []string
	warm    *warm
	busy    sync.RWMutex // held for reading while an invocation is handled
	begun   sync.Once
}

// event is what an invocation may ask for. Events of EventBridge, and empty ones, ask for a tick.
type event struct {
	Command string `json:"command"`
	Limit   *int   `json:"limit"`
	Queue   string `json:"queue"`
}

// readEvent is strict with what people write: a mistyped member must not become a tick of another kind.
func readEvent(payload []byte) (event, error) {
	e := event{Command: "tick"}
	if payload = bytes.TrimSpace(payload); len(payload) == 0 {
		return e, nil
	}
	var bridge struct {
		Kind *string `json:"detail-type"`
	}
	if json.Unmarshal(payload, &bridge) == nil && bridge.Kind != nil {
		return e, nil
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return e, badInput(`event: %v; want {"command": "tick" or "work", "limit": NUMBER, "queue": NAME}, each of them optional`, err)
	}
	if e.Command != "tick" && e.Command != "work" {
		return e, badInput("event: there is no command %s; want tick or work", shown(e.Command))
	}
	return e, nil
}

// args is the command line that the event stands for. A worker is not named like the function's ticks: its passes would
// hide from the function's alarms that no tick succeeds.
func (e event) args(budget time.Duration, startup, name string) []string {
	args := []string{e.Command, "--json", "--budget", budget.Truncate(time.Millisecond).String()}
	if e.Limit != nil {
		args = append(args, "--limit", strconv.Itoa(*e.Limit))
	}
	if e.Queue != "" {
		args = append(args, "--queue", e.Queue)
	}
	if name != "" && e.Command == "work" {
		args = append(args, "--name", name+"-work")
	}
	if startup != "" && e.Command == "tick" {
		args = append(args, "--startup-id", startup)
	}
	return args
}

// Invoke handles one invocation. An event that Lambda delivers again is one more tick, which finds decided what the first
// one has decided. What goes wrong with the pass is an error, so that Lambda counts it and may try again; a job that
// fails is recorded, and is none.
func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	f.busy.RLock()
	defer f.busy.RUnlock()
	var answer bytes.Buffer
	c := newCLI(bytes.NewReader(nil), &answer, f.stderr, f.env)
	c.warm = f.warm
	cold := false
	f.begun.Do(func() { cold, c.environ = true, f.environ }) // what is mistyped is told once
	c.invocation = []slog.Attr{slog.String("function_version", lambdacontext.FunctionVersion), slog.Bool("cold", cold)}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		c.invocation = append(c.invocation, slog.String("request_id", lc.AwsRequestID))
	}
	err := f.command(ctx, c, payload)
	if err == nil {
		return answer.Bytes(), nil
	}
	code := exitCode(context.Background(), err)
	c.complain(code, err)
	kind, ok := map[int]string{exitUsage: "BadInput", exitJobFailed: "JobFailed", exitSchema: "Schema", exitDatabase: "Unreachable"}[code]
	if !ok {
		kind = "PassFailed"
	}
	return nil, messages.InvokeResponse_Error{Type: kind, Message: strings.Join(c.explain(code, err), "\n")}
}

// command runs the event's command within the invocation's deadline. The budget makes the pass end in good time; the
// context ends what hangs all the same, such as a server that does not answer, while there is time to say so.
func (f *function) command(ctx context.Context, c *cli, payload []byte) error {
	e, err := readEvent(payload)
	if err != nil {
		c.secrets.AddURL(string(payload)) // which the error may quote
		return err
	}
	margin, err := f.duration(marginVariable, defaultMargin)
	if err != nil {
		return err
	}
	deadline, _ := ctx.Deadline() // the library always sets it
	left := time.Until(deadline)
	budget := left - margin
	if budget < leastBudget {
		return badInput("the invocation has only %s left, and the margin (DBJOBS_MARGIN) is %s; raise the function's timeout", left.Round(time.Millisecond), margin)
	}
	if most, err := f.duration("DBJOBS_BUDGET", 0); err != nil {
		return err
	} else if most > 0 {
		budget = min(budget, most)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-margin/2))
	defer cancel()
	name, _ := f.env("DBJOBS_NAME")
	return c.execute(ctx, e.args(budget, f.startup(), name))
}

// startup is the identity of a start: the version of the function, unless the environment names another.
func (f *function) startup() string {
	if id, _ := f.env("DBJOBS_STARTUP_ID"); id != "" || lambdacontext.FunctionVersion == "" {
		return id
	}
	return lambdacontext.FunctionName + ":" + lambdacontext.FunctionVersion
}

func (f *function) duration(variable string, otherwise time.Duration) (time.Duration, error) {
	text, _ := f.env(variable)
	if text == "" {
		return otherwise, nil
	}
	d, err := store.ParseDuration(text)
	if err != nil {
		return 0, badInput("%s: %v", variable, err)
	}
	return time.Duration(d), nil
}

// warm keeps the store of a process that goes on after its command, with one connection. Between two invocations the
// process is frozen, for minutes or for hours, and whoever stands between it and the database may have forgotten the
// connection: it is used again only after the database has answered on it. A nil warm keeps nothing.
type warm struct {
	mu sync.Mutex
	s  *store.Store
	db settings.Database
}

// take gives the command the store that was kept, if it is healthy, and the database that it is of.
func (w *warm) take(ctx context.Context, c *cli) *store.Store {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	s, db := w.s, w.db
	w.s = nil
	w.mu.Unlock()
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wakePatience)
	defer cancel()
	if err := s.Wake(ctx); err != nil {
		c.db = db
		c.tell(slog.LevelInfo, "the kept connection is dead; connecting again: %v", err)
		go s.Close() // which may wait for the dead one
		return nil
	}
	c.db = db
	return s
}

// keep reports whether it keeps the store: another one may be kept already, by an invocation that ran beside.
func (w *warm) keep(db settings.Database, s *store.Store) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s != nil {
		return false
	}
	s.Sleep()
	w.s, w.db = s, db
	return true
}

func (w *warm) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s != nil {
		w.s.Close()
	}
}

var _ lambda.Handler = (*function)(nil)
