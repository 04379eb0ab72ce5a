//go:build unix

package tick_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
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
			tries := ticktest.LastRun(t, d, "job").Tries
			if try := tries[len(tries)-1]; err == nil && r.Waiting == 1 && r.CutShort != "" && try.State == "cut" && try.Output == "tidied\n" {
				return
			} else if tk.Budget == time.Minute {
				t.Errorf("%v: %+v: %+v", err, r, try)
			}
			d.Clock.Add(time.Hour) // the lease of the run that could not be returned is over
		}
	})
}

// A machine that goes down asks all processes to end, the pass and its programs. A program that ends by that was stopped, and has
// not failed: its run is delivered again. Without a stop of the pass, it has failed.
func TestProgramThatIsAskedToEndWithItsPass(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		dir := t.TempDir()
		begun, goes := filepath.Join(dir, "begun"), filepath.Join(dir, "goes")
		spec, err := json.Marshal(executor.ProgramSpec{Run: []string{"touch '" + begun + "'; until test -e '" + goes + "'; do sleep 0.05; done; kill -TERM $$"}})
		if err != nil {
			t.Fatal(err)
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{{Executor: "shell", Spec: spec}}}}})
		shell, err := executor.KindOf("shell").Open(d.Store, &executor.Host{Own: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, stops := range []bool{false, true} {
			_ = errors.Join(os.Remove(begun), os.Remove(goes)) // the first time, they are not there
			ticktest.Request(t, d, "job")
			tk := ticktest.New(t, d.Store)
			tk.Executors["shell"], tk.Grace = shell, time.Minute
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				for _, err := os.Stat(begun); err != nil && ctx.Err() == nil; _, err = os.Stat(begun) {
					time.Sleep(10 * time.Millisecond)
				}
				if stops {
					stop()
				}
				_ = os.WriteFile(goes, nil, 0o600) // if this fails, the program never ends
			}()
			r, err := tk.Run(ctx)
			run := ticktest.LastRun(t, d, "job")
			if stops && (!errors.Is(err, context.Canceled) || r.Waiting != 1 || run.State != store.Waiting || run.Losses != 1 || run.Tries[0].State != "cut") {
				t.Errorf("%v: %+v: %+v", err, r, run)
			}
			if !stops && (err != nil || run.State != store.Failed || run.Error != "ended by a signal: signal: terminated") {
				t.Errorf("%v: %+v: %+v", err, r, run)
			}
			d.Clock.Add(time.Minute)
		}
	})
}
