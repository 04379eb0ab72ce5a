package store_test

import (
	"errors"
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
			_, err := d.ApplyCalendar(t.Context(), c, store.ApplyOptions{})
			if refused, ok := errors.AsType[*store.FieldError](err); !ok || !strings.Contains(refused.Problem, "at most") {
				t.Errorf("%.20q, %.20q: %v", c.Description, c.WorkingDays, err)
			}
		}
	})
}
