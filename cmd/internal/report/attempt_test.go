package report

import (
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
