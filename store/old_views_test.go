package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A server that was upgraded to PostgreSQL 15 or newer, and a dump that was restored there, has the views of the old one, which
// show rows with the rights of their owner. They are named, and migrate brings in those of the new server.
func TestMigratorsReplaceTheViewsOfAnOlderServer(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	if d.Int(t, "SELECT pg_catalog.current_setting('server_version_num')::integer") < 150000 {
		t.Skip("an older server has no such views")
	}
	old := func() []string {
		t.Helper()
		v, err := d.Store.Server(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v.OldViews
	}
	if list := old(); len(list) > 0 {
		t.Errorf("the views of this server: %q", list)
	}
	d.Exec(t, "CREATE VIEW dbjobs.v_of_somebody AS SELECT 1 AS one")
	d.Exec(t, "ALTER VIEW dbjobs.v_jobs RESET (security_invoker)")
	d.Exec(t, "ALTER VIEW dbjobs.v_jobs SET (security_barrier = true)")
	if list := old(); !slices.Equal(list, []string{"v_jobs"}) {
		t.Errorf("one of an older server: %q", list)
	}
	done, err := d.Migrate(t.Context())
	if err != nil || strings.Join(done, " ") != "views and routines" || len(old()) > 0 {
		t.Errorf("%q, %v, %q", done, err, old())
	}
	if n := d.Int(t, "SELECT COUNT(*) FROM pg_catalog.pg_class WHERE oid = 'dbjobs.v_jobs'::regclass AND reloptions::text LIKE '%barrier%'"); n > 0 {
		t.Error("the view has the barrier of an older server")
	}
	if done, err := d.Migrate(t.Context()); err != nil || len(done) > 0 {
		t.Errorf("again: %q, %v", done, err)
	}
}
