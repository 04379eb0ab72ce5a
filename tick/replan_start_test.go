package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job gets a start while the clock is ahead. Its first time counts from the correction, whether a pass has planned it or not.
func TestReplanOfAStartThatWasGivenAhead(t *testing.T) {
	for _, planned := range []string{"not", "since"} {
		t.Run("planned "+planned, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				apply := func(start string) {
					t.Helper()
					j := fiveMinutely("job")
					j.Start = start
					if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{j}}, store.ApplyOptions{Start: decide.Start}); err != nil {
						t.Fatal(err)
					}
				}
				apply("")
				ticktest.DecideOnly(t, d)
				right := d.Clock.Now()
				d.Clock.Set(right.AddDate(1, 0, 0))
				apply("daily at 08:30")
				d.Clock.Set(right.Add(time.Minute))
				if planned == "since" {
					ticktest.DecideOnly(t, d)
				}
				for _, want := range []int{1, 0} {
					if n, err := d.Replan(t.Context(), "", store.Author{}); err != nil || n.Jobs != want {
						t.Fatalf("%+v, %v; want %d", n, err, want)
					}
				}
				for _, want := range []int{0, 1} {
					for range 3 {
						ticktest.Run(t, d)
						d.Clock.Add(7 * time.Minute)
					}
					if got := ticktest.States(t, d, "job"); min(len(got), 1) != want {
						t.Errorf("before %v: %v", d.Clock.Now(), got)
					}
				}
			})
		})
	}
}
