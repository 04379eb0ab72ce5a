package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestRoutinesKeepWhatIsNotNamed: a start has the zone that it had, and a null within the spec of a step is a value.
func TestRoutinesKeepWhatIsNotNamed(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			spec := `{"url": "https://example.org", "json": {"end": null}}`
			for _, c := range []call{
				routine("create_job", "call", "SELECT 1", "0 3 * * *", `{"zone": "Europe/Berlin", "start": "daily at 18:00", "start_zone": "Asia/Tokyo"}`),
				routine("alter_job", "call", `{"start": "daily at 19:00"}`),
				routine("alter_step", "call", "step 1", `{"executor": "http", "spec": `+spec+`}`),
				routine("alter_step", "call", "step 1", `{"timeout": "5m"}`),
			} {
				if err := c.on(d); err != nil {
					t.Fatal(err)
				}
			}
			var zone, is string
			if err := d.SQL.QueryRow("SELECT j.start_zone, s.spec FROM "+d.Table("jobs")+" j JOIN "+d.Table("steps")+" s ON s.job_id = j.id").Scan(&zone, &is); err != nil {
				t.Fatal(err)
			}
			if zone != "Asia/Tokyo" {
				t.Errorf("the zone of the start is %s", zone)
			}
			if !strings.Contains(is, "null") {
				t.Errorf("%s became %s", spec, is)
			}
		})
	}
}
