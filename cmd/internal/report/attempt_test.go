package report

import (
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// The code and the line of an error are shown once, also if the error has a longer number that begins, or ends, with them.
func TestErrorsOfAttempts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   store.Attempt
		want string
	}{
		{store.Attempt{Error: "near line 12", Line: 1}, "near line 12, line 1"},
		{store.Attempt{Error: "syntax error at line 1: near x", Line: 1}, "syntax error at line 1: near x"},
		{store.Attempt{Error: "online 1", Line: 1}, "online 1, line 1"},
		{store.Attempt{Error: "row 11064 is wrong", Code: "1064"}, "row 11064 is wrong (1064)"},
		{store.Attempt{Error: "Error 1064 (42000): near x", Code: "1064"}, "Error 1064 (42000): near x"},
	} {
		if got := attemptError(c.of); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Of a run with very many attempts, only the newest are read. The others are counted.
func TestRunCountsTheAttemptsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	for left, want := range map[int]string{0: "", 1: "1 earlier attempt left out", 86_000: "86000 earlier attempts left out; `dbjobs errors --job job`"} {
		var text strings.Builder
		r := store.RunDetail{Run: store.Run{Job: "job", Attempts: left + 1}, Tries: []store.Attempt{{StepName: "load", Number: left + 1}}}
		if err := Run(&text, r); err != nil || !strings.Contains(text.String(), want) || want == "" && strings.Contains(text.String(), "left out") {
			t.Errorf("%v: %d are left out: %s", err, left, &text)
		}
	}
}
