package store_test

import (
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A server that hands over to another one may leave the sessions of its clients alive, and answers that it takes no writes. A new
// connection may lead to the server that does: after one such answer, no connection is used again that was there before.
func TestConnectionsToAServerThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"postgres": "SET default_transaction_read_only = on", "mariadb": "SET SESSION TRANSACTION READ ONLY"}
	for _, e := range storetest.Engines(t) {
		setting, server := settings[storetest.Dialect(e)]
		if !server || e == "pgbouncer" { // a pooler's sessions are not those of its clients
			continue
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var connections storetest.Connections
			d := storetest.Open(t, e, store.Options{})
			if _, err := d.Apply(t.Context(), jobNamed("a"), store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(t.Context(), d.URL, store.Options{Wrap: connections.Wrap})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			from, enough := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), errors.New("enough")
			_, err = s.Backfill(t.Context(), "a", store.Interval{Start: from, End: from.Add(time.Hour)}, false, store.Author{}, func(store.BackfillInput) ([]store.Interval, error) {
				if _, err := s.Now(t.Context()); err != nil { // beside the transaction, so in another connection
					t.Error(err)
				}
				return nil, enough
			})
			if !errors.Is(err, enough) || len(connections.All()) != 2 {
				t.Fatalf("%v; %d connections", err, len(connections.All()))
			}
			for _, c := range connections.All() {
				if _, err := c.(driver.ExecerContext).ExecContext(t.Context(), setting, nil); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Apply(t.Context(), jobNamed("b"), store.ApplyOptions{}); !errors.Is(err, store.ErrReadOnly) {
				t.Errorf("on the server that takes no writes: %v", err)
			}
			if _, err := s.Apply(t.Context(), jobNamed("b"), store.ApplyOptions{}); err != nil {
				t.Errorf("on the other one: %v", err)
			}
		})
	}
}
