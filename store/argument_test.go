package store_test

import (
	"os/exec"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// A shell reads the argument as the name, whatever is in it; a plain name stays as it is.
func TestArgumentIsOneWordOfAShell(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nightly", "ana/größe-1.2", "nightly load", "it's $HOME", "a;b", "", "`id`", "*", `back\slash`, "a#b", "~x", "line\nend"} {
		got, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+store.Argument(name)).Output()
		if err != nil || string(got) != name {
			t.Errorf("%q: the shell reads %q (%v)", name, got, err)
		}
	}
	for _, name := range []string{"nightly", "ana/größe-1.2"} {
		if got := store.Argument(name); got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
}
