package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store/storetest"
)

func TestMain(m *testing.M) {
	// A program built with the race detector sleeps for a second before it exits. Stories start hundreds of them.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	testscript.Main(keepingTidy{m}, map[string]func(){"dbjobs": main})
}

// keepingTidy removes the things that tests share, when all tests have ended.
type keepingTidy struct{ *testing.M }

func (k keepingTidy) Run() int {
	// Most tests wait for something that they have started, such as a program, a server or the clock.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	time.Local = time.UTC // stories that have another zone start the program
	defer func() {
		for _, dir := range temporary {
			os.RemoveAll(dir)
		}
	}()
	return storetest.Main(k.M)
}

// TestScripts runs the stories about the command line itself, each in an empty home folder with no variables set. Those
// of testdata/script run as processes, those of testdata/called as functions. With DBJOBS_PROVE, all run as processes.
func TestScripts(t *testing.T) {
	t.Parallel()
	called := caller(asFunction)
	if prove.Whole() {
		called = asProcess
	}
	for folder, dbjobs := range map[string]caller{"script": asProcess, "called": called} {
		testscript.Run(t, testscript.Params{
			Dir: "testdata/" + folder,
			Setup: func(e *testscript.Env) error {
				e.Values[theServers{}] = &servers{t: e.T().(testing.TB)}
				return emptyHome(e)
			},
			Cmds:                storyCommands(dbjobs),
			RequireExplicitExec: true,
			RequireUniqueNames:  true,
		})
	}
}

// TestScriptsOnEachEngine runs the stories that need a database, each in its own database. The stories of
// testdata/engines are about things that differ by engine, or must be true on each: they run on every engine. The
// stories of testdata/commands are about the output and the effects of commands: they run on SQLite and on one server
// in turn, and with DBJOBS_PROVE on all. A story that says dbjobs migrate begins with an empty database. Any other one
// begins with our tables, because making them takes longer than most stories. All commands run as a login with the
// rights of a ticker, except migrate and uninstall, which a migrator runs. If a story says call, a function is called.
// With DBJOBS_PROVE, each command is a process of its own on PostgreSQL.
func TestScriptsOnEachEngine(t *testing.T) {
	t.Parallel()
	ran := map[string]bool{}
	for _, engine := range storetest.Engines(t) {
		dbjobs := asFunction
		if engine == "postgres" && prove.Whole() {
			dbjobs = asProcess
		}
		files := storiesOn(t, engine)
		for _, f := range files {
			ran[f] = true
		}
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			for migrated, files := range byTables(t, files) {
				runStories(t, files, engine, migrated, dbjobs)
			}
		})
	}
	if all := stories(t, "engines", "commands"); len(ran) != len(all) {
		t.Errorf("%d stories of %d have an engine", len(ran), len(all))
	}
}

// runStories runs stories on an engine, each in its own database.
func runStories(t *testing.T, files []string, engine string, migrated bool, dbjobs caller) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			t := e.T().(testing.TB)
			e.Values[theServers{}] = &servers{t: t}
			return forEngine(e, engine, storetest.Apart(t, engine, migrated))
		},
		Condition: func(cond string) (bool, error) {
			if name, ok := strings.CutPrefix(cond, "engine:"); ok {
				return name == engine || name == storetest.Dialect(engine), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds:                storyCommands(dbjobs),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// byTables returns the stories that begin with our tables, as true, and those that begin without.
func byTables(t *testing.T, files []string) map[bool][]string {
	t.Helper()
	by := map[bool][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		migrated := !bytes.Contains(text, []byte("dbjobs migrate"))
		by[migrated] = append(by[migrated], file)
	}
	return by
}

// stories returns the files of these folders of testdata.
func stories(t *testing.T, folders ...string) (files []string) {
	t.Helper()
	for _, folder := range folders {
		list, err := filepath.Glob("testdata/" + folder + "/*.txt")
		if err != nil || len(list) == 0 {
			t.Fatalf("no stories in %s: %v", folder, err)
		}
		files = append(files, list...)
	}
	return files
}

// storiesOn returns the stories that an engine runs.
func storiesOn(t *testing.T, engine string) []string {
	t.Helper()
	return append(stories(t, "engines"), slices.DeleteFunc(stories(t, "commands"), func(file string) bool {
		return !slices.Contains(storetest.EnginesFor(t, file), engine)
	})...)
}

// forEngine gives a story the URLs of its database for the ticker, the migrator and the administrator. It also gives it
// two URLs of it that cannot work: one with a wrong password, and one that accepts no writes.
func forEngine(e *testscript.Env, engine string, a *storetest.Accounts) error {
	e.Values[theAccounts{}] = a
	kept := new(connections)
	e.Values[theConnections{}] = kept
	e.Defer(kept.close)
	u, err := url.Parse(a.Ticker)
	if err != nil {
		return err
	}
	wrong := *u
	wrong.User = url.UserPassword(u.User.Username(), "geheim")
	query := u.Query()
	switch engine {
	case "sqlite":
		query.Set("mode", "ro")
	case "postgres":
		query.Set("default_transaction_read_only", "on")
	default:
		query.Set(storetest.Words(engine, "tx_read_only"), "1")
	}
	u.RawQuery = query.Encode()
	e.Setenv("DBJOBS_DATABASE_URL", a.Ticker)
	e.Setenv("MIGRATOR", a.Migrator)
	e.Setenv("ADMIN", a.Admin)
	e.Setenv("LOGIN", u.User.Username())
	e.Setenv("WRONG_PASSWORD", wrong.String())
	e.Setenv("READ_ONLY", u.String())
	e.Setenv("DATABASE_NAME", databaseName(u.Opaque+u.Path))
	return emptyHome(e)
}

func emptyHome(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	e.Setenv("HOME", home)
	e.Setenv("TZ", "UTC")
	e.Setenv("GORACE", os.Getenv("GORACE"))
	return os.Mkdir(home, 0o700)
}

// storyCommands are the words that stories can use in addition to testscript's own. dbjobs is how they run the program,
// unless they ask for a process with exec dbjobs.
func storyCommands(dbjobs caller) map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"call":     dbjobs.call,
		"exits":    dbjobs.exits,
		"sql":      runSQL,
		"capture":  capture,
		"fill":     fill,
		"serve":    serveStory,
		"received": received,
		"monitor":  monitor,
	}
}

