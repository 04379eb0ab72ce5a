package engine

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// An option that nothing reads is refused: a target would be written although its URL was meant to forbid that.
func TestOptionsOfASQLiteURL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	if db, err := Open(t.Context(), "sqlite:"+path, Options{Create: true}); err != nil {
		t.Fatal(err)
	} else if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for options, want := range map[string]string{
		"": "", "mode=ro": "", "mode=rw": "",
		"mode=readonly": "mode: want ro", "mode=RO": "mode: want ro", "mode=memory": "mode: want ro", "mode=": "mode: want ro", "mode=ro&mode=rw": "mode: want ro",
		"Mode=ro": "is mode meant?", "mdoe=ro": "is mode meant?", "mode=ro&immutable=1": `there is no "immutable"`,
		"busy_timeout=60000": `there is no "busy_timeout"`, "_pragma=journal_mode(DELETE)": `there is no "_pragma"`,
	} {
		for _, target := range []bool{false, true} {
			db, err := New("sqlite:"+path+"?"+options, Options{Target: target})
			if err == nil {
				db.Close()
			}
			if _, told := errors.AsType[*URLError](err); told != (want != "") || told && !strings.Contains(err.Error(), want) || !told && err != nil {
				t.Errorf("%q, target %t: %v, want %q", options, target, err, want)
			}
		}
	}
}
