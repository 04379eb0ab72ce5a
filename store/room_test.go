package store_test

import (
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// The limit of a login bounds the number of connections that a server has left for it. A file has no such bound.
func TestRoomIsWhatTheLoginStillGets(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		left, known, err := d.Room(t.Context())
		if err != nil || known == (d.Engine == "sqlite") || known && left <= 0 {
			t.Fatal(left, known, err)
		}
		if !known {
			return
		}
		login, url := d.Account(t, "ticker")
		limit := map[string]string{"postgres": "ALTER ROLE " + login + " CONNECTION LIMIT 3", "mariadb": "ALTER USER '" + login + "'@'%' WITH MAX_USER_CONNECTIONS 3"}[d.Engine]
		d.Exec(t, limit)
		s, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if left, known, err := s.Room(t.Context()); err != nil || !known || left > 3 {
			t.Error(left, known, err)
		}
	})
}
