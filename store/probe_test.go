package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A restore puts the row of the installation in between the probe and the look for why it was not there. Without a probe, there
// is an error.
func TestProbeBetweenTheTableAndItsRow(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		table, looked := d.Table("installation"), false
		d.Exec(t, "CREATE TABLE kept AS SELECT * FROM "+table)
		d.Exec(t, "DELETE FROM "+table)
		var calls storetest.Calls
		s, err := store.Open(t.Context(), d.URL, store.Options{Wrap: calls.Wrap})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		calls.After = func(c storetest.Call) error {
			if !looked && strings.Contains(c.SQL, "installation i") {
				looked = true
				d.Exec(t, "INSERT INTO "+table+" SELECT * FROM kept")
			}
			return nil
		}
		p, err := s.Probe(t.Context(), "tick", "")
		if !looked || p != nil || !errors.Is(err, store.ErrSchema) {
			t.Errorf("looked %t: %v, %v", looked, p, err)
		}
		if p, err := s.Probe(t.Context(), "tick", ""); p == nil || err != nil {
			t.Errorf("afterwards: %v, %v", p, err)
		}
	})
}
