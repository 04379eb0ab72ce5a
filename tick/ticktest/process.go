package ticktest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Child is a tick in a process of its own, which starts when its barrier opens. A package that has
// such processes calls Main.
type Child struct {
	URL    string
	Engine string
	Now    time.Time // the database's clock, which stands still
	Name   string    // the trigger's; without one, "child"
	Holder string
	Batch  int
	Meddle string // the name of the Meddler of its calls; without one, they are not even watched
	Gate   string // its barrier is before its first call that matches this; without one, before its pass
}

// A Meddler changes or watches the calls of a child. The function that it returns says at the end
// what it has done or seen, and how often.
type Meddler func(c Child, calls *storetest.Calls) (seen func() map[string]int)

// ChildReport is what a child reports at its end.
type ChildReport struct {
	tick.Report
	Seen map[string]int // by its Meddler
	Peak int64          // memory, in bytes
}

// child is the environment variable in which a process finds its Child.
const child = "DBJOBS_TEST_CHILD"

// Main is the TestMain of a package whose test binary may be a tick in a process of its own.
func Main(m *testing.M, meddlers map[string]Meddler) {
	if spec := os.Getenv(child); spec != "" {
		if err := childTick(spec, meddlers); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(storetest.Main(m))
}

// childTick connects and runs one pass. Before it, or before its first call behind the gate, it says
// that it is ready, and waits for the end of its stdin. Its report goes to stdout.
func childTick(spec string, meddlers map[string]Meddler) error {
	var c Child
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		return err
	}
	debug.SetGCPercent(400) // as the program does
	ctx := context.Background()
	o := store.Options{Clock: func() time.Time { return c.Now }}
	var calls storetest.Calls
	if c.Gate != "" {
		gate := regexp.MustCompile(c.Gate)
		calls.Before = func(call storetest.Call) error {
			if gate.MatchString(call.SQL) {
				return waitForOthers()
			}
			return nil
		}
	}
	seen := func() map[string]int { return nil }
	if c.Meddle != "" { // a process that is measured has no wrapper: the wrapper keeps all calls
		meddle := meddlers[c.Meddle]
		if meddle == nil {
			return fmt.Errorf("no meddler %q", c.Meddle)
		}
		seen, o.Wrap = meddle(c, &calls), calls.Wrap
	}
	url, err := Patient(c.Engine, c.URL)
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, url, o)
	if err != nil {
		return err
	}
	defer s.Close()
	x, err := executor.NewSQL(s)
	if err != nil {
		return err
	}
	defer x.Close()
	if c.Gate == "" {
		if err := waitForOthers(); err != nil {
			return err
		}
	}
	t := &tick.Tick{Store: s, Name: cmp.Or(c.Name, "child"), Holder: c.Holder, Version: "test",
		Now: time.Now, Batch: c.Batch, Executors: executor.Registry{"sql": x, "nothing": Nothing{}}}
	r, err := t.Run(ctx)
	err = errors.Join(err, waitForOthers()) // perhaps it has made no call behind the gate
	peak, unread := peakMemory()
	encoded := json.NewEncoder(os.Stdout).Encode(ChildReport{Report: r, Seen: seen(), Peak: peak})
	return errors.Join(err, unread, encoded)
}

// Patient returns the URL with a minute to connect: many processes or thousands of courses at once make a busy
// machine slow.
func Patient(engine, rawURL string) (string, error) {
	option := map[string]string{"postgres": "connect_timeout=60", "mariadb": "timeout=60s", "mysql": "timeout=60s"}[engine]
	if option == "" {
		return rawURL, nil
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", errors.New("the database's URL cannot be parsed") // err would show the password
	}
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+option, "&")
	return u.String(), nil
}

// waitForOthers says that the child is ready, and waits for the end of its stdin, once.
var waitForOthers = sync.OnceValue(func() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
})

// peakMemory is the most memory that this process had resident, in bytes. The kernel's number for a child
// (ru_maxrss) is not that: it counts from the memory that the parent had when it started the child.
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

// Process is a child that runs and waits for its barrier.
type Process struct {
	*exec.Cmd
	out  *bufio.Reader
	said *bytes.Buffer // on stderr
}

// Launch starts a tick as a process of its own, which goes on when the barrier ends.
func Launch(t testing.TB, c Child, barrier *os.File) Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p := Process{Cmd: exec.CommandContext(t.Context(), self), said: new(bytes.Buffer)}
	p.Env = append(os.Environ(), child+"="+string(spec))
	p.Stdin, p.Stderr = barrier, io.MultiWriter(os.Stderr, p.said)
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

// Connected waits until the child is at its barrier.
func (p Process) Connected(t testing.TB) {
	t.Helper()
	if line, err := p.out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
}

// Report waits for the child's end. The error of one that fails has what it said.
func (p Process) Report() (r ChildReport, err error) {
	err = json.NewDecoder(p.out).Decode(&r)
	_, _ = io.Copy(io.Discard, p.out)
	if ended := p.Wait(); ended != nil {
		err = fmt.Errorf("%w: %s", ended, bytes.TrimSpace(p.said.Bytes()))
	}
	return r, err
}

// Together starts the ticks as processes, lets them go at once, and returns their reports and their
// errors.
func Together(t testing.TB, children []Child) ([]ChildReport, []error) {
	t.Helper()
	barrier, open, err := os.Pipe() // one for all: they wait for its end
	if err != nil {
		t.Fatal(err)
	}
	defer barrier.Close()
	defer open.Close()
	procs := make([]Process, len(children))
	for i, c := range children {
		procs[i] = Launch(t, c, barrier)
	}
	for _, p := range procs {
		p.Connected(t)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	reports, errs := make([]ChildReport, len(children)), make([]error, len(children))
	done := make(chan int)
	for i := range procs {
		go func() {
			reports[i], errs[i] = procs[i].Report()
			done <- i
		}()
	}
	for range procs {
		<-done
	}
	return reports, errs
}
