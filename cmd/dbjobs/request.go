package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/gate"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

const (
	mostBody      = 1 << 20          // bytes of a request's body, which is read and forgotten
	mostSigned    = 64 << 10         // bytes of a body that has to be kept until its signature is checked
	refusalsEvery = 10 * time.Second // the least time between two messages about callers that were refused
	soon          = "1"              // seconds after which a caller that came too early should try again
	later         = "10"             // seconds after which a database that was unreachable may be back
)

// handler answers requests.
type handler struct {
	service
	callers *gate.Gate      // nil: the platform has checked the caller
	timeout time.Duration   // the time from a request to its answer
	args    []string        // for every command
	ending  context.Context // ends when the process is asked to end
	passes  sync.WaitGroup  // the passes that wait or run, even if their callers have gone

	refusals *cli // reports which callers were refused
	mu       sync.Mutex
	said     time.Time // when a refusal was last reported
	unsaid   int       // refusals since the last report

	ticks, works turns
}

// routes maps paths to what answers them. What fits none of them is refused in the form of all refusals.
func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.health)
	mux.Handle("POST /tick", h.pass("tick", &h.ticks, "limit"))
	mux.Handle("POST /work", h.pass("work", &h.works, "limit", "queue"))
	for at, method := range map[string]string{"/healthz": http.MethodGet, "/tick": http.MethodPost, "/work": http.MethodPost} {
		mux.HandleFunc(at, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", method)
			refusal(http.StatusMethodNotAllowed, failureKind(exitUsage), at+" takes "+method+", not "+r.Method).write(w)
		})
	}
	nowhere := func(w http.ResponseWriter, _ *http.Request) {
		refusal(http.StatusNotFound, failureKind(exitUsage), "no such path; there are POST /tick, POST /work and GET /healthz").write(w)
	}
	mux.HandleFunc("/", nowhere)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The mux would redirect //tick to /tick. A caller that follows no redirects, such as curl --fail, takes that for a success.
		if r.URL.Path != path.Clean(r.URL.Path) {
			nowhere(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (h *handler) health(w http.ResponseWriter, _ *http.Request) {
	if h.ending.Err() != nil {
		http.Error(w, "ending", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n") // if the caller has gone, nobody needs the answer
}

// reply is the answer to a request.
type reply struct {
	status int
	body   []byte // JSON
	after  string // seconds after which to try again; "" if nothing is said about it
}

// refusal makes an answer that is an error. The kind is a word for programs.
func refusal(status int, kind string, lines ...string) *reply {
	body, err := json.Marshal(struct {
		Kind  string `json:"kind"`
		Error string `json:"error"`
	}{kind, strings.Join(lines, "\n")})
	if err != nil { // strings can always be written
		panic(err)
	}
	return &reply{status: status, body: append(body, '\n')}
}

func (a *reply) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if a.after != "" {
		w.Header().Set("Retry-After", a.after)
	}
	if a.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // if the caller has gone, nobody needs the answer
}

// pass answers requests with a pass of a command. Parameters of the query may set flags of that pass.
func (h *handler) pass(command string, t *turns, parameters ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came := time.Now()
		if bad := h.check(w, r); bad != nil {
			bad.write(w)
			return
		}
		e, err := readQuery(command, r.URL.RawQuery, parameters)
		if err != nil {
			refusal(http.StatusBadRequest, failureKind(exitUsage), err.Error()).write(w)
			return
		}
		deadline := came.Add(h.timeout)
		turn := t.join(e, deadline, &h.passes, func(deadline time.Time) *reply { return h.run(e, deadline) })
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		for gone := r.Context().Done(); ; {
			select {
			case <-turn.done:
				turn.answer.write(w)
				return
			case <-timer.C:
				busy().write(w)
				return
			case <-gone:
				if h.ending.Err() == nil { // the caller has gone; the pass goes on
					panic(http.ErrAbortHandler) // it may still read: to return would be a 200
				}
				gone = nil // check has ended the reading of a body that was there: the caller waits, and no answer would be a 200
			}
		}
	})
}

func busy() *reply {
	a := refusal(http.StatusTooManyRequests, "Busy", "another pass took the time of this request, or most of it; try again")
	a.after = soon
	return a
}

func ending() *reply {
	a := refusal(http.StatusServiceUnavailable, failureKind(exitInterrupted), "this process is shutting down; try again")
	a.after = soon
	return a
}

// check returns the answer to a request that is refused, or nil for one that is not. The body of a caller who may not call is
// not read, unless its signature is to be checked: anybody can send many of them.
func (h *handler) check(w http.ResponseWriter, r *http.Request) *reply {
	// A process that ends does not wait for the rest of a body.
	defer context.AfterFunc(h.ending, func() { _ = http.NewResponseController(w).SetReadDeadline(time.Now()) })()
	// A browser sends this header with each POST of a page, which would otherwise call a process that takes everybody on the
	// user's own host, also by a name of the page's that leads there. It sends no credential of ours, and no scheduler sends an Origin.
	if h.callers == nil && r.Header.Get("Origin") != "" {
		return h.refuse(r, &gate.RefusedError{Status: http.StatusForbidden, Reason: "a page in a browser sent it"})
	}
	if h.callers != nil {
		var body []byte
		if h.callers.Signed(r) {
			var err error
			if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, mostSigned)); err != nil {
				return h.unread(err, "the body is longer than 64 kB, and has to be kept until its signature is checked; it has no other use, so leave it out")
			}
		}
		if err := h.callers.Check(r, body); err != nil {
			return h.refuse(r, err)
		}
	}
	// The server notices that a caller has gone when the body has been read.
	_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, mostBody))
	return h.unread(err, "the body is longer than 1 MB; it is not used, so leave it out")
}

