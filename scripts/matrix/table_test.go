//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A suite that is run alone takes away its own events of before, and leaves those of the others.
func TestRunLeavesOtherSuites(t *testing.T) {
	m := matrix{servers: "true", dir: t.TempDir(), only: "store"}
	if err := os.Mkdir(m.folder("sqlite"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		if err := os.WriteFile(m.events("sqlite", s), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.run("sqlite"); err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		if _, err := os.Stat(m.events("sqlite", s)); (err == nil) != (s.name != "store") {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func TestCountEvents(t *testing.T) {
	const p = `"Package":"github.com/dbjobs/dbjobs/store"`
	file := filepath.Join(t.TempDir(), "events.json")
	events := `{"Action":"start",` + p + `}
{"Action":"run",` + p + `,"Test":"TestA"}
{"Action":"run",` + p + `,"Test":"TestA/postgres"}
{"Action":"run",` + p + `,"Test":"TestA/mariadb"}
{"Action":"pass",` + p + `,"Test":"TestA/postgres"}
{"Action":"fail",` + p + `,"Test":"TestA/mariadb"}
{"Action":"fail",` + p + `,"Test":"TestA"}
{"Action":"run",` + p + `,"Test":"TestB"}
{"Action":"skip",` + p + `,"Test":"TestB"}
{"Action":"run",` + p + `,"Test":"TestNeverEnds"}
{"Action":"output",` + p + `,"Test":"TestNeverEnds","Output":"panic\n"}
{"Action":"fail",` + p + `}
{"Action":"start","Package":"github.com/dbjobs/dbjobs/tick"}
{"Action":"fail","Package":"github.com/dbjobs/dbjobs/tick"}
`
	if err := os.WriteFile(file, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := countEvents(file)
	want := []string{"store TestA/mariadb", "store TestNeverEnds", "tick"}
	if err != nil || c.passed != 1 || c.skipped != 1 || !slices.Equal(c.failed, want) {
		t.Errorf("%v: %+v, want 1 passed, 1 skipped, and %q failed", err, c, want)
	}
}
