//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// A tick is killed, as by kill -9, while a program runs. The program ends, and so do the processes that it has started.
// When the lease has ended, the run is delivered again, and the program gets the same run.
func TestKilledTickEndsItsPrograms(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			h := harass(t, engine, false)
			marks := filepath.Join(t.TempDir(), "marks")
			h.env = append(h.env, "DBJOBS_CONFIG=programs: [/bin/sh]")
			spec, err := json.Marshal(executor.ProgramSpec{Env: map[string]string{"MARKS": marks}, Run: []string{
				`[ "$DBJOBS_FENCE" -gt 1 ] || { sleep 1000 & sleep 0.3; }; echo "$DBJOBS_RUN_ID $DBJOBS_FENCE $$ $!" >> "$MARKS"; wait`}})
			if err != nil {
				t.Fatal(err)
			}
			h.apply([]store.Job{{Name: "one", Steps: []store.Step{{Executor: "shell", Spec: spec}}}})
			if _, err := h.s.RunNow(t.Context(), "one", store.Request{}); err != nil {
				t.Fatal(err)
			}
			told := func() string {
				text, err := os.ReadFile(marks)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				return string(text)
			}
			tick := h.tick()
			if err := tick.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "the program runs", func() bool { return strings.HasSuffix(told(), "\n") })
			if !h.kill(tick) {
				t.Fatalf("the tick had ended before it was killed")
			}
			var run string
			var fence, program, child int
			if _, err := fmt.Sscan(told(), &run, &fence, &program, &child); err != nil || fence != 1 {
				t.Fatalf("%q: %v", told(), err)
			}
			t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) }) // if the test has failed
			until(t, "the program is no more", func() bool { return !lives(program) })
			until(t, "what it has started is no more", func() bool { return !lives(child) })
			for range 3 {
				h.passLeases()
				if out, err := h.tick().CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			if again := told(); strings.Count(again, "\n") != 2 || !strings.Contains(again, "\n"+run+" 2 ") {
				t.Errorf("the program was told\n%s", again)
			}
			if r, err := h.s.Run(t.Context(), run); err != nil || r.State != store.Succeeded {
				t.Errorf("the run is %+v, %v", r, err)
			}
		})
	}
}

// lives reports whether a process lives: it is neither gone nor a zombie.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
