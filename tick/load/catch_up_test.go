package load

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A server refuses a packet that is too long. A long catch-up would make one, so it is written in parts.
func TestCatchUpBeyondAPacket(t *testing.T) {
	t.Parallel()
	const jobs, each, most = 13, 1000, 4 << 20
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: calls.Wrap})
			var defs store.Definitions
			for i := range jobs {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job ", i), Queue: strings.Repeat("q", 180), Missed: "all", MissedLimit: each,
					Own: &store.Schedule{Rule: "every 1m"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}})
			}
			ticktest.Apply(t, d, defs)
			ticktest.Run(t, d)
			d.Clock.Add(each * time.Minute)
			calls.Reset()
			if r := ticktest.Run(t, d); r.Made != jobs*each {
				t.Fatalf("%+v", r)
			}
			parts := 0
			for _, c := range calls.All() {
				if !strings.Contains(c.SQL, "INTO "+d.Table("runs")) {
					continue
				}
				parts++
				for _, a := range c.Args {
					if text, ok := a.Value.(string); ok && len(text) > most+1 {
						t.Errorf("a document of %d bytes", len(text))
					}
				}
			}
			if parts < 2 {
				t.Errorf("%d parts: the test is too small", parts)
			}
			if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")); n != jobs*each {
				t.Errorf("%d runs", n)
			}
		})
	}
}
