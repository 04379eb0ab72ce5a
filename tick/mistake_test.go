package tick_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A mistake that plain SQL makes in a step parks the job with what is wrong: at once where the job is new or changed, else
// with the first run that fails by it, of which no statement is sent. Mended, it goes on by itself.
func TestAMistakeInAStepParksItsJob(t *testing.T) {
	cases := []struct{ set, want string }{
		{`spec = '{"sql": ["INSERT INTO effects VALUES (1)"], "args": ["${scheduled_fro}"]}'`, "sql: argument \"${scheduled_fro}\": ${scheduled_fro} stands for nothing; there are ${scheduled_for}, "},
		{`spec = '{"sql": ["INSERT INTO effects VALUES (1)"], "args": ["${secret:X}"]}'`, "${secret:X}: this version has no secrets"},
		{`spec = '{"sql": ["INSERT INTO effects VALUES (1)"], "arg": [1]}'`, `unknown field "arg"`},
		{`spec = '{}'`, "sql: has no statement"},
		{`on_success = 'step:nowhere'`, `on_success: there is no step "nowhere"`},
		{`on_failure = 'retry'`, "on_failure: "},
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		defs := store.Definitions{Jobs: []store.Job{{Name: "other", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}}
		for i := range cases {
			for _, name := range []string{"new", "old"} {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint(name, i), Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("load", "INSERT INTO effects VALUES (1)")}})
			}
		}
		ticktest.Apply(t, d, defs)
		spoil := func(name string) {
			for i, c := range cases {
				d.Exec(t, "UPDATE "+d.Table("steps")+" SET "+c.set+" WHERE job_id = (SELECT id FROM "+d.Table("jobs")+fmt.Sprintf(" WHERE name = '%s%d')", name, i))
			}
		}
		parked := func(name string, want bool) {
			t.Helper()
			for i, c := range cases {
				j, err := d.Job(t.Context(), fmt.Sprint(name, i))
				if err != nil {
					t.Fatal(err)
				}
				said := strings.Contains(j.Parked, c.want) && strings.Contains(j.Parked, j.Name+", step load: ")
				if want && !said || !want && j.Parked != "" {
					t.Errorf("%s says %q; want it parked with %q: %t", j.Name, j.Parked, c.want, want)
				}
			}
		}
		spoil("new")
		ticktest.Run(t, d)
		parked("new", true)
		parked("old", false)
		spoil("old")
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 1 || d.Int(t, "SELECT count(*) FROM effects") != 0 {
			t.Fatalf("want the other job's run alone: %+v", r)
		}
		parked("new", true)
		parked("old", true)
		for i, c := range cases {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: fmt.Sprint("old", i)})
			if err != nil || len(runs) != 1 || runs[0].State != store.Failed || !strings.Contains(runs[0].Error, c.want) {
				t.Fatalf("%v: %+v", err, runs)
			}
		}
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Started != 1 {
			t.Fatalf("parked jobs go on: %+v", r)
		}
		d.Exec(t, "UPDATE "+d.Table("steps")+` SET spec = '{"sql": ["INSERT INTO effects VALUES (1)"]}', on_success = 'next', on_failure = 'fail' WHERE name = 'load'`)
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Run(t, d); r.Succeeded != 2*len(cases)+1 || d.Int(t, "SELECT count(*) FROM effects") != 2*len(cases) {
			t.Fatalf("want all to run again: %+v", r)
		}
		parked("new", false)
		parked("old", false)
	})
}
