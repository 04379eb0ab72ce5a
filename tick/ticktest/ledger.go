package ticktest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// Told returns what the ledger has about a job: the nominal times of its runs, its gaps with their
// bounds, and the next time.
func Told(t *testing.T, d *storetest.DB, job string) string {
	t.Helper()
	return ToldIn(t, d, job, "01-02T15:04")
}

// ToldIn does the same as Told, with times in a format of its own, which ends with the minute.
func ToldIn(t *testing.T, d *storetest.DB, job, minute string) string {
	t.Helper()
	runs, err := d.Runs(t.Context(), store.RunFilter{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	gaps, err := d.Gaps(t.Context(), job, 100)
	if err != nil {
		t.Fatal(err)
	}
	status, err := d.Job(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, r := range slices.Backward(runs) {
		run := fmt.Sprintf("%s %s %s", r.ScheduledFor.Format(minute), r.State, r.HeldBy)
		parts = append(parts, strings.TrimSpace(run))
	}
	exact := minute + ":05.999999"
	for _, g := range slices.Backward(gaps) {
		from, through := g.From.Format(exact), g.Through.Format(exact)
		parts = append(parts, fmt.Sprintf("%s (%s, %s]", g.Reason, from, through))
	}
	return strings.Join(append(parts, "next "+status.NextRun.UTC().Format(minute)), "; ")
}

// States are the states of the job's runs, oldest first.
func States(t testing.TB, d *storetest.DB, job string) []string {
	t.Helper()
	runs, err := d.Runs(t.Context(), store.RunFilter{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]string, 0, len(runs))
	for _, r := range runs {
		list = append(list, r.State)
	}
	slices.Reverse(list)
	return list
}

// Kinds lists the calls in order.
func Kinds(c *storetest.Calls) string {
	var b strings.Builder
	for _, call := range c.All() {
		words := strings.Fields(call.SQL)
		fmt.Fprintf(&b, " %s", call.Kind)
		if len(words) > 0 {
			b.WriteString(":" + words[0])
		}
	}
	return fmt.Sprintf("%d calls:%s", c.Count(), b.String())
}

// Literal is an instant as a literal of SQL.
func Literal(d *storetest.DB, at time.Time) string {
	if d.Engine == "mariadb" {
		return at.UTC().Format("'2006-01-02 15:04:05.000000'")
	}
	return at.UTC().Format("'2006-01-02T15:04:05.000000Z'")
}

// Morning is a time of the day on which the test's clock begins.
func Morning(hour, minute int) time.Time {
	return time.Date(2026, 1, 5, hour, minute, 0, 0, time.UTC)
}

// LastRun is the newest run of the job, with its attempts.
func LastRun(t testing.TB, d *storetest.DB, job string) store.RunDetail {
	t.Helper()
	runs, err := d.Runs(t.Context(), store.RunFilter{Job: job, Limit: 1})
	if err != nil || len(runs) == 0 {
		t.Fatalf("the runs of %s: %d, %v", job, len(runs), err)
	}
	detail, err := d.Run(t.Context(), runs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return detail
}
