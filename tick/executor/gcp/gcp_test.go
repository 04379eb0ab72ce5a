package gcp

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The metadata server is out of reach for a moment while its host is maintained, and asks to be asked again. A refusal stays.
func TestTokensAreAskedForAgain(t *testing.T) {
	var answers []int
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		w.WriteHeader(answers[min(asked, len(answers)-1)])
		asked++
		_, _ = w.Write([]byte(`{"access_token": "one"}`))
	}))
	t.Cleanup(s.Close)
	env := func(name string) (string, bool) { return s.Listener.Addr().String(), name == "GCE_METADATA_HOST" }
	for _, c := range []struct {
		answers []int
		given   bool
		asked   int
	}{{[]int{503, 429, 200}, true, 3}, {[]int{503}, false, 3}, {[]int{404}, false, 1}} {
		answers, asked = c.answers, 0
		if _, err := AccessToken(t.Context(), env); (err == nil) != c.given || asked != c.asked {
			t.Errorf("%v: %v after %d requests", c.answers, err, asked)
		}
	}
}

// A process on Cloud Run is frozen between two passes. A connection that was kept over that leads nowhere, and the request
// on it would wait for its timeout.
func TestNoConnectionIsKept(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; !r.Close {
			t.Error("the connection is to be kept")
		}
		w.Header().Set("Metadata-Flavor", "Google")
		_, _ = w.Write([]byte(`{"access_token": "one"}`))
	}))
	t.Cleanup(s.Close)
	env := func(name string) (string, bool) { return s.Listener.Addr().String(), name == "GCE_METADATA_HOST" }
	if token, err := AccessToken(t.Context(), env); err != nil || token != "one" || asked != 1 {
		t.Errorf("%v: %q after %d requests", err, token, asked)
	}
}
