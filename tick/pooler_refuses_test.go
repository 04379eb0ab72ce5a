//go:build unix

package tick_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A pooler that lets nobody in says so in codes of its own: the database is out of reach all the same.
func TestAPoolerThatLetsNobodyIn(t *testing.T) {
	if !slices.Contains(storetest.Engines(t), "postgres") {
		t.Skip("PgBouncer stands before PostgreSQL")
	}
	pooled := behindPooler(t, storetest.URL(t, "postgres"), 1)
	for what, change := range map[string]func(*url.URL){
		"a wrong password": func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "wrong") },
		"an unknown user":  func(u *url.URL) { u.User = url.UserPassword("nobody", "wrong") },
		"no such database": func(u *url.URL) { u.Path = "/no_such_database" },
	} {
		u, err := url.Parse(pooled)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		s, err := store.Open(t.Context(), u.String(), store.Options{})
		if err == nil {
			_, err = s.Now(t.Context())
			s.Close()
		}
		if !errors.Is(err, store.ErrUnreachable) || strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
