package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// What needs a secret waits no longer than its own time lasts, however long the secrets extension takes.
func TestASecretIsReadWithinTheTimeOfItsReader(t *testing.T) {
	asked, over := make(chan bool, 99), make(chan bool)
	extension := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- true
		<-over
	}))
	t.Cleanup(extension.Close)
	t.Cleanup(func() { close(over) })
	at, err := url.Parse(extension.URL)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(lookup(map[string]string{"PARAMETERS_SECRETS_EXTENSION_HTTP_PORT": at.Port(), Variable: `secrets: {KEY: {value_aws_secret: arn:key}}`}), nil)
	if err != nil {
		t.Fatal(err)
	}
	x := executor.NewHTTP(s.Leaves(&secret.Known{}))
	t.Cleanup(func() { x.Close() })
	ends := errors.New("no answer before the end of the pass")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(ends)
	}()
	if err := x.Tell(ctx, executor.Heartbeat{URL: "https://hc.example.org/${secret:KEY}"}, executor.News{Signal: executor.Success}); !errors.Is(err, ends) {
		t.Errorf("%v, want that there was %v", err, ends)
	}
}

// A value may be in a file on a file server that is away. Nothing ends the read of it, but a step, a signal or a command waits for it
// no longer than its own time lasts.
func TestAFileThatIsAway(t *testing.T) {
	path, _ := storetest.Away(t, "sqlite:away.db")
	text := `databases: {one: {url_file: %[1]q}}
secrets: {HOOK: {value_file: %[1]q}}
targets: {far: {url_file: %[1]q}}
owners: {ann: {url_file: %[1]q}}
mail: {server: mx.example.org, from: jobs@example.org, user: jobs, password_file: %[1]q}
heartbeat: {url_file: %[1]q}
`
	s, err := Load(lookup(map[string]string{Variable: fmt.Sprintf(text, path)}), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := s.Leaves(&secret.Known{})
	m, err := h.Mail("ann")
	if err != nil {
		t.Fatal(err)
	}
	over := errors.New("the time of the step is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	for name, read := range map[string]executor.Read{
		"secret":   func(ctx context.Context) (string, error) { return h.Secret(ctx, "ann", "HOOK") },
		"target":   func(ctx context.Context) (string, error) { return h.Target(ctx, "ann", "far") },
		"password": m.Password,
		"login":    h.Logins["ann"],
		"heartbeat": func(ctx context.Context) (string, error) {
			to, _, err := s.Monitor(ctx, nil)
			return to.URL, err
		},
	} {
		if v, err := read(ctx); v != "" || !errors.Is(err, over) {
			t.Errorf("%s: %q, %v; want that the time is over", name, v, err)
		}
	}
	_, _, err = s.URL(ctx, s.Databases[0].Source)
	if _, unread := errors.AsType[*settings.UnreadError](err); !unread {
		t.Errorf("the database: %v, want that the file was not read in time", err)
	}
}
