package engine

import (
	"context"
	"testing"

	"github.com/dbjobs/dbjobs/store/secret"
)

// TestPublicPassword: a password that the URL also has as a name is no secret, also where connections ask for it again. One that
// is in its place later is hidden.
func TestPublicPassword(t *testing.T) {
	for _, scheme := range []string{"postgres", "mysql"} {
		password, known := "dbjobs", &secret.Known{}
		login := func(context.Context) (string, string, error) { return "dbjobs", password, nil }
		db, err := New(scheme+"://dbjobs:dbjobs@127.0.0.1:1/dbjobs", Options{Login: login, Secrets: known})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ password, text, shown string }{
			{"dbjobs", "job dbjobs/nightly", "job dbjobs/nightly"},
			{"another-one", "another-one is of dbjobs", "[hidden] is of dbjobs"},
		} {
			password = c.password
			if _, _, err := db.login(t.Context()); err != nil {
				t.Fatal(err)
			}
			if shown := known.Hide(c.text); shown != c.shown {
				t.Errorf("%s: %q, want %q", scheme, shown, c.shown)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
