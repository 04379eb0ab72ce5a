//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In these tests, suite is the test's own program.
func TestMain(m *testing.M) {
	if os.Getenv("SUITE") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// What a leg may end with: each fails the suite, but the first.
var packages = map[string]string{
	"passes":       "func Test(t *testing.T) { if os.Getenv(\"WORD\") != \"given\" { t.Error(\"no word\") } }",
	"fails":        "func Test(t *testing.T) { t.Error(\"wrong\") }",
	"panics":       "func Test(t *testing.T) { panic(\"wrong\") }",
	"exits":        "func Test(t *testing.T) { os.Exit(1) }",
	"exits early":  "func Test(t *testing.T) { os.Exit(0) }",
	"is killed":    "func Test(t *testing.T) { p, _ := os.FindProcess(os.Getpid()); _ = p.Kill(); select {} }",
	"is too slow":  "func Test(t *testing.T) { select {} }",
	"does not fit": "func Test(t *testing.T) { wrong }",
}

// module is a module in a folder of a test.
type module struct {
	t   *testing.T
	dir string
}

func (m module) write(name, text string) {
	m.t.Helper()
	file := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// suite runs suite. It returns the last action of each package.
func (m module) suite(args ...string) (last map[string]string, err error) {
	m.t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-o", filepath.Join(m.dir, "programs")}, args...)...)
	cmd.Dir, cmd.Env = m.dir, append(os.Environ(), "SUITE=1", "GOFLAGS=")
	out, err := cmd.Output()
	last = map[string]string{}
	for line := range strings.Lines(string(out)) {
		var event struct{ Action, Package, Test string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			m.t.Fatalf("%q: %v", line, err)
		}
		if event.Test == "" {
			last[event.Package] = event.Action
		}
	}
	return last, err
}

func TestSuiteFailsWhereATestDoes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not in the short form: it builds programs")
	}
	m := module{t, t.TempDir()}
	m.write("go.mod", "module example.com/suite\n")
	for name, test := range packages {
		folder := strings.ReplaceAll(name, " ", "")
		m.write(folder+"/a_test.go", "package "+folder+"\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Args\n\n"+test+"\n")
	}
	run := func(folders ...string) (last map[string]string, err error) {
		t.Helper()
		var legs []string
		for _, folder := range folders {
			timeout := "1m"
			if folder == "istooslow" {
				timeout = "10ms"
			}
			legs = append(legs, "leg WORD=given; ; -test.timeout="+timeout+"; ./"+folder)
		}
		return m.suite(legs...)
	}
	const passes = "example.com/suite/passes (leg)"
	if last, err := run("passes"); err != nil || last[passes] != "pass" {
		t.Errorf("all pass: %v: %q", err, last)
	}
	for name := range packages {
		folder := strings.ReplaceAll(name, " ", "")
		if folder == "passes" {
			continue
		}
		last, err := run("passes", folder)
		if err == nil {
			t.Errorf("one %s: no error: %q", name, last)
		}
		if name != "does not fit" && (last[passes] != "pass" || last["example.com/suite/"+folder+" (leg)"] != "fail") {
			t.Errorf("one %s: %q", name, last)
		}
	}
}

// A run that failed, or was cut, goes on: long tests that have passed are left out while their program is the same.
func TestSuiteGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not in the short form: it builds programs")
	}
	m := module{t, t.TempDir()}
	const test = `package long

import (
	"os"
	"testing"
	"time"
)

func Test(t *testing.T) {
	for _, name := range []string{"a", "b.b", "quick"} {
		t.Run(name, func(t *testing.T) {
			ran, _ := os.ReadFile("ran")
			_ = os.WriteFile("ran", append(ran, name+" "...), 0o600)
			if name != "quick" {
				time.Sleep(100 * time.Millisecond)
			}
			if _, err := os.Stat("may pass"); name != "a" && err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLeftOutByTheLeg(t *testing.T) { t.Error("it ran") }
`
	m.write("go.mod", "module example.com/suite\n")
	m.write("long/a_test.go", test)
	for _, run := range []struct {
		what, ran string
		before    func()
		fails     bool
	}{
		{"the first", "a b.b quick ", func() {}, true},
		{"the next", "b.b quick ", func() { m.write("long/may pass", "") }, false},
		{"all have passed", "", func() {}, false},
		{"a file for the tests", "a b.b quick ", func() { m.write("long/testdata/pages/one.txt", "1") }, false},
		{"another program", "a b.b quick ", func() { m.write("long/b_test.go", "package long\n\nvar Other = 1\n") }, false},
	} {
		m.write("long/ran", "")
		run.before()
		last, err := m.suite("-keep", filepath.Join(m.dir, "kept"), "-long", "90ms", "leg; ; -test.skip=^TestLeftOut; ./long")
		if failed := err != nil; failed != run.fails {
			t.Errorf("%s: %v: %q", run.what, err, last)
		}
		if ran, err := os.ReadFile(filepath.Join(m.dir, "long/ran")); err != nil || string(ran) != run.ran {
			t.Errorf("%s: ran %q, want %q: %v", run.what, ran, run.ran, err)
		}
	}
}
