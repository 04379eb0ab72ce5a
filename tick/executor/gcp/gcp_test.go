package gcp

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

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
