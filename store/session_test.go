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

// limited is a store whose sessions have a setting, with an application_name of its own, and a way to wait until the server
// has ended all of them.
func limited(t *testing.T, engine, setting string) (s *store.Store, ended func()) {
	t.Helper()
	url := storetest.URL(t, engine)
	admin, err := sql.Open(map[string]string{"postgres": "pgx", "mariadb": "mysql"}[engine], storetest.DSN(t, url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	admin.SetMaxOpenConns(1)
	if err := admin.Ping(); err != nil { // begins before the setting
		t.Fatal(err)
	}
	s, err = store.Open(t.Context(), storetest.Settings(t, url, setting), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	count := "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
	if engine == "mariadb" {
		count = "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
	}
	return s, func() {
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			var n int
			if err := admin.QueryRow(count).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d sessions are still there", n)
			}
		}
	}
}

// Sessions that the server ended since they were idle for longer than it allows hold up nothing: a statement that stands
// alone and a transaction begin on another connection.
func TestSessionsThatWereIdleForTooLong(t *testing.T) {
	for engine, setting := range map[string]string{"postgres": "idle_session_timeout = '100ms'", "mariadb": "wait_timeout = 1"} {
		t.Run(engine, func(t *testing.T) {
			if !tested(t, engine) {
				t.Skip("not asked for")
			}
			s, ended := limited(t, engine, setting)
			for what, use := range map[string]func() error{
				"a statement":   func() error { _, err := s.Now(t.Context()); return err },
				"a transaction": func() error { _, err := s.Apply(t.Context(), jobNamed("a"), store.ApplyOptions{}); return err },
			} {
				// More than once: the driver asks a connection that was not used for a second for a sign of life.
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
}

// A transaction whose session the server ended, since it was idle for longer than it allows, is begun again.
func TestTransactionsThatWereIdleForTooLong(t *testing.T) {
	for engine, setting := range map[string]string{"postgres": "idle_in_transaction_session_timeout = '100ms'", "mariadb": "wait_timeout = 1"} {
		t.Run(engine, func(t *testing.T) {
			if !tested(t, engine) {
				t.Skip("not asked for")
			}
			s, ended := limited(t, engine, setting)
			if _, err := s.Apply(t.Context(), jobNamed("a"), store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			from, tries := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), 0
			made, err := s.Backfill(t.Context(), "a", store.Interval{Start: from, End: from.Add(time.Hour)}, false, store.Author{}, func(store.BackfillInput) ([]store.Interval, error) {
				if tries++; tries == 1 {
					ended()
				}
				return []store.Interval{{Start: from, End: from.Add(5 * time.Minute)}}, nil
			})
			if err != nil || len(made) != 1 || tries != 2 {
				t.Errorf("%d runs made, %d tries: %v", len(made), tries, err)
			}
			if runs, err := s.Runs(context.WithoutCancel(t.Context()), store.RunFilter{}); err != nil || len(runs) != 1 {
				t.Errorf("%d runs are there: %v", len(runs), err)
			}
		})
	}
}

func jobNamed(name string) store.Definitions {
	return store.Definitions{Jobs: []store.Job{{Name: name, Own: &store.Schedule{Rule: "every 5m"},
		Steps: []store.Step{{Name: "step", Executor: "sql", Spec: []byte(fmt.Sprintf(`{"sql": ["SELECT 1 /* %s */"]}`, name))}}}}}
}

func tested(t *testing.T, engine string) bool {
	for _, e := range storetest.Engines(t) {
		if e == engine {
			return true
		}
	}
	return false
}
