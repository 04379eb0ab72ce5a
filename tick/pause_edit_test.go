package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A job that loses or gets a tag while the tag is paused is judged up to the edit by the tags that it had, and from then on by the
// new ones: no time in the pause fires back, and none before it counts as paused.
func TestPauseOfATagThatAnEditTakesOrGives(t *testing.T) {
	tags := []string{"nightly"}
	for name, c := range map[string]struct {
		before, after []string
		want          string // the pause begins at 9:30, the edit is at 12:30, and the next passes come at 13:30
	}{
		"taken": {tags, nil, "09:00 succeeded; 13:00 succeeded; paused (09:29:59.999999, 12:30:00]; next 14:00"},
		"given": {nil, tags, "09:00 succeeded; 12:00 succeeded; missed (09:00:00, 11:59:59.999999]; paused (12:30:00, 13:30:00]; next 14:00"},
		"kept":  {tags, []string{"nightly", "etl"}, "09:00 succeeded; paused (09:29:59.999999, 13:30:00]; next 14:00"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				j, other := ticktest.Hourly("job"), store.Job{Name: "other", Tags: tags, Steps: []store.Step{ticktest.Nop("")}}
				j.Tags = c.before
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j, other}})
				ticktest.Run(t, d)
				d.Clock.Set(ticktest.Morning(9, 0))
				ticktest.Run(t, d)
				d.Clock.Set(ticktest.Morning(9, 30))
				ticktest.Pause(t, d, store.Subject{Scope: store.ScopeTag, Name: "nightly"}, time.Time{})
				if j.Tags != nil { // a pass leaves the times in the pause open
					d.Clock.Set(ticktest.Morning(12, 0))
					ticktest.Run(t, d)
				}
				d.Clock.Set(ticktest.Morning(12, 30))
				j.Tags = c.after
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
				d.Clock.Set(ticktest.Morning(13, 30))
				ticktest.Run(t, d)
				ticktest.Resume(t, d, store.Subject{Scope: store.ScopeTag, Name: "nightly"}, false)
				ticktest.Run(t, d)
				if got := ticktest.ToldIn(t, d, "job", "15:04"); got != c.want {
					t.Errorf("%s, want\n%s", got, c.want)
				}
			})
		})
	}
}