// unread returns the answer to a request whose body could not be read; nil: it could.
func (h *handler) unread(err error, long string) *reply {
	switch {
	case err == nil:
		return nil
	case h.ending.Err() != nil:
		return ending()
	}
	if _, is := errors.AsType[*http.MaxBytesError](err); is {
		return refusal(http.StatusRequestEntityTooLarge, failureKind(exitUsage), long)
	}
	return refusal(http.StatusBadRequest, failureKind(exitUsage), "the body could not be read")
}

// refuse returns the answer to a request whose sender may not call.
func (h *handler) refuse(r *http.Request, err error) *reply {
	status := http.StatusUnauthorized
	if refused, ok := errors.AsType[*gate.RefusedError](err); ok {
		status = refused.Status
	}
	h.tellRefusal(r, err)
	a := refusal(status, "Refused", "this caller is not allowed; the log of dbjobs has the reason, of several refusals within ten seconds that of the first")
	if status == http.StatusServiceUnavailable {
		a = refusal(status, "Refused", "the caller could not be checked; try again")
		a.after = soon
	}
	return a
}

// tellRefusal logs why a request was refused. Somebody who tries to get in must not be able to fill the log.
func (h *handler) tellRefusal(r *http.Request, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unsaid++; time.Since(h.said) < refusalsEvery {
		return
	}
	more := ""
	if h.unsaid > 1 {
		more = " (" + report.Plural(h.unsaid, "request") + " refused since the last message)"
	}
	h.refusals.tell(slog.LevelWarn, "a request of %s was refused: %v%s", r.RemoteAddr, err, more)
	h.said, h.unsaid = time.Now(), 0
}

