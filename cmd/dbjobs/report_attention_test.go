package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// What is wrong beside the jobs of the page needs attention, too, as for check: a run that nobody takes, one that does not end, a
// calendar that has ended, and that nobody ticks. A page of some jobs has only what is wrong with them.
func TestReportNamesWhatCheckFinds(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "sqlite")
	d := storetest.Open(t, "sqlite", store.Options{})
	dbjobs(t, d.URL, `
calendars: {de: {days: ["2020-01-01"]}}
schedules: {yearly: {rule: "@yearly", calendar: de}}
jobs:
  letter: {queue: letters, sql: SELECT 1}
  hang: {queue: slow, sql: SELECT 1}
  dated: {schedule: yearly, sql: SELECT 1}
`, exitDone, "apply", "-f", "-")
	for _, job := range []string{"letter", "hang"} {
		dbjobs(t, d.URL, "", exitDone, "job", "run-now", job)
	}
	dbjobs(t, d.URL, "", exitDone, "tick")
	now := time.Now()
	ago := func(since time.Duration) string { return ticktest.Literal(d, now.Add(-since)) }
	d.Exec(t, "UPDATE dbjobs_ticks SET since = "+ago(3*time.Hour)+", last_at = "+ago(3*time.Hour))
	d.Exec(t, "UPDATE dbjobs_runs SET ready_at = "+ago(2*time.Hour)+", queued_at = NULL WHERE queue = 'letters'")
	d.Exec(t, "UPDATE dbjobs_runs SET state = 'running', fence = 1, started_at = "+ago(30*time.Hour)+", lease_until = "+ago(-time.Hour)+" WHERE queue = 'slow'")
	page := dbjobs(t, d.URL, "", exitDone, "report", "-o", "-")
	for _, want := range []string{`{"kind":"no tick","text":"no pass is on record since `, `{"kind":"stuck","text":"runs of the queue letters are ready since `,
		`{"kind":"long","text":"run hang#1 has been under way since `, `{"kind":"calendar","text":"calendar de: its last day is 2020-01-01; add the days after that"}`} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if page := dbjobs(t, d.URL, "", exitDone, "report", "-o", "-", "--job", "dated"); !strings.Contains(page, `"attention":[]`) {
		t.Error("a page of one job has what is wrong elsewhere")
	}
}
