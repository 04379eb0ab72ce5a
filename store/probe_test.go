package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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

// Of two ticks of one name that begin a stretch in the same instant, the second counts in the row of the first. A tick whose row is
// gone, as after a restore, begins a stretch.
func TestEveryTickIsRecorded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		probe := func() *store.Probe {
			p, err := d.Probe(t.Context(), "tick", "")
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		record := func(p *store.Probe, decided int) {
			if err := d.RecordTick(t.Context(), p, store.TickFacts{Name: "tick", Holder: "test", Version: "test", Decided: decided}); err != nil {
				t.Error(err)
			}
		}
		counted := func(when string, want int) {
			if n := d.Int(t, "SELECT decided FROM "+d.Table("ticks")); n != want {
				t.Errorf("%s: %d jobs decided, want %d", when, n, want)
			}
		}
		first, second := probe(), probe()
		d.Clock.Add(time.Second)
		record(first, 1)
		record(second, 2)
		counted("two at once", 3)
		third := probe()
		d.Exec(t, "DELETE FROM "+d.Table("ticks"))
		record(third, 4)
		counted("after a restore", 4)
	})
}
