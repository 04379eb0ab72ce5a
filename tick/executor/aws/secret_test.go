package aws

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestASecretIsAskedForAgain: Secrets Manager, behind the extension, may fail or throttle for a moment, and is asked as often as
// any other platform. The extension itself may begin to answer later.
func TestASecretIsAskedForAgain(t *testing.T) {
	type answer struct {
		status int
		text   string
	}
	const secret = "postgres://jobs@db/app"
	given := answer{http.StatusOK, `{"SecretString": "` + secret + `"}`}
	fails, throttles := answer{http.StatusInternalServerError, "InternalServiceError"}, answer{http.StatusTooManyRequests, "too many connections"}
	begins := answer{http.StatusBadRequest, "not ready to serve traffic, please wait"}
	for name, c := range map[string]struct {
		answers []answer // the last one again and again
		given   bool
		asked   int
	}{
		"fails for a moment":         {[]answer{fails, fails, given}, true, 3},
		"throttles for a moment":     {[]answer{{http.StatusBadRequest, "ThrottlingException: Rate exceeded"}, throttles, given}, true, 3},
		"throttles":                  {[]answer{throttles}, false, 3},
		"begins":                     {[]answer{begins, begins, begins, begins, begins, given}, true, 6},
		"begins, then fails, and so": {[]answer{begins, fails, begins, fails, given}, true, 5},
		"refuses":                    {[]answer{{http.StatusBadRequest, "AccessDeniedException"}}, false, 1},
	} {
		asked, passes := 0, strings.HasPrefix(name, "throttles")
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			a := c.answers[min(asked, len(c.answers)-1)]
			asked++
			w.WriteHeader(a.status)
			_, _ = w.Write([]byte(a.text))
		}))
		t.Cleanup(s.Close)
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		text, err := Secret(t.Context(), environment(map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port}), "arn:jobs")
		if (err == nil && text == secret) != c.given || asked != c.asked {
			t.Errorf("%s: %q, %v after %d requests; want %d", name, text, err, asked, c.asked)
		}
		if _, momentary := errors.AsType[MomentaryError](err); err != nil && momentary != passes {
			t.Errorf("%s: %v: it passes: %v", name, err, momentary)
		}
	}
}

// TestARefusalIsNotQuoted: what answers on the extension's port may be anything, and is sent the session's token.
func TestARefusalIsNotQuoted(t *testing.T) {
	followed := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	t.Cleanup(elsewhere.Close)
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"refused", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "AccessDeniedException: geheim, "+r.Header.Get("X-Aws-Parameters-Secrets-Token"), http.StatusForbidden)
		}, "status 403: AccessDeniedException ("},
		{"unknown", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "geheim", http.StatusTeapot) }, "status 418 ("},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/?geheim", http.StatusTemporaryRedirect)
		}, "status 307 ("},
		{"not JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("geheim")) }, "not JSON"},
	} {
		s := httptest.NewServer(c.answer)
		t.Cleanup(s.Close)
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		_, err := Secret(t.Context(), environment(map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port, "AWS_SESSION_TOKEN": "geheimes"}), "arn:jobs")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if followed {
		t.Error("the token was sent to whom the extension's port named")
	}
}

// TestASecretOfAnExtensionThatIsMissing: nobody listens, which does not pass. One that takes the request and does not answer waits for
// Secrets Manager.
func TestASecretOfAnExtensionThatIsMissing(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() }) // until then, the kernel takes connections
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for name, c := range map[string]struct {
		port   string
		passes bool
	}{"no answer": {port, true}, "nobody listens": {"1", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Secret(t.Context(), environment(map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": c.port}), "arn:jobs")
			if _, momentary := errors.AsType[MomentaryError](err); err == nil || momentary != c.passes {
				t.Errorf("%v: it passes: %v", err, momentary)
			}
		})
	}
}

// TestASecretOfAnExtensionThatFallsSilent: the error is what the extension has said, and not that a later request was cut.
func TestASecretOfAnExtensionThatFallsSilent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			http.Error(w, "not ready to serve traffic, please wait", http.StatusBadRequest)
			return
		}
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	_, err := Secret(ctx, environment(map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port}), "arn:jobs")
	if err == nil || !strings.Contains(err.Error(), "is not ready to read arn:jobs") {
		t.Errorf("%v", err)
	}
}