// caller runs dbjobs, and returns its exit code.
type caller func(ts *testscript.TestScript, args []string) (code int)

// asProcess starts the program that testscript.Main put on the path.
func asProcess(ts *testscript.TestScript, args []string) int {
	return execute(ts, append([]string{"dbjobs"}, args...))
}

// asFunction calls the program in the process of the test, because the start of a process takes longer than most
// commands. Only a process has a working folder. A function gets the whole name of a file, and its output has that
// file's name as the story wrote it. A story about other properties of a process needs a process: it says exec if it is
// about standard input, the zone, variables of programs or empty variables, or a database with a relative name.
func asFunction(ts *testscript.TestScript, args []string) int {
	args = slices.Clone(args)
	var names []string
	for i, given := range args {
		if !filepath.IsAbs(given) && namesFile(ts.MkAbs, args[:i], given) {
			args[i] = ts.MkAbs(given)
			names = append(names, args[i], given)
		}
	}
	env := func(name string) (string, bool) {
		value := ts.Getenv(name)
		return value, value != ""
	}
	var stdout, stderr bytes.Buffer
	code := runKept(context.Background(), keptFor(ts, args), args, strings.NewReader(""), &stdout, &stderr, env, nil)
	asNamed := strings.NewReplacer(names...)
	for to, text := range map[io.Writer]string{ts.Stdout(): stdout.String(), ts.Stderr(): stderr.String()} {
		_, err := asNamed.WriteString(to, text)
		ts.Check(err)
	}
	return code
}

// keptFor returns the connection for a command of a story, as the command's login. A command that names another
// database, or changes the tables, opens its own connection. Opening SQLite's file takes as long as most commands,
// because the schema is read each time.
func keptFor(ts *testscript.TestScript, args []string) *warm {
	k, _ := ts.Value(theConnections{}).(*connections)
	url := ts.Getenv("DBJOBS_DATABASE_URL")
	if k == nil || url == "" || slices.Contains(args, "--database") {
		return nil
	}
	if slices.Contains(args, "migrate") || slices.Contains(args, "uninstall") {
		k.close()
		return nil
	}
	return k.to(url)
}

// theConnections is the key of a story's connections.
type theConnections struct{}

// namesFile reports whether a word of a command line names a file or a folder, which it knows from the words before it.
// in returns the whole name of a file in the folder where the command runs.
func namesFile(in func(name string) string, before []string, word string) bool {
	if strings.HasPrefix(word, "-") || word == "" {
		return false
	}
	if len(before) > 0 && slices.Contains([]string{"-f", "-o", "--metrics"}, before[len(before)-1]) && strings.Contains(word, ".") {
		return true
	}
	_, err := os.Stat(in(word))
	return err == nil && len(before) > 1
}

func execute(ts *testscript.TestScript, argv []string) int {
	err := ts.Exec(argv[0], argv[1:]...)
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	if err != nil {
		ts.Fatalf("running %s: %v", argv[0], err)
	}
	return exitDone
}

// call runs dbjobs, which must succeed: call dbjobs job list.
func (dbjobs caller) call(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || args[0] != "dbjobs" {
		ts.Fatalf("usage: call dbjobs [ARG...]")
	}
	dbjobs.exits(ts, false, append([]string{"0"}, args...))
}

// exits runs a program that must end with this code: exits 2 dbjobs job show nobody. With exec before it, dbjobs is a
// process: exits 2 exec dbjobs tick.
func (dbjobs caller) exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var got int
	switch args[1] {
	case "dbjobs":
		got = dbjobs.asItsLogin(ts, args[2:])
	case "exec":
		got = execute(ts, args[2:])
	default:
		got = execute(ts, args[1:])
	}
	if got != want {
		ts.Fatalf("%s ended with code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// theAccounts is the key of a story's accounts.
type theAccounts struct{}

// asItsLogin runs a command that makes our tables, or drops them, as the migrator. The migrator then gives the ticker
// its rights on them.
func (dbjobs caller) asItsLogin(ts *testscript.TestScript, args []string) int {
	a, _ := ts.Value(theAccounts{}).(*storetest.Accounts)
	if a == nil || !slices.Contains([]string{"migrate", "uninstall"}, args[0]) {
		return dbjobs(ts, args)
	}
	before := ts.Getenv("DBJOBS_DATABASE_URL")
	ts.Setenv("DBJOBS_DATABASE_URL", a.Migrator)
	code := dbjobs(ts, args)
	ts.Setenv("DBJOBS_DATABASE_URL", before)
	if args[0] == "migrate" && code == exitDone {
		ts.Check(a.Grant(context.Background()))
	}
	return code
}

// capture takes the group of a pattern from the last output, and puts it into a variable: capture RUN '(\S+)'.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture VARIABLE PATTERN")
	}
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("no %s in the output, or not one group", args[1])
	}
	ts.Setenv(args[0], found[1])
}
