package executor

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// TestHTTPAnswerHasCome: when the status has come, the end of the attempt is known, however long the rest takes.
func TestHTTPAnswerHasCome(t *testing.T) {
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
			if wait, ok := errors.AsType[*LaterError](err); (err != nil) != (later > 0) || err != nil && (!ok || wait.Wait != later) {
				t.Error(err)
			}
		})
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
