package load

import (
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A pass of a login that has nothing due does not read the history of other owners, which row security hides from it.
func TestAnOwnersPassReadsNoHistoryOfOthers(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres") // the others have no row security
	d := storetest.Open(t, "postgres", store.Options{})
	const runs = 5000
	d.Seed(t, storetest.Seed{Jobs: 1, Rules: []string{"every 1h"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}})
	d.Exec(t, `INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, ready_at, created_at, finished_at, settled_at, expires_at)
		SELECT gen_random_uuid(), 1, i, 'now:' || i, 'succeeded', at, at, at, at, at + interval '90 days'
		FROM (SELECT i, $1::timestamptz - i * interval '1 minute' AS at FROM generate_series(1, $2::int) i) AS n`, d.Clock.Now(), runs)
	if err := d.SetOwners(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	d.Analyze(t)
	ann, url := d.Account(t, "user")
	var c storetest.Calls
	s, err := store.Open(t.Context(), url, store.Options{Clock: d.Clock.Now, Wrap: c.Wrap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	pass := ticktest.New(t, s)
	pass.Name = ann // as rights allow
	for range 2 {
		c.Reset()
		ticktest.Pass(t, pass)
	}
	hers := *d
	hers.Store, hers.SQL = s, storetest.SQL(t, s)
	for _, call := range c.All() {
		if call.Kind != storetest.Query || strings.HasPrefix(call.SQL, "SHOW ") {
			continue
		}
		if read := rowsRead(t, &hers, call); read > 100 {
			t.Errorf("%d rows are read by %s", read, call.SQL)
		}
	}
}
