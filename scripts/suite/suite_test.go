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

func TestSuiteFailsWhereATestDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/suite\n")
	for name, test := range packages {
		folder := strings.ReplaceAll(name, " ", "")
		write(folder+"/a_test.go", "package "+folder+"\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Args\n\n"+test+"\n")
	}
	run := func(folders ...string) (last map[string]string, err error) {
		t.Helper()
		legs := []string{"-o", filepath.Join(dir, "programs")}
		for _, folder := range folders {
			timeout := "1m"
			if folder == "istooslow" {
				timeout = "10ms"
			}
			legs = append(legs, "leg WORD=given; ; -test.timeout="+timeout+"; ./"+folder)
		}
		cmd := exec.Command(os.Args[0], legs...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "SUITE=1", "GOFLAGS=")
		out, err := cmd.Output()
		last = map[string]string{}
		for line := range strings.Lines(string(out)) {
			var event struct{ Action, Package, Test string }
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if event.Test == "" {
				last[event.Package] = event.Action
			}
		}
		return last, err
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
