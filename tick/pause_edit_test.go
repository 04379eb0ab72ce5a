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

// The times in a pause stay open to resume --missed, although somebody has edited the job in the pause, as one does who repairs a
// job that has paused itself. Only an edit of what says which times the job has, or when it is held, decides what came before it.
func TestMissedTimesOfAPauseInWhichTheJobWasEdited(t *testing.T) {
	const open, decided = "09:00 succeeded; 10:00 succeeded; 11:00 succeeded; 12:00 succeeded; next 13:00",
		"09:00 succeeded; 12:00 succeeded; paused (09:29:59.999999, 11:45:00]; next 13:00"
	for name, c := range map[string]struct {
		edit func(*store.Job)
		want string
	}{
		"timeout":    {func(j *store.Job) { j.Timeout = store.Duration(2 * time.Hour) }, open},
		"keep":       {func(j *store.Job) { j.Keep.Runs = 9 }, open},
		"hooks":      {func(j *store.Job) { j.On.Failed = "other" }, open},
		"priority":   {func(j *store.Job) { j.Priority = 3 }, open},
		"not_before": {func(j *store.Job) { j.NotBefore = ticktest.Morning(8, 0) }, decided},
		"not_after":  {func(j *store.Job) { j.NotAfter = ticktest.Morning(23, 0) }, decided},
		"tags":       {func(j *store.Job) { j.Tags = []string{"etl"} }, decided},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				j := ticktest.Hourly("job")
				j.Missed, j.MissedLimit, j.Overlap = store.MissedAll, 9, store.OverlapWaitAll
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j, {Name: "other", Steps: []store.Step{ticktest.Nop("")}}}})
				at := func(hour, minute int) {
					t.Helper()
					d.Clock.Set(ticktest.Morning(hour, minute))
					ticktest.Run(t, d)
				}
				ticktest.Run(t, d)
				at(9, 0)
				on := store.Subject{Scope: store.ScopeJob, Name: "job"}
				d.Clock.Set(ticktest.Morning(9, 30))
				ticktest.Pause(t, d, on, time.Time{})
				at(11, 30)
				d.Clock.Set(ticktest.Morning(11, 45))
				c.edit(&j)
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
				ticktest.Run(t, d)
				at(12, 30)
				ticktest.Resume(t, d, on, true)
				for range 4 {
					ticktest.Run(t, d)
				}
				if got := ticktest.ToldIn(t, d, "job", "15:04"); got != c.want {
					t.Errorf("%s, want\n%s", got, c.want)
				}
			})
		})
	}
}
