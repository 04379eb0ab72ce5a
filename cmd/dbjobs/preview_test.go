package main

import (
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// However many newer pauses of other jobs are in force, a change of a paused job shows no next times.
func TestTimesOfAJobPausedBeforeManyOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		dbjobs(t, d.URL, "", exitDone, "job", "create", "idle", "--rule", "every 1h", "--sql", "SELECT 1")
		dbjobs(t, d.URL, "", exitDone, "tick")
		dbjobs(t, d.URL, "", exitDone, "job", "pause", "idle")
		pauses := d.Table("pauses")
		d.Exec(t, strings.ReplaceAll("INSERT INTO "+pauses+" (scope, subject_id, paused_by, since) SELECT 'job', 1000000 + i, 'ada', "+
			"(SELECT min(since) FROM "+pauses+" AS p) FROM NUMBERS ORDER BY i", "NUMBERS", storetest.Numbers(mostPauses+1)))
		out := dbjobs(t, d.URL, "", exitDone, "job", "alter", "idle", "--description", "new", "--dry-run", "--json")
		if !strings.Contains(out, `"after": []`) || !strings.Contains(out, `"before": []`) {
			t.Errorf("alter: %s", out)
		}
	})
}
