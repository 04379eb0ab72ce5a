package manifest

import (
	"os"
	"testing"
)

// The problem of a file that is included and cannot be read names it once.
func TestIncludedFileThatCannotBeRead(t *testing.T) {
	const memory = "/proc/self/mem" // its first page cannot be read, not even by root
	if _, err := os.Stat(memory); err != nil {
		t.Skip("a file that nobody can read is needed: ", err)
	}
	const want = `jobs.yaml:1:11: include[0]: "/proc/self/mem": input/output error`
	if _, err := decode(t, "include: [/proc/self/mem]\n"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
