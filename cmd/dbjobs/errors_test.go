package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// Each error that was joined has a line, and errors with the same text have one. An error that wraps two errors has one
// line.
func TestExplainsEachErrorOnALine(t *testing.T) {
	c := newCLI(nil, &bytes.Buffer{}, &bytes.Buffer{}, func(string) (string, bool) { return "", false })
	refused := errors.New("connection refused")
	prune := fmt.Errorf("prune: %w: %w", store.ErrUnreachable, refused)
	finish := fmt.Errorf("finish:\n%w", prune)
	err := errors.Join(errors.Join(prune, finish), nil, prune)
	want := []string{"prune: database out of reach: connection refused", "finish: prune: database out of reach: connection refused"}
	if got := c.explain(exitDatabase, err); !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
}
