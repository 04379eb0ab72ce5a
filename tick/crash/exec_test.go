package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// programs has the file in which each program of a world leaves its mark, by itself: the run, the
// step, the fence and the attempt as the program learned them.
type programs struct {
	mu       sync.Mutex
	file     string
	gathered int64 // bytes of the file
}

// running runs real programs. The shell is allowed, and nothing else.
type running struct {
	w    *world
	kind string
}

func (x running) Execute(ctx context.Context, r executor.Request) (executor.Result, error) {
	run, err := executor.KindOf(x.kind).Open(nil, &executor.Host{Programs: []executor.Program{{Path: "/bin/sh"}}})
	if err != nil {
		return executor.Result{}, err
	}
	res, err := run.Execute(ctx, r)
	return res, errors.Join(err, x.w.gather())
}

// gather turns the marks that programs have left into effects. A program may leave its mark meanwhile, so the file is never cut:
// it is read on from where the last reading ended.
func (w *world) gather() error {
	w.programs.mu.Lock()
	defer w.programs.mu.Unlock()
	file, err := os.Open(w.programs.file)
	if err != nil {
		return err
	}
	defer file.Close()
	marks, err := io.ReadAll(io.NewSectionReader(file, w.programs.gathered, 1<<30))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(marks)) {
		var run, step string
		var fence, attempt int
		if _, err := fmt.Sscan(line, &run, &step, &fence, &attempt); err != nil {
			return fmt.Errorf("a program left the mark %q: %w", line, err)
		}
		if _, err := w.d.SQL.Exec(fmt.Sprintf("INSERT INTO effects VALUES ('%s', '%s', %d, %d)", run, step, fence, attempt)); err != nil {
			return err
		}
		w.programs.gathered += int64(len(line))
	}
	return nil
}

// program returns a step that leaves its mark, and then runs the commands in then. exec learns its run
// by its arguments, the shell learns it by variables.
func (w *world) program(kind, name, then string) store.Step {
	spec := executor.ProgramSpec{Run: []string{`echo "$DBJOBS_RUN_ID $NAME $DBJOBS_FENCE $DBJOBS_ATTEMPT" >> "$MARKS"; ` + then},
		Env: map[string]string{"MARKS": w.programs.file, "NAME": name}, RetryExit: []int{75}, SkipExit: []int{99}}
	if kind == "exec" {
		spec.Run = []string{"/bin/sh", "-c", `echo "$*" >> "$MARKS"; ` + then, "sh", "${run_id}", name, "${fence}", "${attempt}"}
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return store.Step{Name: name, Executor: kind, Spec: raw}
}

// executing is a scenario of jobs that run programs: one between other steps, one with an exit code
// that asks for another try, and one with an exit code that says that there is nothing to do.
func executing(string) []stage {
	return []stage{
		{name: "plan", at: time.Minute, edit: func(w *world) {
			if w.programs.file == "" {
				w.programs.file = filepath.Join(w.t.TempDir(), "marks")
				if err := os.WriteFile(w.programs.file, nil, 0o600); err != nil {
					w.t.Fatal(err)
				}
			}
			runs := hourlyOf(patient("runs", act("first", 0), w.program("exec", "program", ""), w.effect("two", true)), "all", "wait-all")
			again := hourlyOf(patient("again", w.program("shell", "busy", `[ "$DBJOBS_ATTEMPT" -gt 1 ] || exit 75`)), "latest", "wait")
			skips := hourlyOf(patient("skips", w.program("shell", "look", "exit 99"), act("never", 0)), "latest", "wait")
			w.define([]store.Job{runs, again, skips})
		}},
		{name: "outage", at: 2*time.Hour + 5*time.Minute},
		{name: "decided only", at: 3*time.Hour + 5*time.Minute, decide: true},
		{name: "taken up", at: 3*time.Hour + 15*time.Minute},
	}
}

// A process dies before or after a program, or at any other call. Each run's program still runs at
// least once and learns the same run each time, and no run is forgotten.
func TestCrashAtEveryCallOfPrograms(t *testing.T) {
	t.Parallel()
	crashesOn(t, storetest.EnginesFor(t, t.Name()), executing, 4)
}
