package report

import (
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// The name of a field may have the name of a header in it, and plain SQL may have written that. It cannot control the terminal.
func TestChangesStayOnTheirLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	list := []store.Change{{Kind: "job", Subject: "a", Action: "change", Fields: []store.FieldChange{{Field: "steps.s.headers.x\x1b[2Ja\nb", Before: "1\n\x1b", After: ""}}}}
	const want = "~ job a\n    steps.s.headers.x\\x1b[2Ja b: 1 \\x1b -> none\n0 created, 1 changed, 0 removed\n"
	if err := Changes(&out, Applied{Changes: list}); err != nil || out.String() != want {
		t.Errorf("%v, %q, want %q", err, out.String(), want)
	}
}
