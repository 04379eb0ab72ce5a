package nearest

import "testing"

func TestTo(t *testing.T) {
	words := []string{"schedule", "schedules", "missed", "missed_limit", "retry", "sql"}
	for found, want := range map[string]string{
		"schedul": "schedule", "shcedule": "schedule", "missd": "missed", "Retry": "retry",
		"slq": "sql", "frobnicate": "", "x": "", "": "",
	} {
		if got := To(found, words); got != want {
			t.Errorf("%q: got %q, want %q", found, got, want)
		}
	}
}
