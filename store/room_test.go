package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

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

// The connections of others take nothing from what a login may have for itself.
func TestRoomOfALoginBesideOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("a file has no bound of connections")
		}
		const limit, others = 3, 4
		login, url := d.Account(t, "ticker")
		d.Exec(t, fmt.Sprintf(map[string]string{"postgres": "ALTER ROLE %s CONNECTION LIMIT %d", "mariadb": "ALTER USER '%s'@'%%' WITH MAX_USER_CONNECTIONS %d"}[d.Engine], login, limit))
		s, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range others {
			conn, err := d.SQL.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		if left, known, err := s.Room(t.Context()); err != nil || !known || left != limit-1 {
			t.Errorf("room for %d more, known %t, %v; want %d", left, known, err, limit-1)
		}
	})
}

// Jobs do not take the last connection that a login may have: the store needs it for the heartbeats of their runs.
func TestJobsLeaveTheStoreAConnection(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("a file has no bound of connections")
		}
		login, url := d.Account(t, "ticker")
		d.Exec(t, map[string]string{"postgres": "ALTER ROLE " + login + " CONNECTION LIMIT 2", "mariadb": "ALTER USER '" + login + "'@'%' WITH MAX_USER_CONNECTIONS 2"}[d.Engine])
		s, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		sessions, err := s.JobSessions(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer sessions.Close()
		first, err := sessions.Take(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if second, err := sessions.Take(soon, nil); err == nil {
			second.Release(false)
			t.Error("a second job got the connection of the store")
		}
		if _, _, err := s.Room(t.Context()); err != nil {
			t.Error(err)
		}
		first.Release(false)
	})
}
