package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A text of a calendar that some engine could not hold is refused on each of them, in the same words.
func TestATextOfACalendarFitsEachEngine(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		for _, c := range []store.Calendar{
			{Name: "c", Description: strings.Repeat("d", 1001)},
			{Name: "c", WorkingDays: "MO," + strings.Repeat(" ", 200) + "TU"},
		} {
			_, err := d.AlterCalendar(t.Context(), c.Name, store.AlterOptions{}, func(*store.Calendar) (store.Calendar, error) { return c, nil })
			if refused, ok := errors.AsType[*store.FieldError](err); !ok || !strings.Contains(refused.Problem, "at most") {
				t.Errorf("%.20q, %.20q: %v", c.Description, c.WorkingDays, err)
			}
		}
	})
}

// The same holds for the texts of a job and of a schedule.
func TestATextOfAJobFitsEachEngine(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		long, step := "every"+strings.Repeat(" ", 62_000)+"5m", strings.Repeat("s", 190)
		tags := make([]string, 400)
		for i := range tags {
			tags[i] = fmt.Sprintf("%0180d", i)
		}
		works := []store.Step{sqlStep("", "SELECT 1")}
		calls := sqlStep("", "SELECT 1")
		calls.OnFailure = store.StepNamed + step
		for _, c := range []store.Definitions{
			{Schedules: []store.Schedule{{Name: "s", Rule: long}}},
			{Jobs: []store.Job{{Name: "j", Own: &store.Schedule{Rule: long}, Steps: works}}},
			{Jobs: []store.Job{{Name: "j", Own: &store.Schedule{Rule: "every 5m", Description: strings.Repeat("d", 1001)}, Steps: works}}},
			{Jobs: []store.Job{{Name: "j", Own: &store.Schedule{Rule: "every 5m"}, Start: long, Steps: works}}},
			{Jobs: []store.Job{{Name: "j", Tags: tags, Steps: works}}},
			{Jobs: []store.Job{{Name: "j", Steps: []store.Step{calls, sqlStep(step, "SELECT 1")}}}},
		} {
			_, err := d.Apply(t.Context(), c, store.ApplyOptions{})
			if refused, ok := errors.AsType[*store.FieldError](err); !ok || !strings.Contains(refused.Problem, "at most") {
				t.Errorf("%.200v: %v", c, err)
			}
		}
	})
}

// Days with blanks around them, several in one text, and empty ones are what the database gives back: the second apply
// changes nothing.
func TestDaysAreAppliedOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		c := store.Calendar{Name: "c", Days: []string{" 2030-12-25 Christmas\t", "2030-12-31\n01-01 New Year's Day\n", ""}}
		for _, want := range []int{1, 0} {
			changes, err := d.Apply(t.Context(), store.Definitions{Calendars: []store.Calendar{c}}, store.ApplyOptions{})
			if err != nil || len(changes) != want {
				t.Errorf("%v, %v; want %d changes", changes, err, want)
			}
		}
	})
}
