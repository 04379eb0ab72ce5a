package main

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// bootstrap is the function as it is released for this machine, unpacked from the zip that make packs.
var bootstrap = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "dbjobs-lambda-")
	if err != nil {
		return "", err
	}
	temporary = append(temporary, dir)
	archive, out, err := makeZip(dir)
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	z, err := zip.OpenReader(archive)
	if err != nil {
		return "", err
	}
	defer z.Close()
	packed, err := z.Open("bootstrap")
	if err != nil {
		return "", err
	}
	info, err := packed.Stat()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "unpacked")
	return file, writeProgram(file, info.Mode(), packed)
})

// writeProgram writes a program by another process. If this process had it open for writing, so might have a child that
// another test starts at that moment, and for as long it could not be started: text file busy.
func writeProgram(file string, mode os.FileMode, text io.Reader) error {
	cmd := exec.Command("/bin/sh", "-c", `cat >"$0" && chmod "$1" "$0"`, file, strconv.FormatUint(uint64(mode.Perm()), 8))
	cmd.Stdin = text
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("write %s: %w: %s", file, err, out)
	}
	return nil
}

// temporary are folders that several tests use. TestMain removes them.
var temporary []string

func makeZip(dir string) (archive string, out []byte, err error) {
	out, err = makeTarget("lambda.zip", "LAMBDA_ARCH="+runtime.GOARCH, "BUILD="+dir)
	return filepath.Join(dir, "lambda.zip"), out, err
}

// built skips a test of the program as it is released in the short form, because the build takes seconds.
func built(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("not in the short form")
	}
}

// makeTarget runs make as a user does.
func makeTarget(args ...string) ([]byte, error) {
	cmd := exec.Command("make", append([]string{"--no-print-directory", "-C", "../.."}, args...)...)
	for _, v := range os.Environ() { // a make above passes its own variables on
		if !strings.HasPrefix(v, "MAKE") && !strings.HasPrefix(v, "MFLAGS") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd.CombinedOutput()
}

// runtimeAPI is Lambda as a function sees it. It delivers invocations and takes their answers, and knows nothing else
// about the function.
type runtimeAPI struct {
	*httptest.Server
	next chan *invocation
	mu   sync.Mutex
	open map[string]*invocation
}

type invocation struct {
	id, event string
	deadline  time.Time
	answered  chan answer
}

// answer is the outcome of an invocation.
type answer struct {
	body   string
	failed bool // it is an error
	killed bool // there was no answer before the deadline
}

func serveRuntimeAPI(t testing.TB) *runtimeAPI {
	api := &runtimeAPI{next: make(chan *invocation), open: map[string]*invocation{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case i := <-api.next:
			api.mu.Lock()
			api.open[i.id] = i
			api.mu.Unlock()
			h := w.Header()
			h.Set("Lambda-Runtime-Aws-Request-Id", i.id)
			h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.deadline.UnixMilli(), 10))
			h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-central-1:123456789012:function:dbjobs")
			h.Set("Lambda-Runtime-Trace-Id", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
			fmt.Fprint(w, i.event)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/{kind}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		api.mu.Lock()
		i := api.open[r.PathValue("id")]
		delete(api.open, r.PathValue("id"))
		api.mu.Unlock()
		if err != nil || i == nil {
			http.Error(w, "no such invocation", http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		i.answered <- answer{body: string(body), failed: r.PathValue("kind") == "error"}
	})
	api.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	return api
}

// aFunction is an instance of a function: a process with the environment that Lambda gives.
type aFunction struct {
	t    testing.TB
	api  *runtimeAPI
	cmd  *exec.Cmd
	log  logFile
	gone chan struct{}
	n    int
}

// logFile is the log of a function. It is a file, so that a line is there before the answer that it belongs to.
type logFile struct{ *os.File }

func (l logFile) String() string {
	text, err := os.ReadFile(l.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func startFunction(t testing.TB, env ...string) *aFunction {
	t.Helper()
	built(t)
	file, err := bootstrap()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	f := &aFunction{t: t, api: serveRuntimeAPI(t), cmd: exec.Command(file), log: logFile{log}, gone: make(chan struct{})}
	f.cmd.Env = append([]string{
		"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(f.api.URL, "http://"), "AWS_LAMBDA_FUNCTION_NAME=jobs", "AWS_LAMBDA_FUNCTION_VERSION=7",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128", "AWS_LAMBDA_LOG_STREAM_NAME=2026/11/21/[7]0123456789abcdef", "AWS_REGION=eu-central-1",
		"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=geheimer", "AWS_SESSION_TOKEN=sitzung", "PATH=/usr/local/bin:/usr/bin:/bin", "TZ=:UTC",
	}, env...)
	f.cmd.Dir, f.cmd.Stdout, f.cmd.Stderr = t.TempDir(), log, log
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = f.cmd.Wait() // it is killed
		close(f.gone)
	}()
	t.Cleanup(f.kill)
	return f
}

func (f *aFunction) kill() {
	_ = f.cmd.Process.Kill() // it may be gone
	<-f.gone
}

// invoke delivers an invocation. If there is no answer by the deadline, it kills the process.
func (f *aFunction) invoke(event string, timeout time.Duration) answer {
	f.t.Helper()
	f.n++
	return f.invokeAs(fmt.Sprintf("request-%d", f.n), event, timeout)
}

func (f *aFunction) invokeAs(id, event string, timeout time.Duration) answer {
	f.t.Helper()
	return f.deliver(id, event, timeout, time.After(timeout))
}

// deliver delivers an invocation with this time until its deadline. If there is no answer when it is late, it kills the
// process.
func (f *aFunction) deliver(id, event string, timeout time.Duration, late <-chan time.Time) answer {
	f.t.Helper()
	i := &invocation{id: id, event: event, deadline: time.Now().Add(timeout), answered: make(chan answer, 1)}
	ctx, cancel := context.WithTimeout(context.Background(), timeout+time.Minute)
	defer cancel()
	select {
	case f.api.next <- i:
	case <-f.gone:
		f.t.Fatalf("the function is gone:\n%s", f.log)
	case <-ctx.Done():
		f.t.Fatalf("the function asks for no invocation:\n%s", f.log)
	}
	select {
	case a := <-i.answered:
		return a
	case <-f.gone:
		f.t.Fatalf("the function ended in an invocation:\n%s", f.log)
	case <-late:
	}
	f.kill()
	return answer{killed: true}
}
