package tick_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/doctor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A DBA switches row security on for a table of dbjobs, as a linter of a hosted PostgreSQL advises, and the login sees no row of it. A
// pass refuses to decide, because it would take each job for one that was removed, and never plan it again. Doctor names the
// table. When the rows are seen again, nothing is lost. A policy that shows all rows hides none, and neither do owners.
func TestRowSecurityThatHidesRowsStopsThePass(t *testing.T) {
	storetest.Needs(t, "postgres")
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("has no row security")
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Own: &store.Schedule{Rule: "every 1m"}, Missed: store.MissedAll, Steps: []store.Step{ticktest.Nop("")}}}})
		ticktest.Run(t, d)
		for _, table := range []string{"jobs", "plans", "runs", "pauses", "installation"} {
			locked := table == "plans" || table == "runs"
			d.Clock.Add(time.Minute)
			name := "dbjobs." + table
			d.Exec(t, "ALTER TABLE "+name+" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
			seen := func(want bool) {
				t.Helper()
				_, err := ticktest.New(t, d.Store).Run(t.Context())
				r, examined := doctor.Examine(t.Context(), d.Store, doctor.Options{Clock: d.Clock.Now, Version: "test"})
				if examined != nil {
					t.Fatal(examined)
				}
				told := r.Findings[0].Check == "rights" && strings.HasSuffix(r.Findings[0].Problem, ": "+name)
				refused := errors.Is(err, store.ErrSchema) && strings.Contains(err.Error(), "row security")
				if refused == want || told == want || want && err != nil {
					t.Errorf("%s, seen %t: %v, %+v", name, want, err, r.Findings)
				}
			}
			seen(false)
			d.Exec(t, "CREATE POLICY read ON "+name+" FOR SELECT USING (true)")
			seen(!locked) // what it may not lock, it passes over as locked by another
			d.Exec(t, "CREATE POLICY write ON "+name+" FOR UPDATE USING (true)")
			d.Exec(t, "CREATE POLICY add ON "+name+" FOR INSERT WITH CHECK (true)")
			seen(true)
			d.Exec(t, "CREATE POLICY less ON "+name+" AS RESTRICTIVE USING (current_user <> current_user)")
			seen(false)
			d.Exec(t, "ALTER TABLE "+name+" DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY")
			seen(true)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Limit: 10})
		if err != nil || len(runs) != 5 {
			t.Errorf("%d runs, %v", len(runs), err)
		}
	})
}
