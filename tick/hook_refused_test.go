package tick_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A report names the first events whose hooks could not run, and counts all.
func TestHookThatManyMissIsToldOnce(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		defs := store.Definitions{Jobs: []store.Job{{Name: "off", Disabled: true, Steps: []store.Step{ticktest.Call("")}}}}
		for i := range 25 {
			defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("load ", i), Own: ticktest.EveryFiveMinutes(), On: store.Hooks{Failed: "off"}, Steps: []store.Step{ticktest.Call("")}})
		}
		ticktest.Apply(t, d, defs)
		broken := true
		tk := failing(t, d, &broken)
		tk.Batch = 4
		ticktest.Pass(t, tk)
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Pass(t, tk); r.Failed != 25 || r.UnheardEvents != 25 || len(r.Unheard) != 10 {
			t.Errorf("%d failed, %d events unheard, %d named: %+v", r.Failed, r.UnheardEvents, len(r.Unheard), r)
		}
	})
}

// A hook that is no name of a job, written into a row by hand, parks that job and calls no hook.
func TestHookOfNoNameHoldsUpNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		load, beside := ticktest.Hourly("load"), ticktest.Hourly("beside")
		load.Steps, beside.Steps = []store.Step{ticktest.Nop("")}, []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{load, beside}})
		broken := false
		tk := failing(t, d, &broken)
		ticktest.Pass(t, tk)
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET on_parked = ' ' WHERE name = 'load'")
		d.Clock.Add(time.Hour)
		if r := ticktest.Pass(t, tk); r.Succeeded != 1 || r.ParkedJobs != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// A hook that does not exist, is disabled, or is refused by the database makes no run fail: the report says so. A hook
// that is paused runs when it is resumed.
func TestHookThatCannotRunHoldsUpNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		load := func(name, hook string) store.Job {
			return store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), On: store.Hooks{Failed: hook}, Steps: []store.Step{ticktest.Call("")}}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			load("a", "gone"), load("b", "disabled"), load("c", "refused"), load("d", "held"), load("e", "tell"),
			{Name: "gone", Steps: ok}, {Name: "disabled", Disabled: true, Steps: ok}, {Name: "refused", Steps: ok}, {Name: "held", Steps: ok}, {Name: "tell", Steps: ok},
		}})
		broken := true
		tk := failing(t, d, &broken)
		ticktest.Pass(t, tk)
		d.Exec(t, "DELETE FROM "+d.Table("jobs")+" WHERE name = 'gone'") // no command removes a hook in use
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "held"}, time.Time{})
		refuse(t, d, "INSERT", "runs", fmt.Sprintf("NEW.job_id = %d", d.Int(t, "SELECT id FROM "+d.Table("jobs")+" WHERE name = 'refused'")))
		d.Clock.Add(5 * time.Minute)
		r := ticktest.Pass(t, tk)
		if r.Failed != 5 || len(r.Parked) != 0 {
			t.Errorf("%+v", r)
		}
		slices.SortFunc(r.Unheard, func(x, y store.Unheard) int { return strings.Compare(x.Job, y.Job) })
		for i, want := range []struct{ hook, why string }{{"gone", "no such job"}, {"disabled", "is disabled"}, {"refused", "refused"}} {
			if i >= len(r.Unheard) || r.Unheard[i].Hook != want.hook || r.Unheard[i].Event != store.EventFailed || !strings.Contains(r.Unheard[i].Error, want.why) {
				t.Errorf("%s is not told: %+v", want.hook, r.Unheard)
			}
		}
		if len(r.Unheard) != 3 || kinds(told(t, d, "tell")) != "failed of e" || kinds(told(t, d, "held")) != "failed of d" {
			t.Errorf("%+v; tell: %s, held: %s", r.Unheard, kinds(told(t, d, "tell")), kinds(told(t, d, "held")))
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE state = 'failed' AND settled_at IS NULL"); n != 0 {
			t.Errorf("%d runs are not settled", n)
		}
	})
}