// readQuery reads the parameters of a request. It is strict, because a mistyped parameter must not be ignored
// silently.
func readQuery(command, raw string, parameters []string) (event, error) {
	e := event{Command: command}
	query, err := url.ParseQuery(raw)
	if err != nil { // the rest would be a pass without the limit
		return e, badInput("/%s: the parameters cannot be read: separate them by &, and write other characters than letters and digits as %%XX", command)
	}
	for name, values := range query {
		switch {
		case !slices.Contains(parameters, name):
			return e, badInput("/%s has no parameter %s; it has %s", command, shown(name), strings.Join(parameters, " and "))
		case len(values) != 1 || values[0] == "":
			return e, badInput("/%s: the parameter %s needs one value", command, name)
		case name == "queue":
			if e.Queue = values[0]; store.CheckTrigger("", "", []string{e.Queue}) != nil {
				return e, badInput("/%s: queue: found %s, which no queue can have as its name", command, shown(e.Queue))
			}
		default:
			n, err := strconv.Atoi(values[0])
			if err != nil || n < 0 {
				return e, badInput("/%s: limit: found %s; want a number, 0 or more", command, shown(values[0]))
			}
			e.Limit = &n
		}
	}
	return e, nil
}

// run makes one pass and returns its answer. The deadline is that of the newest request that waits for the pass.
func (h *handler) run(e event, deadline time.Time) *reply {
	if h.ending.Err() != nil {
		return ending()
	}
	c, out := h.invocation()
	c.whole, _, _ = h.budget(h.timeout) // serve read these settings when it began
	budget, margin, err := h.budget(time.Until(deadline))
	switch {
	case err != nil:
	case budget < max(c.whole/2, leastBudget): // a run that begins in it, and needs more, would be cut and may be lost
		return busy()
	default:
		ctx, cancel := context.WithDeadline(h.ending, deadline.Add(-margin/2))
		defer cancel()
		err = c.execute(ctx, append(e.args(budget, h.startup()), h.args...))
	}
	if err == nil {
		return &reply{status: http.StatusOK, body: out.Bytes()}
	}
	code := exitCode(h.ending, err)
	c.complain(code, err)
	a := refusal(http.StatusInternalServerError, failureKind(code), c.explain(code, err)...)
	switch code {
	case exitDatabase:
		a.status, a.after = http.StatusServiceUnavailable, later
	case exitInterrupted: // another process may take the next request
		a.status, a.after = http.StatusServiceUnavailable, soon
	}
	return a
}

// startup returns the identity of this start: DBJOBS_STARTUP_ID, or else the revision of the service. The
// instances of a revision come and go.
func (h *handler) startup() string {
	if id, _ := h.env("DBJOBS_STARTUP_ID"); id != "" {
		return id
	}
	service, _ := h.env("K_SERVICE")
	revision, _ := h.env("K_REVISION")
	return strings.Trim(service+":"+revision, ":")
}

// turns lets one pass of a command run at a time. A request that comes while one runs waits for the
// pass that begins after it: that pass sees all that was due when the request came. All requests that
// wait for the same pass get its answer. It has the time of the newest of them. With that of the oldest, a pass after a long one
// would always be short, and so would a run that needs most of a whole budget be cut in one pass after the other until it is lost.
//
//	request ──▶ joins the pass that waits, or makes it ──▶ the pass before has ended ──▶ it runs ──▶ its answer
type turns struct {
	running sync.Mutex // held by the pass that runs
	mu      sync.Mutex
	waiting map[string]*turn // by the parameters of the request
}

// turn is one pass, which waits, runs or has ended.
type turn struct {
	deadline time.Time // of the newest request that waits for it
	done     chan struct{}
	answer   *reply // once done is closed
}

// join returns the pass for which the request waits.
func (t *turns) join(e event, deadline time.Time, passes *sync.WaitGroup, run func(deadline time.Time) *reply) *turn {
	key := strings.Join(e.args(0, ""), "\x00")
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.waiting[key]; w != nil {
		if deadline.After(w.deadline) {
			w.deadline = deadline
		}
		return w
	}
	w := &turn{deadline: deadline, done: make(chan struct{})}
	if t.waiting == nil {
		t.waiting = map[string]*turn{}
	}
	t.waiting[key] = w
	passes.Go(func() {
		defer close(w.done)
		t.running.Lock()
		defer t.running.Unlock()
		t.mu.Lock()
		delete(t.waiting, key) // a request that comes from now on waits for the next pass
		t.mu.Unlock()
		w.answer = run(w.deadline)
	})
	return w
}
