package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/secret"
)

// loopback allows the servers of tests.
func loopback(secrets map[string]string) *Host {
	h := &Host{Addresses: []Addresses{{Range: netip.MustParsePrefix("127.0.0.0/8")}}, Secrets: map[string]Secret{}, Known: &secret.Known{}}
	for name, v := range secrets {
		h.Secrets[name] = Secret{Value: func(context.Context) (string, error) { return v, nil }}
	}
	return h
}

var httpNow = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// attempt is an attempt of a run whose facts are known.
func attempt(spec string) Request {
	t := &store.Task{}
	t.Run.ID, t.Run.Step, t.Run.Attempt, t.Run.Fence, t.Run.Job, t.Run.Owner = "019a-7", 2, 1, 3, "rollup", "ann"
	t.Run.ScheduledFor = time.Date(2026, 11, 20, 2, 30, 0, 0, time.UTC)
	t.Run.Args = `{"day": "a/b?c=d&e #%", "n": 12345678901234567890, "dots": "..", "line": "a\nX-Evil: 1"}`
	t.Job.Owner, t.Job.Steps = "ann", []store.Step{{Name: "load"}, {Name: "tell"}}
	return Request{Task: t, Spec: json.RawMessage(spec), Now: httpNow}
}

// received is a request that a server got.
type received struct {
	method, host, uri, body string
	header                  http.Header
}

