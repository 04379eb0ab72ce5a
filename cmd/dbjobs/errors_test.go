package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
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

// The error of an interrupted command over several databases still says which runs each pass has left open.
func TestExplainsWhatInterruptedPassesLeft(t *testing.T) {
	var talk bytes.Buffer
	c := newCLI(nil, &bytes.Buffer{}, &talk, func(string) (string, bool) { return "", false })
	open := &tick.UnendedError{Run: "1", Job: "night", Err: errors.New("it did not end")}
	var all []served
	for _, name := range []string{"shop", "bank"} {
		all = append(all, served{Database: name, Exit: exitInterrupted, Errors: c.explain(exitInterrupted, errors.Join(errors.New("a statement was cut"), open))})
	}
	want := []string{
		"shop: interrupted", "shop: run 1 of job night shows as running until its lease ends, and is recovered then: it did not end",
		"bank: interrupted", "bank: run 1 of job night shows as running until its lease ends, and is recovered then: it did not end",
	}
	if got := c.explain(exitInterrupted, worst(all)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestCheckOfAMistake: 1 and 2 are answers of check, so a mistake, and a failure, have the code that means unknown. A monitor shows
// only standard output, so the line is there.
func TestCheckOfAMistake(t *testing.T) {
	home := t.TempDir()
	for _, args := range [][]string{{"check", "--last-pass", "nonsense"}, {"check", "--overdue", "5m", "min"}, {"check", "--nonsense"}, {"check", "--log-format", "jsonl"}} {
		var out bytes.Buffer
		if code, said := invoke(t.Context(), t, home, nil, &out, args...); code != int(report.Unknown) || !strings.HasPrefix(out.String(), "UNKNOWN: ") || said == "" {
			t.Errorf("%q: code %d, printed %q, said %q", args, code, &out, said)
		}
	}
	var out bytes.Buffer
	if code, _ := invoke(t.Context(), t, home, nil, &out, "check", "--json", "extra"); code != int(report.Unknown) || !strings.Contains(out.String(), `"level": "UNKNOWN"`) {
		t.Errorf("code %d, printed %q", code, &out)
	}
	if code, _ := invoke(t.Context(), t, home, nil, fullDisk{}, "check"); code != int(report.Unknown) {
		t.Errorf("an answer that cannot be written: code %d", code)
	}
	for _, args := range [][]string{{"migrate"}, {"check"}} { // no pass is on record
		code, said := invoke(t.Context(), t, home, nil, io.Discard, args...)
		if want := map[string]int{"migrate": exitDone, "check": int(report.Critical)}[args[0]]; code != want {
			t.Errorf("%q: code %d, want %d, said %q", args, code, want, said)
		}
	}
}
