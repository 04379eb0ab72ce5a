package load

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Hooks cost a pass one look at them, one insertion, and one more round that decides for them, however
// many events there are. They cost nothing if no job has one.
func TestRoundTripsOfHooks(t *testing.T) {
	t.Parallel()
	few, many := 10, 200
	if prove.Whole() {
		many = 1000
	}
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			none, some, all := settled(t, e, few, false), settled(t, e, few, true), settled(t, e, many, true)
			t.Logf("%d failures: %d trips, with hooks %d; %d failures: %d", few, none, some, many, all)
			if some != all || some <= none {
				t.Errorf("%d trips for %d failures without hooks, %d with; %d for %d", none, few, some, all, many)
			}
			if again := settled(t, e, many, false); again != none {
				t.Errorf("without hooks %d trips for %d failures, %d for %d", none, few, again, many)
			}
		})
	}
}

// settled counts the trips of a pass that settles a failed run of each job, and decides for the hook.
func settled(t *testing.T, engine string, n int, hooks bool) int {
	t.Helper()
	var c storetest.Calls
	d := storetest.Open(t, engine, store.Options{Wrap: c.Wrap})
	d.Seed(t, storetest.Seed{Jobs: n, Rules: []string{"every 5m"}, Queue: "another"})
	if hooks { // the hook itself has a hook, too, which makes no difference
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET on_failed = '1'")
	}
	tk := ticktest.New(t, d.Store)
	tk.Batch = 5000 // no page is full, also of runs: after a full page there is another one
	pass := func() {
		t.Helper()
		if r, err := tk.Run(t.Context()); err != nil || len(r.Parked)+len(r.Unheard) > 0 {
			t.Fatalf("%v: %+v", err, r)
		}
	}
	pass()
	d.Clock.Add(5 * time.Minute)
	pass()
	d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'failed'")
	c.Reset()
	pass()
	trips := c.Count()
	want := 0
	if hooks {
		want = n
	}
	told := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE occurrence LIKE 'hook:failed:%'")
	if left := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE settled_at IS NULL AND state = 'failed'"); told != want || left != 0 {
		t.Fatalf("the hook has %d of %d events, and %d runs are not settled", told, want, left)
	}
	return trips
}
