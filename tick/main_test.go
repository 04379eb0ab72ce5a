package tick_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// TestMain lets the test binary be a tick in a process of its own.
func TestMain(m *testing.M) {
	if spec := os.Getenv("DBJOBS_TEST_CHILD"); spec != "" {
		if err := childTick(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a tick in a process of its own, which starts when its barrier opens.
type child struct {
	URL    string
	Engine string
	Now    time.Time // the database's clock
	Moves  bool      // it goes on from there, and does not stand
	Holder string
	Batch  int
	Guards guards
	Waits  bool // a statement that would wait for a lock fails instead, and is counted: the URL says how long it may
}

// childReport is what it tells at its end.
type childReport struct {
	tick.Report
	Removed map[string]int // parts of statements that the test took out, with how often
	Waited  []string       // statements that would have waited for a lock
	Peak    int64          // memory, in bytes
}

// childTick connects, says so, waits for the end of its stdin, and runs one pass. Its report goes to stdout.
func childTick(spec string) error {
	var c child
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		return err
	}
	debug.SetGCPercent(400) // as the program does
	ctx := context.Background()
	var calls storetest.Calls
	removed := c.Guards.remove(&calls, c.Engine)
	began := time.Now()
	o := store.Options{Clock: func() time.Time {
		if c.Moves {
			return c.Now.Add(time.Since(began))
		}
		return c.Now
	}}
	waited := c.waits(&calls)
	if c.Guards != allGuards || c.Waits { // a measured process is as it is; the wrapper keeps all calls
		o.Wrap = calls.Wrap
	}
	s, err := store.Open(ctx, c.URL, o)
	if err != nil {
		return err
	}
	defer s.Close()
	x, err := executor.NewSQL(s)
	if err != nil {
		return err
	}
	defer x.Close()
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	name := "child"
	if c.Waits { // those of one trigger take turns for its line in the ledger, at the end of a pass
		name = c.Holder
	}
	t := &tick.Tick{Store: s, Name: name, Holder: c.Holder, Version: "test", Now: time.Now, Batch: c.Batch, Executors: executor.Registry{"sql": x, "nothing": nothing{}}}
	r, err := t.Run(ctx)
	peak, unread := peakMemory()
	encoded := json.NewEncoder(os.Stdout).Encode(childReport{Report: r, Removed: removed(), Waited: waited(), Peak: peak})
	return errors.Join(err, unread, encoded)
}

// peakMemory is the most that this process had resident, in bytes. The kernel's usage of a child (ru_maxrss) is not that:
// it counts from what the parent had when it started the child.
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	var kB int64
	_, after, found := bytes.Cut(status, []byte("VmHWM:"))
	if _, err := fmt.Sscan(string(after), &kB); !found || err != nil {
		return 0, fmt.Errorf("read VmHWM of /proc/self/status: %w", err)
	}
	return kB << 10, nil
}

// process is a child that has connected and waits for its barrier.
type process struct {
	*exec.Cmd
	out *bufio.Reader
}

// launch starts a tick as a process of its own, which goes on when the barrier ends.
func launch(t testing.TB, c child, barrier *os.File) process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p := process{Cmd: exec.CommandContext(t.Context(), self)}
	p.Env = append(os.Environ(), "DBJOBS_TEST_CHILD="+string(spec))
	p.Stdin, p.Stderr = barrier, os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	return p
}

// connected waits until it is ready to go.
func (p process) connected(t testing.TB) {
	t.Helper()
	if line, err := p.out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
}

// report waits for its end.
func (p process) report() (r childReport, err error) {
	err = json.NewDecoder(p.out).Decode(&r)
	_, _ = io.Copy(io.Discard, p.out)
	if ended := p.Wait(); ended != nil {
		err = ended
	}
	return r, err
}

// together starts the ticks as processes, lets them go at once, and returns their reports and their errors.
func together(t testing.TB, children []child) ([]childReport, []error) {
	t.Helper()
	barrier, open, err := os.Pipe() // one for all: they wait for its end
	if err != nil {
		t.Fatal(err)
	}
	defer barrier.Close()
	defer open.Close()
	procs := make([]process, len(children))
	for i, c := range children {
		procs[i] = launch(t, c, barrier)
	}
	for _, p := range procs {
		p.connected(t)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	reports, errs := make([]childReport, len(children)), make([]error, len(children))
	done := make(chan int)
	for i := range procs {
		go func() {
			reports[i], errs[i] = procs[i].report()
			done <- i
		}()
	}
	for range procs {
		<-done
	}
	return reports, errs
}
