package store

import (
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store/engine"
)

// An error says what was being done. The words come from an action, or from a statement's name that
// begins with a verb.
func TestStatementsHaveActions(t *testing.T) {
	verbs := []string{"begin", "count", "delete", "drop", "enable", "end", "examine", "extend", "forget", "insert", "lock", "mark", "park", "record",
		"remove", "request", "return", "set", "update"}
	var names []string
	for _, e := range engine.All() {
		names = append(names, Statements(e).Names()...)
	}
	for _, name := range names {
		if verb, _, _ := strings.Cut(name, "_"); actions[name] == "" && !slices.Contains(verbs, verb) {
			t.Errorf("statement %s has no entry in actions, and its name does not say what it does", name)
		}
	}
	for name := range actions {
		if !slices.Contains(names, name) {
			t.Errorf("actions has %s, which is not a statement", name)
		}
	}
}
