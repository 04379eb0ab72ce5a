package store_test

import (
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// With owners, every table has row security, a policy for ordinary logins, and the policies for the
// roles. Without owners, none of this is left.
func TestEveryTableHasPolicies(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("has no row security")
		}
		const tables = `FROM pg_class c WHERE c.relnamespace = 'dbjobs'::regnamespace AND c.relkind IN ('r', 'p')`
		const bare = `SELECT count(*) ` + tables + ` AND NOT (c.relrowsecurity
			AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'own')
			AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'every')
			AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'read'))`
		set := func(on bool) {
			t.Helper()
			if err := d.SetOwners(t.Context(), on); err != nil {
				t.Fatal(err)
			}
			if s, err := d.Schema(t.Context()); err != nil || s.Owners != on {
				t.Fatalf("%v: %+v", err, s)
			}
		}
		for range 2 { // it can be repeated
			set(true)
			if n := d.Int(t, bare); n != 0 {
				t.Errorf("%d tables are without row security, or without a policy: add them to store/engine/sql/postgres/owners/on.sql", n)
			}
		}
		for range 2 {
			set(false)
			if n := d.Int(t, "SELECT (SELECT count(*) FROM pg_policy) + (SELECT count(*) "+tables+" AND c.relrowsecurity)"); n != 0 {
				t.Errorf("%d policies and tables with row security are left", n)
			}
		}
	})
}