// receiver is a server that keeps the requests that it gets. It answers by answer, or with 204.
func receiver(t *testing.T, answer http.HandlerFunc) (*httptest.Server, func() []received) {
	t.Helper()
	var all []received
	done := make(chan struct{}, 1)
	done <- struct{}{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		<-done
		all = append(all, received{r.Method, r.Host, r.RequestURI, string(body), r.Header})
		done <- struct{}{}
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s, func() []received {
		<-done
		defer func() { done <- struct{}{} }()
		return all
	}
}

func execute(t *testing.T, h *Host, spec string) (Result, error) {
	t.Helper()
	x := NewHTTP(h)
	t.Cleanup(func() { x.Close() })
	return x.Execute(t.Context(), attempt(spec))
}

func TestHTTPRequest(t *testing.T) {
	s, got := receiver(t, nil)
	host := loopback(map[string]string{"TOKEN": "t0ken", "PATH": s.URL + "/by-secret?x=1"})
	for _, c := range []struct{ spec, want string }{
		{`{"url": "URL/hook"}`, `POST /hook application/json {"args":{"day":"a/b?c=d&e #%","dots":"..","line":"a\nX-Evil: 1","n":12345678901234567890},` +
			`"attempt":1,"fence":3,"interval_end":null,"interval_start":null,"job":"rollup","owner":"ann","run_id":"019a-7","scheduled_for":"2026-11-20T02:30:00.000000Z"}`},
		{`{"url": "URL/${args.day}/x?at=${scheduled_for}", "method": "GET"}`, `GET /a%2Fb%3Fc%3Dd%26e%20%23%25/x?at=2026-11-20T02%3A30%3A00.000000Z  `},
		{`{"url": "${secret:PATH}", "method": "delete"}`, `DELETE /by-secret?x=1  `},
		{`{"url": "URL", "body": "at ${scheduled_for}, <${args.n}>"}`, `POST / text/plain; charset=utf-8 at 2026-11-20T02:30:00.000000Z, <12345678901234567890>`},
		{`{"url": "URL", "method": "PUT", "json": {"n": "${args.n}", "list": ["${scheduled_for}", null, 1.50, "<${secret:TOKEN}>"]}}`,
			`PUT / application/json {"list":["2026-11-20T02:30:00.000000Z",null,1.50,"<t0ken>"],"n":12345678901234567890}`},
		{`{"url": "URL", "json": [], "headers": {"content-type": "application/x-amz-json-1.0"}}`, `POST / application/x-amz-json-1.0 []`},
		{`{"url": "URL#fragment", "method": "HEAD", "expect": ["204"]}`, `HEAD /  `},
	} {
		before := len(got())
		if _, err := execute(t, host, strings.ReplaceAll(c.spec, "URL", s.URL)); err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		r := got()[before]
		if line := fmt.Sprintf("%s %s %s %s", r.method, r.uri, r.header.Get("Content-Type"), r.body); line != c.want {
			t.Errorf("%s: sent\n%s\nwant\n%s", c.spec, line, c.want)
		}
		if r.header.Get("Idempotency-Key") != "019a-7-879915cfdc2c" || r.header.Get("Accept-Encoding") != "" {
			t.Errorf("%s: %v", c.spec, r.header)
		}
	}
}

func TestHTTPLogsIn(t *testing.T) {
	s, got := receiver(t, nil)
	host := loopback(map[string]string{"TOKEN": "t0ken", "BAD": "a\r\nX-Evil: 1", "HOOK": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "NEXT": "whsec_" + strings.Repeat("QUJD", 8)})
	for spec, want := range map[string]string{
		`{"url": "URL", "auth": {"bearer": "${secret:TOKEN}"}}`:                             "Bearer t0ken",
		`{"url": "URL", "auth": {"basic": {"user": "ann", "password": "${secret:TOKEN}"}}}`: "Basic YW5uOnQwa2Vu",
		`{"url": "URL", "auth": {"basic": {"user": "${secret:TOKEN}"}}}`:                    "Basic dDBrZW46",
		`{"url": "URL", "headers": {"Authorization": "Token ${secret:TOKEN}"}}`:             "Token t0ken",
	} {
		before := len(got())
		if _, err := execute(t, host, strings.ReplaceAll(spec, "URL", s.URL)); err != nil {
			t.Error(err)
		} else if a := got()[before].header.Get("Authorization"); a != want {
			t.Errorf("%s: %s", spec, a)
		}
	}
	before := len(got())
	if _, err := execute(t, host, `{"url": "`+s.URL+`", "body": "{}", "secret": ["${secret:HOOK}", "${secret:NEXT}"]}`); err != nil {
		t.Fatal(err)
	}
	h := got()[before].header
	if h.Get("webhook-id") != "019a-7-879915cfdc2c" || h.Get("webhook-timestamp") != "1795161600" || strings.Count(h.Get("webhook-signature"), "v1,") != 2 {
		t.Error(h)
	}
	for spec, want := range map[string]string{
		`{"url": "URL", "auth": {"bearer": "${secret:BAD}"}}`:       "control character",
		`{"url": "URL", "headers": {"X-A": "${args.line}"}}`:        "control character",
		`{"url": "URL", "headers": {"X-A": "${secret:BAD}"}}`:       "control character",
		`{"url": "URL/${args.dots}/x"}`:                             "another path",
		`{"url": "${secret:BAD}"}`:                                  "is no URL",
		`{"url": "URL", "secret": ["${secret:BAD}"]}`:               "whsec_",
		`{"url": "URL", "auth": {"bearer": "${secret:NONE}"}}`:      `does not allow the secret "NONE"`,
		`{"url": "URL", "body": "${args.none}"}`:                    "there is no ${args.none}: neither a request (--arg none=VALUE) nor a job before this one gave it; there are ",
		`{"url": "http://u:geheim@127.0.0.1/", "method": "DELETE"}`: "not belong into a URL",
	} {
		before := len(got())
		_, err := execute(t, host, strings.ReplaceAll(spec, "URL", s.URL))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Evil") || strings.Contains(err.Error(), "geheim") || len(got()) > before {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// TestStandardWebhooks has the test vector of the libraries of Standard Webhooks.
func TestStandardWebhooks(t *testing.T) {
	for _, prefix := range []string{"whsec_", ""} {
		h := http.Header{}
		err := signWebhook(h, []string{prefix + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
		if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || h.Get("webhook-signature") != want || h.Get("webhook-timestamp") != "1614265330" {
			t.Error(err, h)
		}
	}
}

func TestHTTPAnswer(t *testing.T) {
	date := "Fri, 20 Nov 2026 07:00:00 GMT"
	for _, c := range []struct {
		name, spec, err string
		later           time.Duration
		answer          http.HandlerFunc
	}{
		{"expected", `"expect": ["404"]`, "", 0, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "geheim", http.StatusNotFound) }},
		{"expected class", `"expect": ["200", "4xx"]`, "", 0, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "geheim", http.StatusNotFound) }},
		{"not expected", `"expect": ["204", "3xx"]`, "POST URL/x: the answer is 200 OK, want 204 or 3xx: all\ufffd well", 0, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("all\n well")) }},
		{"failed", ``, "POST URL/x: the answer is 500 Internal Server Error, want 2xx", 0, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		{"seconds without end", ``, "POST URL/x: the answer is 503", (1<<31 - 1) * time.Second, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "99999999999999999999")
			w.WriteHeader(http.StatusServiceUnavailable)
		}},
		{"seconds", ``, "POST URL/x: the answer is 503", 120 * time.Second, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusServiceUnavailable)
		}},
		{"date", ``, "POST URL/x: the answer is 429", 10 * time.Minute, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = []string{date}
			w.Header().Set("Retry-After", "Fri, 20 Nov 2026 07:10:00 GMT")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
		{"date without a clock", ``, "POST URL/x: the answer is 429", time.Hour, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = nil
			w.Header().Set("Retry-After", "Fri, 20 Nov 2026 09:00:00 GMT")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
		{"a rate limit of another status", ``, "POST URL/x: the answer is 403", 120 * time.Second, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusForbidden)
		}},
		{"not done yet", `"expect": ["200"]`, "POST URL/x: the answer is 202 Accepted, want 200", 5 * time.Second, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusAccepted)
		}},
		{"a success", ``, "", 0, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusAccepted)
		}},
		{"nonsense", ``, "POST URL/x: the answer is 429", 0, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "soon")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
	} {
		s, _ := receiver(t, c.answer)
		spec := strings.TrimSuffix(`{"url": "`+s.URL+`/x?key=geheim", `+c.spec, ", ") + "}"
		res, err := execute(t, loopback(nil), spec)
		want := strings.ReplaceAll(strings.ReplaceAll(c.err, "\ufffd", ""), "URL", s.URL)
		switch later, ok := errors.AsType[*LaterError](err); {
		case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%s: %v, want %s", c.name, err, want)
		case err != nil && strings.Contains(err.Error(), "geheim"):
			t.Errorf("%s: the query is shown: %v", c.name, err)
		case ok != (c.later > 0), ok && later.Wait != c.later:
			t.Errorf("%s: %+v", c.name, later)
		case !strings.HasPrefix(res.Output, "HTTP/1.1 "):
			t.Errorf("%s: kept %q", c.name, res.Output)
		}
		if failure, ok := errors.AsType[*Error](err); err != nil && (!ok || failure.Code == "" || !strings.Contains(err.Error(), "the answer is "+failure.Code+" ")) {
			t.Errorf("%s: the status is not the number of the error: %+v", c.name, failure)
		}
	}
}

