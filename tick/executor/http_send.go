package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
)

// HTTP sends a request as an attempt of a step. It sends the request at least once, with the same key in all tries and
// deliveries of a run.
type HTTP struct {
	host       *Host
	env        aws.Lookup
	aws        *aws.Source   // the source of credentials
	names      *net.Resolver // nil: the resolver of the system
	mu         sync.Mutex
	transports map[string]*http.Transport // by owner; they keep connections
	fresh      map[string]*http.Transport // by owner; they keep none
}

// The bounds of an attempt.
const (
	httpHead      = 4 << 10         // how many bytes of an answer's body are kept
	httpRest      = 16 << 20        // how many more bytes are read, and not kept: an answer may have no end
	httpFacts     = 16 << 10        // how many bytes an answer may have for later steps to name it
	httpRedirects = 5               // the most redirects to the same server
	httpRefusals  = 3               // how often a request is sent again that a server has refused unread
	httpPatience  = 5 * time.Minute // the time for an attempt if the step, the run and the pass have no bound
)

// NewHTTP returns an executor that may touch what the host allows. The caller closes it.
func NewHTTP(h *Host) *HTTP {
	return &HTTP{host: h, env: os.LookupEnv, aws: aws.NewSource(os.LookupEnv), transports: map[string]*http.Transport{}, fresh: map[string]*http.Transport{}}
}

// Close closes the connections that are kept.
func (e *HTTP) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.transports {
		t.CloseIdleConnections()
	}
	return nil
}

// transport returns the transport that keeps the connections of an owner's jobs.
func (e *HTTP) transport(owner string) *http.Transport {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.transports[owner] == nil {
		e.transports[owner] = guardedTransport(e.host, owner, e.names)
	}
	return e.transports[owner]
}

// freshTransport returns the transport for requests of an owner's jobs that have no body. Where a kept connection ends before the
// answer, net/http would send such a request again, although the server may have received it: only another try does that. Where a
// server of HTTP/2 resets one, net/http would do so without an end.
func (e *HTTP) freshTransport(owner string) *http.Transport {
	keeps := e.transport(owner)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fresh[owner] == nil {
		e.fresh[owner] = keeps.Clone()
		e.fresh[owner].DisableKeepAlives = true
		e.fresh[owner].DialContext = connectingOnce(keeps.DialContext)
	}
	return e.fresh[owner]
}

// connected says in the context of a request whether a connection was made for it.
type connected struct{}

var errUnanswered = errors.New("the server has ended the request without an answer")

// connectingOnce makes one connection for each request.
func connectingOnce(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if before, ok := ctx.Value(connected{}).(*atomic.Bool); ok && before.Swap(true) {
			return nil, errUnanswered
		}
		return dial(ctx, network, address)
	}
}

// LaterError is a failure after which the next try must not come too soon.
type LaterError struct {
	Wait time.Duration // from now on
	Err  error
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// Execute sends the request.
func (e *HTTP) Execute(ctx context.Context, r Request) (Result, error) {
	spec, err := readHTTP(r.Spec)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", errSpec, err)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, httpPatience, errPatience)
		defer cancel()
	}
	c := &call{spec: spec, task: r.Task, now: r.Now, host: e.host, env: e.env, aws: e.aws}
	c.transport, c.fresh = e.transport(r.Task.Job.Owner), e.freshTransport(r.Task.Job.Owner)
	res, err := c.do(ctx)
	if _, answered := errors.AsType[*Error](err); err != nil && !answered && c.asked && errors.Is(context.Cause(ctx), errPatience) {
		err = errHTTPPatience
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", spec.line(), err)
		if !c.reached.Load() {
			err = &UnsentError{err}
		}
	}
	return res, err
}

// The patience is over: before the server was asked, as while a secret is read, and afterwards.
var (
	errPatience     = fmt.Errorf("not done within %s", httpPatience)
	errHTTPPatience = fmt.Errorf("no whole answer within %s; a step that needs longer says so by timeout", httpPatience)
)

// line describes the request without anything that may be secret: it shows the URL up to the query, with its references.
func (s *HTTPSpec) line() string {
	shown, _, _ := strings.Cut(s.URL, "?")
	if scheme, rest, ok := strings.Cut(shown, "://"); ok {
		host, path, slash := strings.Cut(rest, "/")
		if at := strings.LastIndex(host, "@"); at >= 0 {
			host = host[at+1:]
		}
		if shown = scheme + "://" + host; slash {
			shown += "/" + path
		}
	}
	return s.method() + " " + shown
}

