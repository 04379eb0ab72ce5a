package intake

import "testing"

// A name of the source stays what it is, but for what no name of a job may have.
func TestKeptNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"nightly": "nightly", " Größe 1 ": "Größe 1", "a/b-c": "a-b-c", "-x": "x", "\x01- x": "x", "--": ""} {
		if got := Kept(name); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
}
