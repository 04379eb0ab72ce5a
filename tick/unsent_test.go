package tick_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The pass ends before a step has sent anything: it waits for a secret, or for a connection to a server. A run with one delivery
// is then delivered again: what it does at most once has not been done. It is lost if a server may have received the request.
func TestDeliveryOnceThatHasSentNothing(t *testing.T) {
	for name, c := range map[string]struct{ kind, spec, want string }{
		"a request waits for a secret":     {"http", `{"url": "http://SERVER", "auth": {"bearer": "${secret:SLOW}"}}`, store.Waiting},
		"a request waits for a connection": {"http", `{"url": "https://SILENT"}`, store.Waiting},
		"a request waits for its answer":   {"http", `{"url": "http://SERVER"}`, store.Lost},
		"a redirect waits for its answer":  {"http", `{"url": "http://SERVER/first", "method": "GET"}`, store.Lost},
		"a mail waits for the password":    {"mail", `{"to": ["ann@example.org"], "subject": "x", "text": "x"}`, store.Waiting},
		"a statement waits for a secret":   {"sql", `{"sql": ["SELECT 1 WHERE 'x' = PLACE"], "args": ["${secret:SLOW}"]}`, store.Waiting},
		"a target waits for its URL":       {"sql", `{"sql": ["SELECT 1"], "target": "slow"}`, store.Waiting},
		"a program waits for a secret":     {"exec", `{"run": ["/bin/true"], "env": {"X": "${secret:SLOW}"}}`, store.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				slow := func(within context.Context) (string, error) {
					cancel()
					<-within.Done()
					return "", within.Err()
				}
				over := make(chan struct{})
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/first" {
						http.Redirect(w, r, "/second", http.StatusFound)
						return
					}
					cancel()
					<-over
				}))
				defer server.Close()
				defer close(over)
				silent, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer silent.Close()
				go func() {
					if c, err := silent.Accept(); err == nil { // TLS does not begin
						cancel()
						<-over
						_ = c.Close()
					}
				}()
				host := &executor.Host{
					Own:       true,
					Secrets:   map[string]executor.Secret{"SLOW": {Value: slow}},
					Targets:   map[string]executor.Target{"slow": {URL: slow}},
					Mailer:    &executor.MailServer{Server: "127.0.0.1", From: "dbjobs@example.org", User: "dbjobs", Password: slow},
					Addresses: []executor.Addresses{{Range: netip.MustParsePrefix("127.0.0.0/8")}},
				}
				tk := ticktest.New(t, d.Store)
				if tk.Executors, err = executor.Open(d.Store, host); err != nil {
					t.Fatal(err)
				}
				place := "?"
				if d.Engine == "postgres" {
					place = "$1"
				}
				spec := strings.NewReplacer("SERVER", strings.TrimPrefix(server.URL, "http://"), "SILENT", silent.Addr().String(), "PLACE", place).Replace(c.spec)
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 1, Steps: []store.Step{{Executor: c.kind, Spec: []byte(spec)}}}}})
				ticktest.Request(t, d, "job")
				if _, err := tk.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if got := ticktest.LastRun(t, d, "job"); got.State != c.want || got.Losses > 0 {
					t.Errorf("the run is %s with %d losses: %s; want %s", got.State, got.Losses, got.Error, c.want)
				}
			})
		})
	}
}
