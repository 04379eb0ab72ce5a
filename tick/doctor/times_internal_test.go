package doctor

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// The gaps of a time that is looked up are those that a look at each gap counts, also where gaps overlap, repeat each other, or end
// before they begin.
func TestCoverageCountsWhatALookAtEachGapCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	at := func(n int) time.Time { return time.Date(2026, 1, 5, 8, n, 0, 0, time.UTC) }
	for range 300 {
		gaps := make([]store.Gap, random.IntN(12))
		for i := range gaps {
			from := random.IntN(20)
			gaps[i] = store.Gap{From: at(from), Through: at(from + random.IntN(6) - 1)}
		}
		c := cover(gaps)
		for minute := -2; minute < 28; minute++ {
			want := 0
			for _, g := range gaps {
				if g.From.Before(at(minute)) && !at(minute).After(g.Through) {
					want++
				}
			}
			if got := c.count(at(minute)); got != want {
				t.Fatalf("minute %d lies in %d gaps, not in %d: %+v", minute, want, got, gaps)
			}
		}
	}
}