// TestHTTPReadsTheHeadOnly: an answer that never ends does no harm.
func TestHTTPReadsTheHeadOnly(t *testing.T) {
	ended := make(chan struct{})
	s, _ := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	res, err := execute(t, loopback(nil), `{"url": "`+s.URL+`"}`)
	if err != nil || len(res.Output) > httpHead+500 || len(res.Output) < httpHead {
		t.Errorf("%d bytes, %v", len(res.Output), err)
	}
	<-ended
}

// TestHTTPHidesBeforeItCuts: if the server quotes a secret, no part of it is kept, wherever the answer is cut.
func TestHTTPHidesBeforeItCuts(t *testing.T) {
	host := loopback(map[string]string{"TOKEN": strings.Repeat("geheim", 100)})
	for _, before := range []int{0, 150, httpHead - 300} {
		s, _ := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, strings.Repeat("x", before)+" unknown: "+r.Header.Get("Authorization")+strings.Repeat(" and more", 1000))
		})
		res, err := execute(t, host, `{"url": "`+s.URL+`", "auth": {"bearer": "${secret:TOKEN}"}}`)
		if err == nil || strings.Contains(err.Error(), "geheim") || strings.Contains(res.Output, "geheim") || !strings.Contains(res.Output, "[hidden]") {
			t.Errorf("after %d bytes: %v\n%s", before, err, res.Output)
		}
	}
}

