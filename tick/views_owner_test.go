package tick_test

import (
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// If the installation has owners, a view shows an ordinary login only its own jobs, runs and changes.
func TestViewsShowALoginItsOwn(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		login, s := d.As(t)
		step := []store.Step{ticktest.Step("", "SELECT * FROM nowhere")}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "theirs", Rule: "every 1h"}}, Jobs: []store.Job{{Name: "theirs", Steps: step}}})
		if _, err := s.Apply(t.Context(), store.Definitions{Schedules: []store.Schedule{{Name: "own", Rule: "every 1h"}}, Jobs: []store.Job{{Name: "own", Steps: step}}}, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"theirs", "own"} {
			ticktest.RunNow(t, d, name, store.Request{})
		}
		for _, as := range []*store.Store{d.Store, s} {
			for range 2 {
				if _, err := ticktest.New(t, as).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		beside := storetest.SQL(t, s)
		views := map[string]string{"v_jobs": "owner", "v_runs": "owner", "v_errors": "owner", "v_attempts": "owner", "v_schedules": "owner", "v_changes": "owner"}
		for view := range views {
			d.Exec(t, "GRANT SELECT ON "+d.Table(view)+" TO "+login)
		}
		count := func(view, condition string) (n int) {
			t.Helper()
			if err := beside.QueryRow("SELECT count(*) FROM " + d.Table(view) + " WHERE " + condition).Scan(&n); err != nil {
				t.Fatalf("%s: %v", view, err)
			}
			return n
		}
		for _, owners := range []bool{false, true, false} {
			if err := d.SetOwners(t.Context(), owners); err != nil {
				t.Fatal(err)
			}
			for view, owner := range views {
				own, others := count(view, owner+" = '"+login+"'"), count(view, owner+" <> '"+login+"'")
				if own == 0 || owners != (others == 0) {
					t.Errorf("owners %t: %s shows %d of its own and %d of others", owners, view, own, others)
				}
			}
			if all := len(seen(t, d, "v_jobs", "name", "")); all != d.Int(t, "SELECT count(*) FROM "+d.Table("jobs")) {
				t.Errorf("owners %t: who migrated sees %d jobs, other than in the table", owners, all)
			}
		}
	})
}
