package executor

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"
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
