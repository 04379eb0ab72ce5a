package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestRoutinesReadInstants: an instant with an offset is the same instant on each engine, whatever its year.
func TestRoutinesReadInstants(t *testing.T) {
	t.Parallel()
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			for i, text := range []string{"2027-06-01T10:00:00.123456Z", "2027-06-01T10:00:00-03:30", "2027-06-01T10:00:00+14:00", "2099-12-31T00:00:00+02:00", "1960-01-01T00:00:00-05:00"} {
				want, err := time.Parse(time.RFC3339, text)
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("job %d", i)
				if err := routine("create_job", name, "SELECT 1", nil, fmt.Sprintf(`{"not_after": %q}`, text)).on(d); err != nil {
					t.Errorf("%s: %v", text, err)
					continue
				}
				if v, err := d.Job(t.Context(), name); err != nil || !v.NotAfter.Equal(want) {
					t.Errorf("%s became %s, %v", text, v.NotAfter.Format(time.RFC3339Nano), err)
				}
			}
		})
	}
}