func TestHTTPStopsWithItsContext(t *testing.T) {
	s, _ := receiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	why := errors.New("timeout")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
	defer cancel()
	x := NewHTTP(loopback(nil))
	defer x.Close()
	if _, err := x.Execute(ctx, attempt(`{"url": "`+s.URL+`"}`)); !errors.Is(err, why) {
		t.Error(err)
	}
}

// TestHTTPStopsAtAnotherProtocol: a server that switches to another protocol, and then says nothing, holds nobody up.
func TestHTTPStopsAtAnotherProtocol(t *testing.T) {
	gone := make(chan struct{})
	s, _ := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
		_, _ = conn.Read(make([]byte, 1)) // until the client has gone
		close(gone)
	})
	if _, err := execute(t, loopback(nil), `{"url": "`+s.URL+`"}`); err == nil || !strings.Contains(err.Error(), "the answer is 101") {
		t.Error(err)
	}
	<-gone
}

func TestHTTPRedirects(t *testing.T) {
	other, reached := receiver(t, nil)
	for _, c := range []struct {
		name, method, location, err string
		status                      int
		uris                        string
	}{
		{"same server", "GET", "/b?x=1", "", 302, "/a /b?x=1"},
		{"same server, with its body", "POST", "b", "", 307, "/a /b"},
		{"a POST would become a GET", "POST", "/b", "the answer is 302 Found, want 2xx", 302, "/a"},
		{"another server", "GET", other.URL + "/?geheim", "redirects to another server are not followed; give the URL that it leads to, at \"" + other.URL + "\"", 308, "/a"},
		{"another scheme", "GET", "https://SELF/b", "another server", 301, "/a"},
		{"no URL", "GET", "http://[", "leads to no URL", 301, "/a"},
		{"the metadata of a cloud", "GET", "http://169.254.169.254/latest/", "another server", 302, "/a"},
		{"a circle", "GET", "/a", "the answer is 302", 302, "/a /a /a /a /a /a"},
	} {
		var self string
		s, got := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.RequestURI, "/b") {
				return
			}
			w.Header().Set("Location", strings.ReplaceAll(c.location, "SELF", self))
			w.WriteHeader(c.status)
		})
		self = s.Listener.Addr().String()
		_, err := execute(t, loopback(nil), fmt.Sprintf(`{"url": "%s/a", "method": %q}`, s.URL, c.method))
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, want %s", c.name, err, c.err)
		}
		var uris []string
		for _, r := range got() {
			uris = append(uris, r.uri)
			if r.method != c.method || r.body != got()[0].body {
				t.Errorf("%s: %s %s", c.name, r.method, r.body)
			}
		}
		if strings.Join(uris, " ") != c.uris {
			t.Errorf("%s: asked for %v, want %s", c.name, uris, c.uris)
		}
	}
	if len(reached()) > 0 {
		t.Error("the other server was reached")
	}
}

