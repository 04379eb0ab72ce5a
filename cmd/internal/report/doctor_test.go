package report

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/tick/doctor"
)

// The last line of an examination says how far it went, so that nobody takes times for compared that were not.
func TestDoctorSaysHowFarItWent(t *testing.T) {
	since := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for shorter, want := range map[int]string{
		0: "examined 3 jobs and 80 nominal times since " + Instant(since) + ": 0 findings\n",
		2: "examined 3 jobs and 80 nominal times since " + Instant(since) + ", of 2 jobs only newer ones: 0 findings\n",
	} {
		var b strings.Builder
		if err := Doctor(&b, &doctor.Report{Jobs: 3, Times: 80, Since: since, Shorter: shorter}); err != nil || b.String() != want {
			t.Errorf("%q, %v, want %q", b.String(), err, want)
		}
	}
}
