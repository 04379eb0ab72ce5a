package load

import (
	"context"
	"errors"
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
	const jobs, each, most = 1, 13_000, 4 << 20 // what one job makes is one transaction
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

// A catch-up of many jobs is written in several transactions, none of which has more runs than fit into the memory of a small
// machine. A pass that ends after the first one has done that much, and the next pass goes on behind it.
func TestCatchUpInSeveralTransactions(t *testing.T) {
	t.Parallel()
	const jobs, each, most = 24, 1000, 5000
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			written, largest := 0, 0 // runs of the transaction under way, and of the largest one
			calls := storetest.Calls{After: func(c storetest.Call) error {
				switch c.Kind {
				case storetest.Exec:
					written += strings.Count(fmt.Sprint(c.Args), `"occurrence":`)
				case storetest.Commit:
					largest = max(largest, written)
					if written > 0 {
						cancel()
					}
					written = 0
				}
				return nil
			}}
			d := storetest.Open(t, e, store.Options{})
			var defs store.Definitions
			for i := range jobs {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job ", i), Queue: "nobody", Missed: "all", MissedLimit: each,
					Own: &store.Schedule{Rule: "every 1m"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}})
			}
			ticktest.Apply(t, d, defs)
			ticktest.Run(t, d)
			d.Clock.Add(each * time.Minute)
			tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
			if r, err := tk.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("%v: %+v", err, r)
			}
			first := d.Int(t, "SELECT count(*) FROM "+d.Table("runs"))
			if first == 0 || first > most || largest > most {
				t.Fatalf("the first transaction made %d runs, and the largest one %d", first, largest)
			}
			if r := ticktest.Pass(t, tk); r.Made != jobs*each-first || largest > most {
				t.Errorf("after %d runs, the next pass made %d; the largest transaction had %d", first, r.Made, largest)
			}
			if n := d.Int(t, "SELECT count(*) FROM (SELECT DISTINCT job_id, scheduled_for FROM "+d.Table("runs")+") r"); n != jobs*each {
				t.Errorf("%d different runs", n)
			}
		})
	}
}

// A catch-up in several transactions gives the place of a group to the run of the highest priority, wherever its job is.
func TestCatchUpOfAGroup(t *testing.T) {
	t.Parallel()
	const jobs, each = 16, 700
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, e, store.Options{})
			defs := store.Definitions{Groups: []store.Group{{Name: "reports", MaxRunning: 1}}}
			for i := range jobs {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job ", i), Queue: "nobody", Group: "reports", Missed: "all", MissedLimit: each,
					Own: &store.Schedule{Rule: "every 1m"}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}})
			}
			defs.Jobs[jobs-1].Priority = 10
			ticktest.Apply(t, d, defs)
			ticktest.Run(t, d)
			d.Clock.Add(each * time.Minute)
			if r := ticktest.Run(t, d); r.Made != jobs*each {
				t.Fatalf("%+v", r)
			}
			const queued = " FROM %s r JOIN %s j ON j.id = r.job_id WHERE r.state = 'queued'"
			all, best := fmt.Sprintf("SELECT count(*)"+queued, d.Table("runs"), d.Table("jobs")), fmt.Sprintf("SELECT coalesce(max(j.priority), -1)"+queued, d.Table("runs"), d.Table("jobs"))
			if n, priority := d.Int(t, all), d.Int(t, best); n != 1 || priority != 10 {
				t.Errorf("%d runs have a place, and the best one has priority %d", n, priority)
			}
		})
	}
}
