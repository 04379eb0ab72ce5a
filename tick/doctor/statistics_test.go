package doctor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// What the planner of PostgreSQL knows of a table is asked of its statistics. The server also notes when it has analyzed a table,
// but forgets that in a crash and on a standby, where the statistics stay, and notes it where they are gone with a transaction.
func TestStatisticsOfThePlanner(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres")
	d := storetest.Open(t, "postgres", store.Options{})
	ticktest.Run(t, d)
	d.Exec(t, "ALTER TABLE dbjobs.gaps SET (autovacuum_enabled = off)")
	const gaps = 11_000
	d.Exec(t, "INSERT INTO dbjobs.gaps (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at) SELECT 1, i, x.at, x.at, 'overlap', '', x.at "+
		"FROM (SELECT timestamptz '2026-01-05T08:00:00Z' AS at) AS x, "+storetest.Numbers(gaps))
	d.Exec(t, "VACUUM dbjobs.gaps")
	for range 1000 { // until the server counts them
		if d.Int(t, "SELECT n_live_tup FROM pg_catalog.pg_stat_user_tables WHERE relid = 'dbjobs.gaps'::regclass") >= gaps {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	unknown := func(s *store.Store) bool {
		t.Helper()
		v, err := s.Server(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(v.Tables, func(f store.TableFacts) bool { return f.Name == "gaps" && f.Rows >= gaps && f.Unknown })
	}
	_, ticker := d.As(t)
	if !unknown(ticker) {
		t.Error("a table without statistics")
	}
	tx, err := d.SQL.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("ANALYZE dbjobs.gaps"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if found, r := examine(t, d); !unknown(ticker) || !slices.Contains(found, "statistics") {
		t.Errorf("its statistics are gone with a transaction: %q, %+v", found, r.Findings)
	}
	d.Exec(t, "ANALYZE dbjobs.gaps")
	if found, r := examine(t, d); unknown(ticker) || slices.Contains(found, "statistics") {
		t.Errorf("it has statistics: %q, %+v", found, r.Findings)
	}
	if err := d.SetOwners(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	login, bound := d.As(t)
	t.Cleanup(func() { d.Exec(t, "REVOKE dbjobs_ticker FROM "+login) })
	if unknown(bound) {
		t.Error("the server does not show statistics to a login that row security binds, which does not say that there are none")
	}
}
