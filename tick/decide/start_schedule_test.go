package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestStart(t *testing.T) {
	made := time.Date(2026, 1, 5, 8, 0, 0, 500e6, time.UTC) // a Monday
	for _, c := range []struct{ rule, zone, want string }{
		{"D 17:30", "", "2026-01-05T17:30:00Z"},
		{"D 17:30", "America/New_York", "2026-01-05T22:30:00Z"},
		{"D 8:00", "UTC", "2026-01-06T08:00:00Z"},
		{"W 1 7:30", "UTC", "2026-01-12T07:30:00Z"},
		{"I 0:05", "UTC", "2026-01-05T08:05:00Z"},
		{"at 2026-12-01T17:30:00", "Europe/Berlin", "2026-12-01T16:30:00Z"},
		{"30 2 29 3 *", "Europe/Berlin", "2026-03-29T01:30:00Z"}, // the clocks go forward
		{"at 2025-12-01T17:30:00", "", `"at 2025-12-01T17:30:00": has no time after 2026-01-05T08:00:00Z; remove it to begin at once`},
		{"D 17:30", "Nowhere/Land", "Nowhere/Land"},
		{"sometime", "", `"sometime": at position 1`},
	} {
		at, err := Start(c.rule, c.zone, made)
		if got := at.Format(time.RFC3339) + fmt.Sprint(err); !strings.Contains(got, c.want) || err == nil != strings.HasPrefix(c.want, "2026") {
			t.Errorf("%s %s: %s, %v", c.rule, c.zone, at, err)
		}
	}
}
