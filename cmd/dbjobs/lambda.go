package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
)

// runtimeAPIVariable is set if this process is the bootstrap of a Lambda function. Its value is the address from
// which the process gets invocations.
const runtimeAPIVariable = "AWS_LAMBDA_RUNTIME_API"

// lambdaMain is the program as a Lambda function. Each invocation is a command line, and its answer is the output
// of the command. lambdaMain ends only with the process.
func lambdaMain(ctx context.Context, stderr io.Writer, env settings.Lookup, environ []string) int {
	f := &function{service: service{stderr: stderr, env: env, environ: environ, warm: &warm{}}}
	if kind, _ := env(wakeVariable); kind != "" { // the database may sleep: a connection would keep it awake
		f.warm = nil
	}
	log.SetFlags(0)
	log.SetOutput(libraryLog{stderr})
	// If the function has extensions, Lambda sends the process a signal before it stops the process, between
	// invocations.
	context.AfterFunc(ctx, func() {
		f.busy.Lock()
		f.warm.close()
		os.Exit(exitDone)
	})
	lambda.StartWithOptions(f)
	return exitFailed // not reached
}

// libraryLog receives the messages of the runtime library. It drops the errors that the library passes on, because
// the log line of the pass already contains them. It also drops the messages of net/http, which quote what a server
// sends beside its answer: that may be a secret that the server got.
type libraryLog struct{ w io.Writer }

func (l libraryLog) Write(b []byte) (int, error) {
	for _, dropped := range []string{"{", "Unsolicited response", "http2: ", "net/http: "} {
		if bytes.HasPrefix(b, []byte(dropped)) {
			return len(b), nil
		}
	}
	return l.w.Write(b)
}

// function handles invocations.
type function struct {
	service
	busy sync.RWMutex // held for reading while an invocation is handled
}

// Invoke handles one invocation. If Lambda delivers an event twice, the second delivery is one more tick, which
// finds that the first one has decided everything. A pass that fails is an error, so that Lambda counts it and may
// try again. A job that fails is only recorded.
func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	f.busy.RLock()
	defer f.busy.RUnlock()
	c, answer := f.invocation(slog.String("function_version", lambdacontext.FunctionVersion))
	if id := requestID(ctx); id != "" {
		c.invocation = append(c.invocation, slog.String("request_id", id))
	}
	o, err := f.command(ctx, c, payload)
	if _, judged := errors.AsType[verdict](err); err == nil || judged { // the answer contains the verdict
		return o.answer(answer.Bytes(), nil), nil
	}
	code := exitCode(context.Background(), err)
	c.complain(code, err)
	lines := c.explain(code, err)
	if only(err, errLeftOut) {
		return o.answer(answer.Bytes(), lines), nil
	}
	f.warm.drop()
	return nil, messages.InvokeResponse_Error{Type: failureKind(code), Message: strings.Join(lines, "\n")}
}

// requestID returns Lambda's id of the event, or "" if there is none.
func requestID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.AwsRequestID
	}
	return ""
}

// command runs the event's command within the deadline of the invocation. The budget lets a pass end in time. The
// context stops everything that still hangs, for example on a server that does not answer, while there is still
// time to report it.
func (f *function) command(ctx context.Context, c *cli, payload []byte) (order, error) {
	o, err := f.readEvent(payload)
	if err != nil {
		c.secrets.AddURL(string(payload)) // the error may quote the payload
		return nil, err
	}
	deadline, _ := ctx.Deadline() // the library always sets it
	left := time.Until(deadline)
	budget, margin, err := f.budget(left)
	if err != nil {
		return o, err
	}
	if budget < leastBudget {
		return o, badInput("the invocation has only %s left, and the margin (DBJOBS_MARGIN) is %s; raise the function's timeout", left.Round(time.Millisecond), margin)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-margin/2))
	defer cancel()
	if e, ok := o.(event); ok {
		return o, c.execute(ctx, e.args(budget, f.startup()))
	}
	args, stdin, err := o.(remote).line(requestID(ctx))
	if err != nil {
		return o, err
	}
	c.stdin, c.sealed = strings.NewReader(stdin), true
	return o, c.execute(ctx, args)
}

// startup returns the identity of this start: DBJOBS_STARTUP_ID, or else the version of the function.
func (f *function) startup() string {
	if id, _ := f.env("DBJOBS_STARTUP_ID"); id != "" || lambdacontext.FunctionVersion == "" {
		return id
	}
	return lambdacontext.FunctionName + ":" + lambdacontext.FunctionVersion
}

var _ lambda.Handler = (*function)(nil)
