package tick_test

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A batch costs what a batch costs: on a far database, the number of calls is the time that it takes.
func TestRoundTripsDoNotGrow(t *testing.T) {
	const few, many = 10, 5000
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			calls, transactions := map[int]string{}, map[int]int{}
			for _, n := range []int{few, many} {
				var c storetest.Calls
				d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
				d.Seed(t, storetest.Seed{Jobs: n, Rules: []string{"every 5m", "0 * * * *"}, Queue: "another"})
				tk := ticktest.New(t, d.Store)
				tk.Batch = many + 1 // a full page has another behind it
				if r, err := tk.Run(t.Context()); err != nil || r.Decided != n {
					t.Fatalf("plan: %v: %+v", err, r)
				}
				d.Clock.Add(2 * time.Hour)
				c.Reset()
				r, err := tk.Run(t.Context())
				if err != nil || r.Decided != n || r.Made != n {
					t.Fatalf("decide: %v: %+v", err, r)
				}
				transactions[n] = c.Count(storetest.Begin)
				calls[n] = ticktest.Kinds(&c)
			}
			t.Logf("a pass over %d or %d due jobs: %s", few, many, calls[few])
			if calls[few] != calls[many] || transactions[few] != 1 {
				t.Fatalf("%d jobs: %s; %d jobs: %s", few, calls[few], many, calls[many])
			}
		})
	}
}

func TestATickWithNothingDueIsTwoStatements(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			d.Seed(t, storetest.Seed{Jobs: 100, Rules: []string{"every 5m"}})
			tk := ticktest.New(t, d.Store)
			for _, pass := range []string{"plan", "first with nothing due", "next"} {
				c.Reset()
				if _, err := tk.Run(t.Context()); err != nil {
					t.Fatalf("%s: %v", pass, err)
				}
				if n := c.Count(); pass != "plan" && (n != 2 || c.Count(storetest.Query, storetest.Exec) != 2) {
					t.Errorf("%s: %s", pass, ticktest.Kinds(&c))
				}
				d.Clock.Add(time.Minute)
			}
			// A new process connects, and has no more to say than that.
			c.Reset()
			s, err := store.Open(t.Context(), d.URL, store.Options{Wrap: c.Wrap, Clock: d.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			tk.Store = s
			if _, err := tk.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.Count() != 3 || c.Count(storetest.Connect) != 1 {
				t.Errorf("a process of its own: %s", ticktest.Kinds(&c))
			}
		})
	}
}
