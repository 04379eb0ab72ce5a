package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestServeRefusesPages: where everybody may call, no page in a browser may, from whatever site, also if the name of that site
// leads to this host.
func TestServeRefusesPages(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := &handler{ending: t.Context(), timeout: time.Minute, refusals: newCLI(strings.NewReader(""), &log, &log, func(string) (string, bool) { return "", false })}
	srv := httptest.NewServer(h.routes())
	t.Cleanup(srv.Close)
	for origin, want := range map[string]int{"": http.StatusBadRequest, "null": http.StatusForbidden, "https://evil.example": http.StatusForbidden, srv.URL: http.StatusForbidden} {
		for _, path := range []string{"/tick?limit=no", "/work?limit=no"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader("a=b"))
			if err != nil {
				t.Fatal(err)
			}
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			a, err := srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			a.Body.Close()
			if a.StatusCode != want {
				t.Errorf("%s from %q: %d, want %d", path, origin, a.StatusCode, want)
			}
		}
	}
	srv.Close()
	if !strings.Contains(log.String(), "a page in a browser sent it") {
		t.Errorf("the log does not say why: %s", &log)
	}
}
