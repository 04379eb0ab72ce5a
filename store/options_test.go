package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// openWith opens a database with an option in its URL. Nothing listens there.
func openWith(t *testing.T, option string) error {
	t.Helper()
	s, err := store.Open(t.Context(), "postgres://ann@127.0.0.1:1/d?"+option, store.Options{})
	if err == nil {
		s.Close()
	}
	return err
}

// TestPostgresOptions: an option with the wrong name is refused before anything is sent.
func TestPostgresOptions(t *testing.T) {
	for option, meant := range map[string]string{
		"sslmod=disable": "sslmode", "sslMode=disable": "sslmode", "ssl-mode=require": "sslmode", "sslrootcrt=x": "sslrootcert", "ssl_root_cert=x": "sslrootcert",
		"ssl_cert=x": "sslcert", "connect_timout=geheim": "connect_timeout", "connectTimeout=5": "connect_timeout", "target_session_attr=any": "target_session_attrs",
		"pasword=geheim": "password",
	} {
		err := openWith(t, option)
		name, _, _ := strings.Cut(option, "=")
		var bad *store.URLError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), `there is no "`+name+`"; is `+meant+` meant?`) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, want %s", option, err, meant)
		}
	}
	for _, option := range []string{"search_path=app", "statement_timeout=5s", "TimeZone=UTC", "app.user=ann", "sslmode=prefer&connect_timeout=2"} {
		if err := openWith(t, option); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// TestPostgresParameters: a URL may set each parameter that a server has.
func TestPostgresParameters(t *testing.T) {
	storetest.Needs(t, "postgres")
	rows, err := storetest.Open(t, "postgres", store.Options{}).SQL.QueryContext(t.Context(), "SELECT name FROM pg_settings WHERE name <> 'port'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if err := openWith(t, name+"=on"); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
		n++
	}
	if err := rows.Err(); err != nil || n < 100 {
		t.Errorf("%d parameters, %v", n, err)
	}
}
