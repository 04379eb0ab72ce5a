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
	// runtimeAPIVariable is set where this process is the bootstrap of a Lambda function. It is the
	// address from which the process gets invocations.
	runtimeAPIVariable = "AWS_LAMBDA_RUNTIME_API"
	// marginVariable is the time between the end of the budget and the deadline of the invocation.
	// At the deadline, Lambda kills the process without a signal.
	marginVariable = "DBJOBS_MARGIN"

	defaultMargin = 3 * time.Second
	leastBudget   = 500 * time.Millisecond
	wakePatience  = time.Second // for the answer on a kept connection
)

// serve is the program as a Lambda function. Each invocation is a command line; its answer is what
// the command prints. serve ends only with the process.
func serve(ctx context.Context, stderr io.Writer, env settings.Lookup, environ []string) int {
	f := &function{stderr: stderr, env: env, environ: environ, warm: &warm{}}
	log.SetFlags(0)
	log.SetOutput(libraryLog{stderr})
	// If the function has extensions, Lambda sends the process a signal before it ends it, between
	// invocations.
	context.AfterFunc(ctx, func() {
		f.busy.Lock()
		f.warm.close()
		os.Exit(exitDone)
	})
	lambda.StartWithOptions(f)
	return exitFailed // not reached
}

// libraryLog receives what the runtime library logs. It drops the errors that the library passes on:
// they are in the log line of the pass already.
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

// event is the payload of an invocation. An event of EventBridge, or an empty one, means a tick.
type event struct {
	Command string `json:"command"`
	Limit   *int   `json:"limit"`
	Queue   string `json:"queue"`
}

// readEvent reads an event. It is strict: a mistyped member must not silently be ignored.
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
		return e, badInput(`event: %v; want {"command": "tick" or "work", "limit": NUMBER, "queue": NAME}, where each member is optional`, err)
	}
	if e.Command != "tick" && e.Command != "work" {
		return e, badInput("event: unknown command %s; want tick or work", shown(e.Command))
	}
	return e, nil
}

// args returns the command line for the event. A worker gets another name than the function's ticks:
// under the same name, its passes would hide from the alarms that no tick succeeds.
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

// Invoke handles one invocation. An event that Lambda delivers twice is one more tick; it finds that
// the first one has decided everything. A pass that fails is an error, so that Lambda counts it and
// may try again. A job that fails is only recorded.
func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	f.busy.RLock()
	defer f.busy.RUnlock()
	var answer bytes.Buffer
	c := newCLI(bytes.NewReader(nil), &answer, f.stderr, f.env)
	c.warm = f.warm
	cold := false
	f.begun.Do(func() { cold, c.environ = true, f.environ }) // so mistyped variables are reported once
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

// command runs the event's command within the invocation's deadline. The budget lets the pass end in
// time. The context ends a pass that hangs anyway, such as on a server that does not answer, while
// there is still time to report it.
func (f *function) command(ctx context.Context, c *cli, payload []byte) error {
	e, err := readEvent(payload)
	if err != nil {
		c.secrets.AddURL(string(payload)) // the error may quote it
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

// startup is the identity of this start: DBJOBS_STARTUP_ID, or else the version of the function.
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

// warm keeps a store, with one connection, for the next invocation. Between two invocations the
// process is frozen, for minutes or hours. A proxy or a NAT between it and the database may have
// dropped the connection by then, so the connection is used again only after the database has
// answered on it. A nil warm keeps nothing.
type warm struct {
	mu sync.Mutex
	s  *store.Store
	db settings.Database
}

// take returns the kept store if it is healthy, and tells c which database it belongs to.
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
		go s.Close() // it may wait for the dead connection
		return nil
	}
	c.db = db
	return s
}

// keep keeps the store and reports whether it did. It does not if an invocation that ran at the same
// time has left its store already.
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
