package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A pause may begin while its job is removed, so that the removal does not see it, or be inserted for what is gone. No command
// could end it, so the next pass does. Pauses of what is there go on.
func TestPauseOfWhatIsGoneEnds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		steps := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "hourly", Rule: "every 1h"}, {Name: "daily", Rule: "every 1d"}},
			Jobs: []store.Job{{Name: "gone", Steps: steps}, {Name: "stays", Schedules: []string{"hourly"}, Steps: steps}}})
		for _, on := range []store.Subject{{Scope: store.ScopeJob, Name: "gone"}, {Scope: store.ScopeJob, Name: "stays"}, {Scope: store.ScopeSchedule, Name: "hourly"},
			{Scope: store.ScopeSchedule, Name: "daily"}} {
			pause(t, d, on.Scope, on.Name, time.Time{})
		}
		if err := d.RemoveJob(t.Context(), "gone", store.Author{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.RemoveSchedule(t.Context(), "daily", false, store.AlterOptions{}); err != nil {
			t.Fatal(err)
		}
		pauses := d.Table("pauses")
		d.Exec(t, "UPDATE "+pauses+" SET resumed_at = NULL, resumed_by = NULL") // the removals have not seen them
		d.Exec(t, "INSERT INTO "+pauses+" (scope, subject_id) VALUES ('job', 4711)")
		for range 2 {
			ticktest.Run(t, d)
		}
		list, err := d.Pauses(t.Context(), false, 10)
		if err != nil || len(list) != 2 {
			t.Errorf("%v: %d pauses go on, want 2: %+v", err, len(list), list)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+pauses+" WHERE resumed_by = '"+store.Itself+"'"); n != 3 {
			t.Errorf("%d pauses were ended, want 3", n)
		}
	})
}
