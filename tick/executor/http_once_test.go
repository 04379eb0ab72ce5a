package executor

import (
	"net/http"
	"testing"
)

// TestHTTPIsSentOnce: the server takes a request on a connection that was used before, and drops it without an answer. The attempt
// fails, and the request is not sent again.
func TestHTTPIsSentOnce(t *testing.T) {
	for _, request := range []string{`"method": "GET"`, `"method": "DELETE"`, `"method": "POST"`, `"method": "POST", "body": ""`} {
		s, got := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/drop" {
				return
			}
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
		})
		x := NewHTTP(loopback(nil))
		if _, err := x.Execute(t.Context(), attempt(`{"url": "`+s.URL+`", `+request+`}`)); err != nil {
			t.Error(err)
		}
		if _, err := x.Execute(t.Context(), attempt(`{"url": "`+s.URL+`/drop", `+request+`}`)); err == nil {
			t.Errorf("%s: it has not failed", request)
		}
		if n := len(got()); n != 2 {
			t.Errorf("%s: the server got %d requests, want 2", request, n)
		}
		x.Close()
	}
}
