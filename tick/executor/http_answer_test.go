package executor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
)

// TestHTTPAnswerDoesNotEnd: a server that has not ended its answer is still at work, whatever it has said so far: the time of the
// attempt is over. If the status is that of a failure, the failure is known.
func TestHTTPAnswerDoesNotEnd(t *testing.T) {
	for status, later := range map[int]time.Duration{http.StatusOK: 0, http.StatusTooManyRequests: 7 * time.Second} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s, _ := receiver(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(status)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() {
				time.AfterFunc(2*time.Second, func() { cancel(errHTTPPatience) })
			}})
			x := NewHTTP(loopback(nil))
			defer x.Close()
			_, err := x.Execute(ctx, attempt(`{"url": "`+s.URL+`"}`))
			if wait, ok := errors.AsType[*LaterError](err); ok != (later > 0) || ok && wait.Wait != later || errors.Is(err, errHTTPPatience) == ok {
				t.Error(err)
			}
		})
	}
}

// TestHTTPReadsAnAnswerToItsEnd: a server may report what it does in its answer. Many servers stop the work if nobody reads on.
func TestHTTPReadsAnAnswerToItsEnd(t *testing.T) {
	stopped := make(chan error, 1)
	s, _ := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		line := []byte(strings.Repeat("one more is done\n", 4<<10))
		for sent := 0; sent < 12<<20; sent += len(line) { // more than the connection itself holds
			if _, err := w.Write(line); err != nil {
				stopped <- err
				return
			}
		}
		stopped <- r.Context().Err()
	})
	if res, err := execute(t, loopback(nil), `{"url": "`+s.URL+`"}`); err != nil || len(res.Output) > 2*httpHead {
		t.Errorf("%v, and %d bytes are kept", err, len(res.Output))
	}
	if err := <-stopped; err != nil {
		t.Errorf("the step has succeeded, and the server was stopped in the middle: %v", err)
	}
}

// TestHTTPRedirectsToTheSameServer: a server may name itself with the port of the scheme, or in capitals.
func TestHTTPRedirectsToTheSameServer(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"https://example.org/a", "https://example.org:443/b", "https://example.org/b"},
		{"https://example.org:443/a", "https://example.org/b", "https://example.org:443/b"},
		{"http://example.org/a", "HTTP://EXAMPLE.org:80/b?X#f", "http://example.org/b?X"},
		{"http://[::1]:8080/a", "http://[::1]:8080/b", "http://[::1]:8080/b"},
		{"https://example.org/a", "https://example.org:80/b", ""},
		{"https://example.org/a", "http://example.org:443/b", ""},
		{"https://example.org/a", "https://example.org.evil.example/b", ""},
		{"https://example.org/a", "https://u@example.org/b", ""},
	} {
		from, err := url.Parse(c.from)
		if err != nil {
			t.Fatal(err)
		}
		by := &call{spec: HTTPSpec{URL: c.from}, task: &store.Task{}, host: loopback(nil)}
		to, err := by.redirect(&http.Response{StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {c.to}}}, from)
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), "another server")):
			t.Errorf("%s to %s: %v, %v", c.from, c.to, to, err)
		case c.want != "" && (err != nil || to.String() != c.want):
			t.Errorf("%s to %s: %v, %v, want %s", c.from, c.to, to, err, c.want)
		}
	}
}

// A step without a timeout gives up after a while. The error says for what it has waited: a server that was not asked yet is not to
// blame, and more time for it would not help.
func TestHTTPPatienceSaysForWhat(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x := NewHTTP(&Host{Secrets: map[string]Secret{"PSP": {Value: func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}}})
		defer x.Close()
		x.transports["ann"] = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		const asks = `POST https://example.org: `
		for spec, want := range map[string]string{
			`{"url": "https://example.org", "auth": {"bearer": "${secret:PSP}"}}`: asks + `the secret "PSP": not done within 5m0s`,
			`{"url": "https://example.org"}`:                                      asks + `no whole answer within 5m0s; a step that needs longer says so by timeout`,
		} {
			if _, err := x.Execute(t.Context(), attempt(spec)); err == nil || err.Error() != want {
				t.Errorf("%v; want %s", err, want)
			}
		}
	})
}
