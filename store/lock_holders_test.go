package store_test

import (
	"context"
	"database/sql"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// The time since which a session holds a lock is that of the clock of the database, in UTC, whatever the zone of the sessions.
func TestLockHoldersAreToldWithTheirTimes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		zone := map[string]string{"postgres": "timezone=Asia/Tokyo", "mariadb": "time_zone='%2B09:00'"}[d.Engine]
		if zone == "" {
			t.Skip("SQLite does not know who has the file locked")
		}
		u, err := url.Parse(d.URL)
		if err != nil {
			t.Fatal(err)
		}
		if u.RawQuery != "" {
			zone = u.RawQuery + "&" + zone
		}
		u.RawQuery = zone
		s, err := store.Open(t.Context(), u.String(), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		holder := storetest.SQL(t, s)
		begun := time.Now()
		tx, err := holder.BeginTx(t.Context(), &sql.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.Exec("UPDATE " + d.Table("installation") + " SET migrated_at = migrated_at"); err != nil {
			t.Fatal(err)
		}
		said := s.LockHolders(t.Context())
		if d.Engine != "postgres" { // there, the login of the tests may not see sessions, and the text names the right that it needs
			if !strings.Contains(said, "PROCESS") {
				t.Error(said)
			}
			return
		}
		found := regexp.MustCompile(`^locks are held by session \d+ \(login .*, its transaction is open since (\S+)\)$`).FindStringSubmatch(said)
		if found == nil {
			t.Fatal(said)
		}
		since, err := time.Parse(time.RFC3339, found[1])
		if off := since.Sub(begun).Abs(); err != nil || off > time.Minute {
			t.Errorf("%s: off by %s, %v", said, off, err)
		}
	})
}

// A database that does not answer has not said that nobody holds a lock.
func TestLockHoldersOfADatabaseThatDoesNotAnswer(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Store.Engine().OneWriter {
			t.Skip("SQLite does not know who has the file locked")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		const want = "the database did not tell which sessions hold locks"
		if said := d.LockHolders(ctx); said != want {
			t.Errorf("%q, want %q", said, want)
		}
	})
}
