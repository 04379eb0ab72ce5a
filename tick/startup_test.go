package tick_test

import (
	"fmt"
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

// Of more hosts than a plan remembers, each has one run as long as that run is on record: no number is used up for a run that is
// there, since the history is kept by these numbers, and no start is served again.
func TestStartupOfManyHostsRunsOnceEach(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "a", OnStartup: true, Steps: []store.Step{ticktest.Nop("")}}, {Name: "b", OnStartup: true, Own: &store.Schedule{Rule: "every 1m"}, Steps: []store.Step{ticktest.Nop("")}}}})
		const hosts = 34
		for i := range 2 * hosts {
			tk := ticktest.New(t, d.Store)
			tk.StartupID = fmt.Sprint("host ", i%hosts)
			r, err := tk.Run(t.Context())
			if err != nil || i < hosts && r.Made < 2 || i >= hosts && r.Made > 1 || i >= hosts && r.Decided > 1 {
				t.Fatalf("pass %d: %v: %+v", i, err, r)
			}
			d.Clock.Add(time.Minute)
		}
		for name, minutes := range map[string]int{"a": 0, "b": 2*hosts - 1} {
			if n := d.Int(t, "SELECT runs_made FROM "+d.Table("plans")+" p JOIN "+d.Table("jobs")+" j ON j.id = p.job_id WHERE j.name = '"+name+"'"); n != hosts+minutes {
				t.Errorf("%s: %d runs made, want %d", name, n, hosts+minutes)
			}
		}
	})
}

// A start that a tick reports while the job is disabled makes no run, also later: who enables the job weeks after the start of
// the host does not mean that start. The next start runs it.
func TestStartupWhileDisabledMakesNoRunLater(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		steps := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "imported", OnStartup: true, Disabled: true, Steps: steps}, {Name: "warm", OnStartup: true, Steps: steps}}})
		for _, c := range []struct {
			disabled string // what is set before the pass; empty: nothing
			id       string
			made     int
		}{
			{"", "boot-1", 1},
			{"", "boot-1", 0},
			{"true", "boot-1", 0},
			{"", "boot-2", 0},
			{"false", "boot-2", 0},
			{"", "boot-2", 0},
			{"", "boot-3", 2},
		} {
			if c.disabled != "" {
				d.Exec(t, "UPDATE "+d.Table("jobs")+" SET enabled = "+map[string]string{"true": "false", "false": "true"}[c.disabled])
			}
			tk := ticktest.New(t, d.Store)
			tk.StartupID = c.id
			r, err := tk.Run(t.Context())
			if err != nil || r.Made != c.made {
				t.Errorf("disabled %q, start %s: %v: made %d, want %d", c.disabled, c.id, err, r.Made, c.made)
			}
			d.Clock.Add(time.Minute)
		}
	})
}

// A start that is noted wakes a disabled job no more.
func TestStartupOfADisabledJobIsDecidedOnce(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "off", OnStartup: true, Disabled: true, Steps: []store.Step{ticktest.Nop("")}}}})
		for i, want := range []int{1, 0} {
			tk := ticktest.New(t, d.Store)
			tk.StartupID = "boot-1"
			r, err := tk.Run(t.Context())
			if err != nil || r.Decided != want {
				t.Errorf("pass %d: %v: %d decisions, want %d", i, err, r.Decided, want)
			}
			d.Clock.Add(time.Minute)
		}
	})
}
