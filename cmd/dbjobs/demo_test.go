package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// program is the command line as a program: testscript.Main has put it on the path.
func program(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("dbjobs")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDemo: the demonstration shows the promised output, the commands at its end work when they are pasted, and it
// leaves no file that git would see.
func TestDemo(t *testing.T) {
	t.Parallel()
	built(t)
	programs := t.TempDir()
	if out, err := makeTarget("demo-programs", "BUILD="+programs); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	home := filepath.Join(t.TempDir(), "a home") // a blank, as in real folders
	demo := exec.Command("../../scripts/demo", programs, home)
	out, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"rollup ", "clean-up ", " succeeded ", " failed ", " missed; ", "no such table: website.pages", "on request",
		"142     1958-03  1969-12  5", "1958  315.", "137     0", "# Where to go next:",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	_, commands, _ := strings.Cut(string(out), "# Three commands to try:\n")
	commands, pages, _ := strings.Cut(commands, "\n# Where to go next:\n")
	for line := range strings.Lines(pages) {
		path, anchor, _ := strings.Cut(strings.Fields(line)[0], "#")
		if p := readPage(t, path); anchor != "" && !slices.Contains(p.anchors(), anchor) {
			t.Errorf("%s has no heading #%s", path, anchor)
		}
	}
	tries := strings.Split(strings.TrimSpace(commands), "\n")
	if len(tries) != 3 {
		t.Fatalf("ends with %q", commands)
	}
	for _, try := range tries {
		c := exec.Command("bash", "-c", try)
		c.Dir = t.TempDir() // any folder in which they are pasted
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.TrimSpace(try), err, out)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}

	// A second time, it starts again from the beginning. It uses no folder that it did not make.
	if out, err := exec.Command("../../scripts/demo", programs, home).CombinedOutput(); err != nil {
		t.Errorf("again: %v\n%s", err, out)
	}
	theirs := t.TempDir()
	kept := filepath.Join(theirs, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("../../scripts/demo", programs, theirs).CombinedOutput(); err == nil {
		t.Errorf("took a folder of somebody's:\n%s", out)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}
