package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Heartbeat has the URLs by which an external service, such as healthchecks.io, learns that something begins and how it ends:
// one URL with the suffixes that such services know, or a URL for each signal. In all of them, ${secret:NAME} and facts are
// replaced.
//
// With URL, a signal is a POST to URL/start, URL or URL/fail, with the query rid=ID, and a line about the end in the body.
// Start, Success and Failure each get a GET, exactly as the URL is written; an empty one gets no request.
type Heartbeat store.Heartbeat

// Definitions with a heartbeat that could never be sent are refused.
func init() {
	store.CheckHeartbeats(func(b store.Heartbeat) (string, error) {
		if wrong, ok := errors.AsType[*KeyError](Heartbeat(b).Check(References())); ok {
			return fmt.Sprint(wrong.At[0]), wrong.Err
		}
		return "", nil
	})
}

// Signal is an event that a heartbeat can report.
type Signal string

// The signals.
const (
	Begins  Signal = "start"
	Success Signal = "success"
	Failure Signal = "failure"
)

// News is one signal of a heartbeat.
type News struct {
	Signal Signal
	ID     string // the same for the start and for the end
	Owner  string // the permissions of this owner apply
	Line   string // a line about the end; ${message} in a URL
	Facts  map[string]any
}

// Teller sends news to the URLs of heartbeats.
type Teller interface {
	Tell(ctx context.Context, to Heartbeat, n News) error
}

// Teller returns the executor that can send heartbeats; nil: there is none.
func (r Registry) Teller() Teller {
	t, _ := r[httpKind.Name].(Teller)
	return t
}

// The bounds of a signal. The caller bounds the time of the whole signal.
const (
	tellTries    = 3
	tellPatience = 2 * time.Second // for one try
	tellPause    = 200 * time.Millisecond
	mostURL      = 2000
	tellLine     = 250 // bytes: the shortest message that a known service takes has 256 characters
)

// message is the name of a fact that only heartbeats have.
const message = "message"

// Check refuses a heartbeat that could never be sent. facts has the facts that its URLs may name, in addition to ${message}
// and secrets. The error is a *KeyError.
func (b Heartbeat) Check(facts []string) error {
	known := append(slices.Clone(facts), message)
	urls := b.urls()
	if b.URL != "" && len(urls) > 1 {
		return &KeyError{At: []any{"url"}, Err: errors.New("excludes start, success and failure; give one URL, or one for each")}
	} else if len(urls) == 0 {
		return &KeyError{At: []any{"url"}, Err: errors.New("is missing")}
	}
	for _, u := range urls {
		if len(u.text) > mostURL {
			return &KeyError{At: []any{u.key}, Err: fmt.Errorf("is longer than %d bytes", mostURL)}
		}
		if err := checkHeartbeatURL(u.text, known); err != nil {
			return &KeyError{At: []any{u.key}, Err: err}
		}
	}
	return nil
}

type keyedURL struct{ key, text string }

// urls returns the URLs that are given.
func (b Heartbeat) urls() []keyedURL {
	return slices.DeleteFunc([]keyedURL{{"url", b.URL}, {string(Begins), b.Start}, {string(Success), b.Success}, {string(Failure), b.Failure}},
		func(u keyedURL) bool { return u.text == "" })
}

func checkHeartbeatURL(text string, facts []string) error {
	for _, m := range reference.FindAllString(text, -1) {
		name := strings.TrimSuffix(strings.TrimPrefix(m, "${"), "}")
		if secret, is := strings.CutPrefix(name, "secret:"); is && secret != "" {
			continue
		}
		if !slices.Contains(facts, name) {
			return fmt.Errorf("${%.100s} is not known; there are ${%s} and ${secret:NAME}", name, strings.Join(facts, "}, ${"))
		}
	}
	if strings.Contains(reference.ReplaceAllString(text, ""), "${") {
		return errors.New("found ${ without }")
	}
	if first, _ := leading(text); first != "" {
		return nil // its value is checked when it is known
	}
	text = reference.ReplaceAllString(text, "x")
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return errors.New("a user and password are not sent by a heartbeat; put a secret into the path or the query")
	}
	_, err := readURL(text)
	return err
}

