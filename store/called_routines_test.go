package store

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Programs of the previous version call the routines that `dbjobs migrate` of this one brings in, and the other way round. So the
// arguments of a routine that the program itself calls never change: testdata has them, and nothing writes that file.
func TestRoutinesThatTheProgramCalls(t *testing.T) {
	path := filepath.Join("engine", "testdata", "called_routines.txt")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var golden []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			golden = append(golden, line)
		}
	}
	var all []string
	for _, e := range engine.All() {
		for _, r := range signatures(t, e) {
			if all = append(all, r.text); r.called && !slices.Contains(golden, r.text) {
				t.Errorf("the program calls what is not in %s:\n%s", path, r.text)
			}
		}
	}
	for _, g := range golden {
		if !slices.Contains(all, g) {
			t.Errorf("it is gone, or takes or returns something else; %s says what to do:\n%s", path, g)
		}
	}
}

// head is what a routine takes and returns.
var head = regexp.MustCompile(`(?s)CREATE (?:FUNCTION|PROCEDURE) .*?\)(?: RETURNS [^\n]*?)?\s*\n`)

// routineHead is the head of a routine, after the name of its engine, and whether a statement calls it.
type routineHead struct {
	text   string
	called bool
}

func signatures(t *testing.T, e *engine.Engine) (list []routineHead) {
	t.Helper()
	texts := slices.Collect(maps.Values(finalTexts(t, e)))
	all, err := Statements(e).Repeatables(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Kind == "VIEW" {
			continue
		}
		text := head.FindString(strings.Join(r.Statements, ";\n"))
		if text == "" {
			t.Errorf("%s: %s has no head", e.Name, r.Name)
		}
		called := slices.ContainsFunc(texts, func(st string) bool { return strings.Contains(st, r.Name+"(") })
		list = append(list, routineHead{e.Name + ": " + strings.Join(strings.Fields(text), " "), called})
	}
	return list
}
