package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// eachLimited runs a test on each engine whose server ends idle sessions. The test gets a store that
// has the job a, and whose sessions have a setting. It also gets a function that waits until the server
// has ended all of these sessions. The tables and the job are made in sessions without the setting.
func eachLimited(t *testing.T, settings map[string]string, test func(t *testing.T, s *store.Store, ended func())) {
	for _, engine := range storetest.Engines(t) {
		if setting, ok := settings[storetest.Dialect(engine)]; ok {
			t.Run(engine, func(t *testing.T) {
				s, ended := limited(t, engine, setting)
				test(t, s, ended)
			})
		}
	}
}

func limited(t *testing.T, engine, setting string) (s *store.Store, ended func()) {
	t.Helper()
	if engine == "pgbouncer" {
		t.Skip("a pooler's sessions began before the setting")
	}
	url := storetest.URL(t, engine)
	s = openStore(t, url)
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), jobNamed("a"), store.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	admin, err := sql.Open(map[string]string{"postgres": "pgx", "mariadb": "mysql"}[storetest.Dialect(engine)], storetest.DSN(t, url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	admin.SetMaxOpenConns(1)
	if err := admin.Ping(); err != nil { // begins before the setting
		t.Fatal(err)
	}
	count := "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
	if storetest.Dialect(engine) == "mariadb" {
		count = "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
	}
	return openStore(t, storetest.Settings(t, url, setting)), func() {
		for n := 1; n > 0; time.Sleep(5 * time.Millisecond) {
			if err := admin.QueryRow(count).Scan(&n); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func openStore(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// If the server has ended a session because it was idle for too long, that delays nothing: a single
// statement, and a transaction, begin on another connection.
func TestSessionsThatWereIdleForTooLong(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"postgres": "idle_session_timeout = '100ms'", "mariadb": "wait_timeout = 1"}
	eachLimited(t, settings, func(t *testing.T, s *store.Store, ended func()) {
		for what, use := range map[string]func() error{
			"a statement":   func() error { _, err := s.Now(t.Context()); return err },
			"a transaction": func() error { _, err := s.Apply(t.Context(), jobNamed("b"), store.ApplyOptions{}); return err },
		} {
			// More than once: if a connection was not used for a second, the driver asks it for a sign of life.
			for range 4 {
				if _, err := s.Now(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			ended()
			if err := use(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// A transaction is begun again if the server has ended its session because it was idle for too long.
func TestTransactionsThatWereIdleForTooLong(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"postgres": "idle_in_transaction_session_timeout = '1s'", "mariadb": "wait_timeout = 1"}
	eachLimited(t, settings, func(t *testing.T, s *store.Store, ended func()) {
		from, tries := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), 0
		made, err := s.Backfill(t.Context(), "a", store.Interval{Start: from, End: from.Add(time.Hour)}, false, store.Author{}, func(store.BackfillInput) ([]store.Interval, error) {
			if tries++; tries == 1 {
				ended()
			}
			return []store.Interval{{Start: from, End: from.Add(5 * time.Minute)}}, nil
		})
		if err != nil || len(made) != 1 || tries < 2 {
			t.Errorf("%d runs made, %d tries: %v", len(made), tries, err)
		}
		if runs, err := s.Runs(context.WithoutCancel(t.Context()), store.RunFilter{}); err != nil || len(runs) != 1 {
			t.Errorf("%d runs are there: %v", len(runs), err)
		}
	})
}

func jobNamed(name string) store.Definitions {
	return store.Definitions{Jobs: []store.Job{{Name: name, Own: &store.Schedule{Rule: "every 5m"},
		Steps: []store.Step{{Name: "step", Executor: "sql", Spec: []byte(fmt.Sprintf(`{"sql": ["SELECT 1 /* %s */"]}`, name))}}}}}
}
