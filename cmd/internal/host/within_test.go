package host

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/dbjobs/dbjobs/store/secret"
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
