package executor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func tell(t *testing.T, ctx context.Context, h *Host, to Heartbeat, s Signal, line string) error {
	t.Helper()
	x := NewHTTP(h)
	t.Cleanup(func() { x.Close() })
	return x.Tell(ctx, to, News{Signal: s, ID: "019a-7", Owner: "ann", Line: line, Facts: map[string]any{"job": "a/b c"}})
}

// One URL gets the suffixes that healthchecks.io and others know, and rid=, which pairs start and end.
func TestHeartbeatOfOneURL(t *testing.T) {
	s, got := receiver(t, nil)
	h := loopback(map[string]string{"KEY": "p1ng-k3y"})
	for _, to := range []Heartbeat{{URL: s.URL + "/${secret:KEY}/${job}?create=1"}, {URL: s.URL + "/${secret:KEY}/${job}/?create=1"}, {URL: s.URL}} {
		for _, signal := range []Signal{Begins, Success, Failure} {
			if err := tell(t, t.Context(), h, to, signal, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tell(t, t.Context(), h, Heartbeat{URL: s.URL}, Failure, "two lines\nwith p1ng-k3y "+strings.Repeat("x", 1000)); err != nil {
		t.Fatal(err)
	}
	var uris []string
	for _, r := range got() {
		if uris = append(uris, r.uri); r.method != http.MethodPost {
			t.Errorf("%s %s", r.method, r.uri)
		}
	}
	const at = "/p1ng-k3y/a%2Fb%20c"
	want := []string{at + "/start?create=1&rid=019a-7", at + "?create=1&rid=019a-7", at + "/fail?create=1&rid=019a-7",
		at + "/start?create=1&rid=019a-7", at + "/?create=1&rid=019a-7", at + "/fail?create=1&rid=019a-7",
		"/start?rid=019a-7", "/?rid=019a-7", "/fail?rid=019a-7", "/fail?rid=019a-7"}
	if !slices.Equal(uris, want) {
		t.Errorf("got %q\nwant %q", uris, want)
	}
	last := got()[len(want)-1]
	if !strings.HasPrefix(last.body, "two lines with [hidden] xx") || len(last.body) != tellLine || last.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("the body is %q of %d bytes, as %s", last.body, len(last.body), last.header.Get("Content-Type"))
	}
}

// A URL for one signal gets a request as it is written. A signal without a URL sends no request.
func TestHeartbeatOfAURLForEachSignal(t *testing.T) {
	s, got := receiver(t, nil)
	to := Heartbeat{Success: s.URL + "/?state=complete&msg=${message}", Failure: s.URL + "/?state=fail&job=${job}"}
	for _, signal := range []Signal{Begins, Success, Failure} {
		if err := tell(t, t.Context(), loopback(nil), to, signal, "1 & 2"); err != nil {
			t.Fatal(err)
		}
	}
	var uris []string
	for _, r := range got() {
		uris = append(uris, r.method+" "+r.uri+r.body)
	}
	if want := []string{"GET /?state=complete&msg=1%20%26%202", "GET /?state=fail&job=a%2Fb%20c"}; !slices.Equal(uris, want) {
		t.Errorf("got %q\nwant %q", uris, want)
	}
}

// After an error that may pass, the request is tried again, with the same key. After another error, it is not. No error
// has the path, which is a secret.
func TestHeartbeatThatIsNotTaken(t *testing.T) {
	elsewhere, reached := receiver(t, nil)
	for _, c := range []struct {
		answers []int
		want    string
	}{
		{[]int{500, 429, 200}, ""},
		{[]int{500, 500, 500}, "the answer is 500 Internal Server Error"},
		{[]int{404}, "the answer is 404 Not Found"},
		{[]int{302}, "the answer is 302 Found, and a heartbeat follows no redirect"},
	} {
		n := 0
		s, got := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(c.answers[min(n, len(c.answers)-1)])
			n++
		})
		err := tell(t, t.Context(), loopback(nil), Heartbeat{URL: s.URL + "/geheim"}, Success, "done")
		if told := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(told, s.URL+": "+c.want)) || strings.Contains(told, "geheim") {
			t.Errorf("%v: %v, want %s", c.answers, err, c.want)
		}
		if len(got()) != len(c.answers) {
			t.Errorf("%v: %d tries", c.answers, len(got()))
		}
		for _, r := range got() {
			if r.header.Get("Idempotency-Key") != "019a-7-success" || r.body != "done" {
				t.Errorf("%v: sent %+v", c.answers, r)
			}
		}
	}
	if len(reached()) > 0 {
		t.Error("a redirect was followed")
	}
}

// A server that never answers is waited for as long as the caller says.
func TestHeartbeatThatHangs(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("too late")
	s, _ := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(late)
		<-r.Context().Done()
	})
	if err := tell(t, ctx, loopback(nil), Heartbeat{URL: s.URL}, Begins, ""); !errors.Is(err, late) {
		t.Error(err)
	}
}

// A job's heartbeat goes where its owner may send requests, and no further.
func TestHeartbeatNeedsAPermission(t *testing.T) {
	s, got := receiver(t, nil)
	for name, h := range map[string]*Host{"nil": nil, "zero": {}} {
		if err := tell(t, t.Context(), h, Heartbeat{URL: s.URL}, Begins, ""); err == nil || !strings.Contains(err.Error(), "does not allow connections to 127.0.0.1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := tell(t, t.Context(), loopback(nil), Heartbeat{URL: s.URL + "/${secret:KEY}"}, Begins, ""); err == nil || !strings.Contains(err.Error(), `does not allow the secret "KEY"`) {
		t.Error(err)
	}
	if len(got()) > 0 {
		t.Errorf("received %+v", got())
	}
}

// URLs of one server have one name, also where the server is known only with a secret.
func TestServiceOfASignal(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"https://hc-ping.com/${job}?a=b": "https://hc-ping.com",
		"https://hc-ping.com?to=x":       "https://hc-ping.com",
		"https://${secret:HOST}:8443/a":  "https://${secret:HOST}:8443",
		"${secret:PING}/${job}":          "${secret:PING}",
	} {
		if got := (Heartbeat{URL: text}).Service(Begins); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := (Heartbeat{Success: "https://a/b"}).Service(Begins); got != "" {
		t.Errorf("a signal that is not sent: %q", got)
	}
}
