package decide

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// The times of a job end with the last run that max_runs leaves, however many these are. If its rules would have to be walked
// through for that, they end earlier, and Span says so.
func TestSpanEndsWithTheLastRun(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)
	begin := now.Truncate(time.Minute)
	minutely := []string{"* * * * *"}
	for _, c := range []struct {
		name  string
		rules []string
		left  int64
		skips int
		bound time.Time // not_after
		last  time.Time
		cut   bool
	}{
		{"few", minutely, 10, 0, time.Time{}, begin.Add(10 * time.Minute), false},
		{"most", minutely, 10_000, 0, time.Time{}, begin.Add(10_000 * time.Minute), false},
		{"more", minutely, 10_001, 0, time.Time{}, begin.Add(10_001 * time.Minute), false},
		{"many", minutely, 100_000_000, 0, time.Time{}, begin.Add(100_000_000 * time.Minute), false},
		{"daily", []string{"0 8 * * *"}, 20_000, 0, time.Time{}, begin.AddDate(0, 0, 20_000-1).Add(8 * time.Hour), false},
		{"skipped", minutely, 10_080, 2, time.Time{}, begin.Add(10_082 * time.Minute), false},
		{"bounded", minutely, 10_080, 0, begin.Add(10_050 * time.Minute), begin.Add(10_050 * time.Minute), false},
		{"for ever", []string{"0 8 * * *"}, 100_000_000, 0, time.Time{}, time.Time{}, false},
		{"two rules", []string{"* * * * *", "*/2 * * * *"}, 9_000, 0, time.Time{}, begin.Add(9_000 * time.Minute), false},
		{"two rules, many", []string{"* * * * *", "*/2 * * * *"}, 10_080, 0, time.Time{}, begin.Add(10_000 * time.Minute), true},
	} {
		v := store.JobStatus{Job: store.Job{Name: "job", MaxRuns: 5 + c.left, NotAfter: c.bound}, RunsMade: 5}
		var list []store.Rule
		for _, rule := range c.rules {
			list = append(list, store.Rule{Linked: true, Schedule: store.Schedule{Rule: rule}})
		}
		for i := range c.skips {
			at := begin.Add(time.Duration(10_020+i) * time.Minute)
			v.Skips = append(v.Skips, store.Skip{At: at}, store.Skip{At: at.Add(time.Second)}) // the second one is no time of the job
		}
		n, err := NewNominal(&v.Job, list)
		if err != nil {
			t.Fatal(err)
		}
		if first, last, cut := n.Span(now, &v); !first.Equal(now) || !last.Equal(c.last) || cut != c.cut {
			t.Errorf("%s: from %s to %s, cut %t; want %s to %s, %t", c.name, first, last, cut, now, c.last, c.cut)
		}
	}
}
