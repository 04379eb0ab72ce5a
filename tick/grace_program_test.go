//go:build unix

package tick_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A program that tidies up for longer than the margin of the budget has the time for it, and its end is on record.
func TestGraceOfAProgramAtTheEndOfTheBudget(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		spec, err := json.Marshal(executor.ProgramSpec{Run: []string{`trap 'sleep 1; echo tidied; exit 1' TERM; sleep 1000 & wait`}})
		if err != nil {
			t.Fatal(err)
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{{Executor: "shell", Spec: spec}}}}})
		ticktest.Request(t, d, "job")
		shell, err := executor.KindOf("shell").Open(d.Store, &executor.Host{Own: true})
		if err != nil {
			t.Fatal(err)
		}
		tk := ticktest.New(t, d.Store)
		tk.Executors["shell"] = shell
		for _, tk.Budget = range []time.Duration{9 * time.Second, time.Minute} { // a slow machine may need more than the share of 9 s
			r, err := tk.Run(t.Context())
			if err == nil {
				if try := ticktest.LastRun(t, d, "job").Tries[0]; r.Waiting != 1 || r.CutShort == "" || try.State != "cut" || try.Output != "tidied\n" {
					t.Errorf("%+v: %+v", r, try)
				}
				return
			}
			if tk.Budget == time.Minute {
				t.Fatalf("%v: %+v", err, r)
			}
			d.Clock.Add(time.Hour) // the lease of the run that could not be returned is over
		}
	})
}
