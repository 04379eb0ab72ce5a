package aws

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestASecretIsAskedForAgain: Secrets Manager, behind the extension, may fail for a moment.
func TestASecretIsAskedForAgain(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			http.Error(w, "InternalServiceError", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(`{"SecretString": "postgres://jobs@db/app"}`))
	}))
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	text, err := Secret(t.Context(), environment(map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": port}), "arn:jobs")
	if err != nil || text != "postgres://jobs@db/app" || asked != 3 {
		t.Errorf("%q, %v after %d requests", text, err, asked)
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
