package main

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
)

// invoke runs a command line in this process, with an empty home folder unless home says otherwise.
func invoke(ctx context.Context, t *testing.T, home string, stdin io.Reader, stdout io.Writer, args ...string) (code int, stderr string) {
	t.Helper()
	var talk bytes.Buffer
	code = run(ctx, args, stdin, stdout, &talk, onlyHome(home), nil)
	return code, talk.String()
}

// onlyHome is an environment that has only a home folder.
func onlyHome(home string) settings.Lookup {
	return func(name string) (string, bool) {
		if name == "HOME" {
			return home, true
		}
		return "", false
	}
}

// opened returns a command that has opened the database of a home folder.
func opened(t *testing.T, home string) (*cli, *store.Store) {
	t.Helper()
	c := newCLI(nil, io.Discard, io.Discard, onlyHome(home))
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	s, err := c.open(cmd, use)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// connections keeps one connection for each URL, as warm does: a connection to a server takes longer than most
// commands.
type connections struct {
	of    map[string]*warm
	plain map[string]*sql.DB // for statements of the test itself
}

func (k *connections) to(url string) *warm {
	if k.of == nil {
		k.of = map[string]*warm{}
	}
	if k.of[url] == nil {
		k.of[url] = new(warm)
	}
	return k.of[url]
}

// statements returns the connection on which the test itself runs statements.
func (k *connections) statements(url string) (*sql.DB, error) {
	if db := k.plain[url]; db != nil {
		return db, nil
	}
	s, err := store.Open(context.Background(), url, store.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	db, err := s.JobDB(store.Options{})
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(1)
	if k.plain == nil {
		k.plain = map[string]*sql.DB{}
	}
	k.plain[url] = db
	return db, nil
}

func (k *connections) close() {
	for _, w := range k.of {
		w.close()
	}
	for _, db := range k.plain {
		db.Close()
	}
	k.of, k.plain = nil, nil
}

// runKept runs a command in a process that serves several commands. They share the connection that w keeps, because
// opening a connection takes most of a command's time.
func runKept(ctx context.Context, w *warm, args []string, stdin io.Reader, stdout, stderr io.Writer, env settings.Lookup, environ []string) int {
	c := newCLI(stdin, stdout, stderr, env)
	c.warm, c.environ = w, environ
	err := c.execute(ctx, args)
	code := c.exitCode(ctx, err)
	c.complain(code, err)
	return code
}

// TestNamesThatAreNoText: names that no shell story can contain.
func TestNamesThatAreNoText(t *testing.T) {
	for _, args := range [][]string{
		{"job", "create", "caf\xe9", "--sql", "SELECT 1"},
		{"job", "create", "a", "--sql", "SELECT '\xff'"},
		{"job", "create", "a", "--sql", "SELECT 'x\x00y'"},
		{"schedule", "create", "a\xff", "--rule", "every 5m"},
	} {
		home := t.TempDir()
		code, stderr := invoke(t.Context(), t, home, nil, io.Discard, args...)
		if code != exitUsage || !strings.Contains(stderr, "UTF-8") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: code %d, said %q", args, code, stderr)
		}
		if left, _ := os.ReadDir(home); len(left) > 0 {
			t.Errorf("%q left %v", args, left)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestOutputThatDoesNotArriveIsAFailure: a script that reads the output must not take half of it for the whole output.
func TestOutputThatDoesNotArriveIsAFailure(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"completion", "bash"}} {
		code, stderr := invoke(t.Context(), t, t.TempDir(), nil, fullDisk{}, args...)
		if code != exitFailed || !strings.Contains(stderr, "no space left") {
			t.Errorf("%q: code %d, said %q", args, code, stderr)
		}
	}
}

// TestOutputOfWhatIsDoneInPartDoesNotArrive: a code that says what was left out, or that a job failed, speaks of output that is there.
func TestOutputOfWhatIsDoneInPartDoesNotArrive(t *testing.T) {
	home := t.TempDir()
	for _, args := range [][]string{{"job", "create", "broken", "--sql", "SELECT nothing FROM nowhere"}, {"job", "run-now", "broken"}} {
		if code, stderr := invoke(t.Context(), t, home, nil, io.Discard, args...); code != exitDone {
			t.Fatalf("%q: code %d, said %q", args, code, stderr)
		}
	}
	for _, args := range [][]string{{"import", "crontab", "--zone", "UTC"}, {"tick", "--fail-on-job-error"}} {
		for _, x := range []struct {
			stdout io.Writer
			code   int
		}{{fullDisk{}, exitFailed}, {io.Discard, exitJobFailed}} {
			code, stderr := invoke(t.Context(), t, home, strings.NewReader("* * * * * true\n@midday true\n"), x.stdout, args...)
			if code != x.code || strings.Contains(stderr, "no space left") != (x.code == exitFailed) {
				t.Errorf("%q: code %d, want %d, said %q", args, code, x.code, stderr)
			}
		}
	}
}

// TestInterrupted: a signal ends a command that waits, and a command whose statement would run for hours, with code
// 130.
func TestInterrupted(t *testing.T) {
	home := t.TempDir()
	const forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
	for _, args := range [][]string{{"job", "create", "long", "--sql", forever}, {"job", "run-now", "long"}} {
		if code, stderr := invoke(t.Context(), t, home, nil, io.Discard, args...); code != exitDone {
			t.Fatalf("%q: code %d, said %q", args, code, stderr)
		}
	}
	never, w := io.Pipe()
	defer w.Close()
	read := reader{Reader: never}
	interrupted := func(args ...string) (signal func(), talk *told, ended chan int) {
		talk, ended = new(told), make(chan int, 1)
		ctx, signal := context.WithCancel(t.Context())
		go func() { ended <- run(ctx, args, &read, io.Discard, talk, onlyHome(home), nil) }()
		return signal, talk, ended
	}
	for _, args := range [][]string{{"apply", "-f", "-"}, {"rule", "next", "--jsonl"}} {
		read.begun.Store(false)
		signal, talk, ended := interrupted(args...)
		until(t, "it reads", func() bool { return read.begun.Load() })
		signal()
		select {
		case code := <-ended:
			if code != exitInterrupted || talk.String() != "dbjobs: interrupted\n" {
				t.Errorf("%q: code %d, said %q", args, code, talk)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%q does not end", args)
		}
	}
	signal, talk, ended := interrupted("tick", "--grace", "0s", "--verbose")
	until(t, "the statement is executed", func() bool { return strings.Contains(talk.String(), `msg="step begins"`) })
	signal()
	code := <-ended
	if said := withoutDebug(talk.String()); code != exitInterrupted || said != "dbjobs: interrupted\n" {
		t.Errorf("tick: code %d, said %q", code, said)
	}
}

// reader tells when somebody begins to read.
type reader struct {
	io.Reader
	begun atomic.Bool
}

func (r *reader) Read(b []byte) (int, error) {
	r.begun.Store(true)
	return r.Reader.Read(b)
}

// withoutDebug leaves out what only --verbose adds.
func withoutDebug(stderr string) (rest string) {
	for line := range strings.Lines(stderr) {
		if !strings.Contains(line, "level=DEBUG") {
			rest += line
		}
	}
	return rest
}

// TestASignalEndsASleep: the signal interrupts no work, so it is no failure.
func TestASignalEndsASleep(t *testing.T) {
	home := t.TempDir()
	if code, stderr := invoke(t.Context(), t, home, nil, io.Discard, "job", "create", "later", "--rule", "every 1h", "--sql", "SELECT 1"); code != exitDone {
		t.Fatalf("code %d, said %q", code, stderr)
	}
	ctx, signal := context.WithCancel(t.Context())
	defer signal()
	var out, talk told
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"tick", "--for", "2h", "--verbose"}, nil, &out, &talk, onlyHome(home), nil)
	}()
	until(t, "it sleeps", func() bool { return strings.Contains(talk.String(), "msg=sleeps") })
	signal()
	code := <-ended
	if said := withoutDebug(talk.String()); code != exitDone || said != "" || !strings.Contains(out.String(), "1 decision") {
		t.Errorf("code %d, said %q and %q", code, said, out.String())
	}
}

// TestSignalReachesTheProgram: the real signals, sent to the program as it is built.
func TestSignalReachesTheProgram(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		cmd := exec.Command(program(t), "apply", "-f", "-")
		cmd.Env = []string{"HOME=" + t.TempDir()}
		stdin, err := cmd.StdinPipe() // stays open: the program waits
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// This is more than a pipe holds. When everything is written, the program reads, and has listened to signals
		// before.
		if _, err := stdin.Write(bytes.Repeat([]byte("#\n"), 128<<10)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its code is looked at below
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || stderr.String() != "dbjobs: interrupted\n" {
			t.Errorf("%v: code %d, said %q", sig, code, stderr.String())
		}
	}
}
