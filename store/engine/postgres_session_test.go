package engine

import "testing"

// If there may be triggers at the login, a reset looks for them, also if it does not understand the version.
func TestHasLoginTriggers(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"15.18 (Debian 15.18-0+deb12u1)": false, "16.4": false, "9.6.24": false, "17.0": true, "17.4 (Homebrew)": true, "18beta1": true, "": true,
	} {
		if got := hasLoginTriggers(version); got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}
