package manifest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// What cannot be read is taken out and named, and the rest stays.
func TestTakeUnreadable(t *testing.T) {
	t.Parallel()
	shell := func(spec string) []store.Step {
		return []store.Step{{Name: "step 1", Executor: "shell", Spec: []byte(spec)}}
	}
	d := store.Definitions{
		Groups:    []store.Group{{Name: "narrow", MaxRunning: 1}, {Name: "torn", Fault: "max_running"}},
		Calendars: []store.Calendar{{Name: "days"}, {Name: "torn", Fault: "days"}},
		Schedules: []store.Schedule{{Name: "hourly", Rule: "every 1h"}, {Name: "torn", Fault: "rule"}, {Name: "odd", Rule: "now and then"},
			{Name: "daily", Rule: "@daily", Calendar: "gone"}},
		Jobs: []store.Job{{Owner: "ann", Name: "good", Steps: shell(`{"run": ["echo"]}`)}, {Owner: "ann", Name: "torn", Steps: shell(`{"run": "echo"}`)},
			{Owner: "ann", Name: "odd", Steps: []store.Step{{Name: "step 1", Executor: "exotic"}}},
			{Owner: "ann", Name: "bare"}, {Owner: "ann", Name: "narrow", Group: "gone", Steps: shell(`{"run": ["echo"]}`)},
			{Owner: "ann", Name: "two", MaxRunning: 2, Steps: shell(`{"run": ["echo"]}`)}},
	}
	var found []string
	out, err := TakeUnreadable(&d, func([]store.Reference) (*store.Known, error) { return &store.Known{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range out {
		if found = append(found, u.Kind+" "+u.Name); u.Problem == "" {
			t.Errorf("%s %s has no problem", u.Kind, u.Name)
		}
	}
	if want := []string{"group torn", "calendar torn", "schedule torn", "schedule odd", "schedule daily", "job ann/torn", "job ann/odd", "job ann/bare", "job ann/narrow", "job ann/two"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if left := fmt.Sprint(d.Groups[0].Name, len(d.Groups), d.Calendars[0].Name, len(d.Calendars), d.Schedules[0].Name, len(d.Schedules), d.Jobs[0].Name, len(d.Jobs)); left != "narrow1days1hourly1good1" {
		t.Error(left)
	}
}
