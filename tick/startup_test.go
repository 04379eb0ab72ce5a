package tick_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job with on_startup runs once for each start of the host.
func TestStartupRunsOnceForEachStart(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "warm", OnStartup: true, Steps: []store.Step{ticktest.Nop("")}}}})
		want := []int{0, 1, 0, 1, 0}
		for i, id := range []string{"", "boot-1", "boot-1", "boot-2", ""} {
			dry := ticktest.New(t, d.Store)
			dry.StartupID, dry.DryRun = id, true
			r, err := dry.Run(t.Context())
			due := slices.DeleteFunc(r.Due, func(c tick.Coming) bool { return c.Need != store.Startup.String() })
			if err != nil || len(due) != want[i] {
				t.Errorf("dry run %d: %v, %+v", i, err, due)
			}
			p := ticktest.New(t, d.Store)
			p.StartupID = id
			r, err = p.Run(t.Context())
			if err != nil || r.Succeeded != want[i] {
				t.Fatalf("tick %d: %v, %+v", i, err, r)
			}
			d.Clock.Add(time.Minute)
		}
	})
}

// If hosts that tick one database report their starts in turn, each start has one run.
func TestStartupOfTwoHostsRunsOnceEach(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", OnStartup: true, Steps: []store.Step{ticktest.Nop("")}}}})
		for i := range 6 {
			tk := ticktest.New(t, d.Store)
			tk.StartupID = []string{"host a", "host b"}[i%2]
			r, err := tk.Run(t.Context())
			if err != nil || r.Made != max(0, min(1, 2-i)) {
				t.Fatalf("pass %d: %v: %+v", i, err, r)
			}
			d.Clock.Add(time.Minute)
		}
		if n := d.Int(t, "SELECT runs_made FROM "+d.Table("plans")); n != 2 {
			t.Errorf("%d runs made, want 2", n)
		}
	})
}