func TestHTTPSpecProblems(t *testing.T) {
	for spec, want := range map[string]string{
		`{}`:                                                                                         "http.url: is missing, and http needs it",
		`{"url": "ftp://h"}`:                                                                         `http.url: found a URL with the scheme "ftp", want https or http`,
		`{"url": "example.org/x"}`:                                                                   `http.url: found a URL with the scheme ""`,
		`{"url": "https:///x"}`:                                                                      "http.url: found a URL without a host",
		`{"url": "https://h:99999/"}`:                                                                "http.url: found a URL with a port that is none of",
		`{"url": "https://u:geheim@h/"}`:                                                             "http.url: a user and password do not belong into a URL",
		`{"url": "https://h/ geheim\u0007"}`:                                                         "http.url: is no URL",
		`{"url": "https://h/${run_di}"}`:                                                             "http.url: ${run_di} is not known",
		`{"url": "https://h/${secret:}"}`:                                                            "http.url: ${secret:} names no secret",
		`{"url": "https://h", "method": "PSOT"}`:                                                     `http.method: found "PSOT", want one of POST, GET`,
		`{"url": "https://h", "method": "GET", "json": 1}`:                                           "http.method: GET has no body",
		`{"url": "https://h", "body": "a", "json": 1}`:                                               "http.json: the request has a body twice",
		`{"url": "https://h", "body": ""}`:                                                           "http.body: is empty, which would send the facts of the run; leave body out for these, or write json: {}",
		`{"url": "https://h", "Body": null}`:                                                         "http.body: is empty",
		`{"url": "https://h", "json": null}`:                                                         "http.json: is empty, which would send the facts of the run; leave json out for these, or write json: {}",
		`{"url": "https://h", "body": "", "method": "GET"}`:                                          "http.body: is empty",
		`{"url": "https://h", "json": {"a": ["${x}"]}}`:                                              "http.json.a[0]: ${x} is not known",
		`{"url": "https://h", "headers": {"X A": "1"}}`:                                              `http.headers.X A: "X A" cannot be the name of a header`,
		`{"url": "https://h", "headers": {"host": "x"}}`:                                             "http.headers.host: the header Host follows",
		`{"url": "https://h", "headers": {"transfer-ENCODING": "chunked"}}`:                          `header Transfer-Encoding follows`,
		`{"url": "https://h", "headers": {"CONTENT-length": "0"}}`:                                   `header Content-Length follows`,
		`{"url": "https://h", "headers": {"Transfer-Encoding ": "chunked"}}`:                         `cannot be the name of a header`,
		`{"url": "https://h", "headers": {"X:\r\nHost": "x"}}`:                                       `cannot be the name of a header`,
		`{"url": "https://h", "headers": {"X": "a\nb"}}`:                                             "http.headers.X: has a control character",
		`{"url": "https://h", "headers": {"X": "${x}"}}`:                                             "http.headers.X: ${x} is not known",
		`{"url": "https://h", "expect": ["200", "2x"]}`:                                              `http.expect[1]: found "2x", want a status`,
		`{"url": "https://h", "secret": ["whsec_geheim"]}`:                                           "http.secret[0]: a secret does not belong into a definition",
		`{"url": "https://h", "auth": {}}`:                                                           "http.auth: want exactly one of",
		`{"url": "https://h", "auth": {"bearer": "geheim"}}`:                                         "http.auth.bearer: a secret does not belong",
		`{"url": "https://h", "auth": {"basic": {"user": "a:b", "password": "${secret:X}"}}}`:        "http.auth.basic.user: is missing or has a colon",
		`{"url": "https://h", "auth": {"basic": {"user": "a", "password": "geheim"}}}`:               "http.auth.basic.password: a secret does not belong",
		`{"url": "https://h", "auth": {"bearer": "${secret:X}"}, "headers": {"authorization": "x"}}`: "http.headers.authorization: the header Authorization is given twice",
		`{"url": "https://h", "heders": {}}`:                                                         `unknown field "heders"`,
	} {
		_, err := readHTTP(json.RawMessage(spec))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v\nwant %s", spec, err, want)
		}
	}
	for spec, want := range map[string]string{
		`{"url": "https://u:geheim@h:1/a?geheim#x", "method": "PUT"}`: "PUT https://h:1/a",
		`{"url": "${secret:X}"}`:           "POST ${secret:X}",
		`{"url": "https://h/${run_id}/a"}`: "POST https://h/${run_id}/a",
	} {
		if got := httpKind.Line(json.RawMessage(spec)); got != want {
			t.Errorf("%s: %s", spec, got)
		}
	}
}
