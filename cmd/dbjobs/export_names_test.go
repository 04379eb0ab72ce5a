package main

import (
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// A file defines a name once. Two owners may have a job of one name, and a file of both would lose one of them.
func TestExportRefusesJobsOfOneName(t *testing.T) {
	t.Parallel()
	ann, bob := store.Job{Owner: "ann", Name: "load"}, store.Job{Owner: "bob", Name: "load"}
	if err := namedOnce([]store.Job{ann, {Owner: "bob", Name: "purge"}}); err != nil {
		t.Error(err)
	}
	if err := namedOnce([]store.Job{ann, bob}); err == nil || !strings.Contains(err.Error(), "ann/load and bob/load have the same name") {
		t.Errorf("two jobs of one name: %v", err)
	}
}