func (s *HTTPSpec) method() string {
	if s.Method == "" {
		return http.MethodPost
	}
	return s.Method
}

// call is one attempt.
type call struct {
	spec      HTTPSpec
	task      *store.Task
	now       time.Time
	host      *Host
	env       aws.Lookup
	aws       *aws.Source
	transport *http.Transport
	fresh     *http.Transport // for requests without a body

	facts  map[string]any // with the secrets that the spec names
	header http.Header
	body   []byte // nil: none

	asked   bool        // the request had all that it needs to be sent
	reached atomic.Bool // there was a connection on which the request could be sent
}

// do sends the request of the spec, and follows redirects to the same server.
func (c *call) do(ctx context.Context) (Result, error) {
	to, err := c.prepare(ctx)
	if err != nil {
		return Result{}, err
	}
	for hop := 0; ; hop++ {
		resp, err := c.send(ctx, to)
		if err != nil {
			return Result{}, err
		}
		next, err := c.redirect(resp, to)
		if next == nil || err != nil || hop == httpRedirects {
			return c.judge(resp, err)
		}
		_, _ = io.CopyN(io.Discard, resp.Body, httpHead)
		_ = resp.Body.Close()
		to = next
	}
}

// send sends the request to a URL, and returns the answer. A server of HTTP/2 may say that it has not begun with a request, as
// it does where it ends a connection after a number of them: that one is sent again, on another connection. One without a body
// has a connection of its own.
func (c *call) send(ctx context.Context, to *url.URL) (*http.Response, error) {
	for try := 0; ; try++ {
		req, err := c.request(ctx, to)
		if err != nil {
			return nil, err
		}
		c.asked = true
		by, within := c.transport, httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { c.reached.Store(true) }})
		if req.Body == http.NoBody {
			by, within = c.fresh, context.WithValue(within, connected{}, &atomic.Bool{})
		}
		resp, err := exchange(by, req.WithContext(within))
		if err == nil {
			return resp, nil
		}
		reset, told := resetBy(err)
		if unread := strings.Contains(reset, "GOAWAY") || strings.Contains(reset, "REFUSED_STREAM"); unread && try < httpRefusals {
			continue
		}
		if told {
			err = fmt.Errorf("the server has reset the request: %s", reset)
		}
		return nil, plainly(ctx, err)
	}
}

// resetBy returns how a server of HTTP/2 has ended a request with a body. net/http has no type for that, but a text: it would send
// the request again if it could read the body again. By the words GOAWAY and REFUSED_STREAM the server has not begun with the request
// (RFC 9113, section 8.7).
func resetBy(err error) (reason string, told bool) {
	_, reason, told = strings.Cut(err.Error(), "cannot retry err [")
	reason, _, _ = strings.Cut(reason, "] after Request.Body")
	return reason, told
}

// exchange sends a request, and returns the answer. After 101, Switching Protocols, the connection is in the hands of who reads
// the body, and no longer ends with the context of the request: a read would wait for as long as the server likes. No request
// here asks for another protocol, so the connection is closed, and the answer has no body.
func exchange(t *http.Transport, req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	}
	return resp, err
}

// plainly makes the error of a request that got no answer.
func plainly(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused
	}
	if errors.Is(err, io.EOF) { // alone, it says nothing
		return errUnanswered
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("the host %.200q was not found: %s", dns.Name, dns.Err)
	}
	return err
}

// redirect returns the URL to which an answer redirects. Only the same server is allowed, because the contents of the request
// are for no other server. The method stays the same.
func (c *call) redirect(resp *http.Response, from *url.URL) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if m := c.spec.method(); m != http.MethodGet && m != http.MethodHead {
			return nil, nil
		}
	default:
		return nil, nil
	}
	if c.spec.expects(resp.StatusCode) || resp.Header.Get("Location") == "" {
		return nil, nil
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil {
		return nil, errors.New("the redirect leads to no URL")
	}
	if to.Scheme != from.Scheme || !strings.EqualFold(to.Hostname(), from.Hostname()) || portOf(to) != portOf(from) || to.User != nil {
		return nil, fmt.Errorf("redirects to another server are not followed; give the URL that it leads to, at %.200q", c.host.hide(c.task.Job.Owner, to.Scheme+"://"+to.Host))
	}
	to.Host, to.Fragment, to.RawFragment = from.Host, "", ""
	return to, nil
}

// portOf returns the port of a URL, also where the URL leaves it to the scheme.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}