// of returns the method and the URL for a signal; an empty URL: the signal is not sent.
func (b Heartbeat) of(s Signal) (method, text string) {
	if b.URL != "" {
		return http.MethodPost, b.URL
	}
	return http.MethodGet, map[Signal]string{Begins: b.Start, Success: b.Success, Failure: b.Failure}[s]
}

// Service names the service that gets a signal, by its URL up to the path, as it is written; empty: the signal is not sent.
func (b Heartbeat) Service(s Signal) string {
	_, text := b.of(s)
	server := 0
	if i := strings.Index(text, "://"); i >= 0 {
		server = i + len("://")
	}
	if n := strings.IndexAny(text[server:], "/?#"); n >= 0 {
		return text[:server+n]
	}
	return text
}

// Tell sends a signal. If it returns nil, the signal was sent at least once: a try whose answer was lost is repeated. A
// redirect is not followed. An error shows no part of the URL except its server.
func (e *HTTP) Tell(ctx context.Context, to Heartbeat, n News) error {
	method, text := to.of(n.Signal)
	if text == "" {
		return nil
	}
	if err := to.Check(slices.Collect(maps.Keys(n.Facts))); err != nil { // a file or plain SQL may hold anything
		return err
	}
	if err := context.Cause(ctx); err != nil { // it may not be sent
		return &UntoldError{fmt.Sprintf("%s: %v", to.Service(n.Signal), err), err}
	}
	n.Line = e.host.line(n.Owner, n.Line)
	u, err := e.address(ctx, text, n)
	if err != nil {
		return fmt.Errorf("its URL: %w", err)
	}
	body := ""
	if method == http.MethodPost {
		if suffix := map[Signal]string{Begins: "start", Failure: "fail"}[n.Signal]; suffix != "" {
			u = u.JoinPath(suffix)
		}
		u.RawQuery, body = strings.TrimPrefix(u.RawQuery+"&rid="+url.QueryEscape(n.ID), "&"), n.Line
	}
	for try := 1; ; try++ {
		again, err := e.signal(ctx, method, u, body, n)
		if err == nil {
			return nil
		}
		if !again || try == tellTries || ctx.Err() != nil {
			return &UntoldError{e.host.hide(n.Owner, fmt.Sprintf("%s://%s: %v", u.Scheme, u.Host, err)), err}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(try) * tellPause):
		}
	}
}

// UntoldError says why no service took a signal. It shows no part of the URL except its server, and no secret.
type UntoldError struct {
	text string
	err  error
}

func (e *UntoldError) Error() string { return e.text }
func (e *UntoldError) Unwrap() error { return e.err }

// address returns the URL with its references replaced.
func (e *HTTP) address(ctx context.Context, text string, n News) (*url.URL, error) {
	facts := map[string]any{message: n.Line}
	maps.Copy(facts, n.Facts)
	if err := e.host.addSecrets(ctx, n.Owner, text, facts); err != nil {
		return nil, err
	}
	return expandURL(text, facts)
}

// signal makes one try to send a signal. again reports whether another try might succeed.
func (e *HTTP) signal(ctx context.Context, method string, to *url.URL, body string, n News) (again bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tellPatience, fmt.Errorf("no answer within %s", tellPatience))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to.String(), strings.NewReader(body))
	if err != nil {
		return false, errors.New("is no URL to which a request can be sent")
	}
	if body == "" {
		req.Body = http.NoBody
	} else {
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	req.Header.Set("User-Agent", "dbjobs")
	req.Header.Set("Idempotency-Key", n.ID+"-"+string(n.Signal))
	resp, err := exchange(e.transport(n.Owner), req)
	if err != nil {
		_, refused := errors.AsType[*RefusedError](err)
		return !refused, plainly(ctx, err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, httpHead) // so that the connection can be used again
	_ = resp.Body.Close()
	switch s := resp.StatusCode; s / 100 {
	case 2:
		return false, nil
	case 3:
		return false, fmt.Errorf("the answer is %s, and a heartbeat follows no redirect; give the URL that it leads to", strings.TrimSpace(resp.Status))
	default:
		again = s/100 == 5 || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout
		return again, fmt.Errorf("the answer is %s", strings.TrimSpace(resp.Status))
	}
}

// line returns a text of an owner's job on one line, without secrets, cut to the length that services accept.
func (h *Host) line(owner, text string) string {
	text = strings.Join(strings.Fields(h.hide(owner, text)), " ")
	if len(text) > tellLine {
		text = text[:tellLine-len("…")] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
