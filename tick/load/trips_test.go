package load

import (
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The number of calls of a batch does not grow with its jobs. On a far database, this number decides
// how long a batch takes.
func TestRoundTripsDoNotGrow(t *testing.T) {
	t.Parallel()
	few, many := 10, 1000
	if prove.Whole() {
		many = 5000
	}
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			calls, transactions := map[int]string{}, map[int]int{}
			for _, n := range []int{few, many} {
				var c storetest.Calls
				d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
				d.Seed(t, storetest.Seed{Jobs: n, Rules: []string{"every 5m", "0 * * * *"}, Queue: "another"})
				tk := ticktest.New(t, d.Store)
				tk.Batch = many + 1 // no page is full: after a full page there is another one
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

func TestRoundTripsOfATickWithNothingDue(t *testing.T) {
	t.Parallel()
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
			// A new process also connects, and makes no other call besides.
			c.Reset()
			s, err := store.Open(t.Context(), d.URL, store.Options{Wrap: c.Wrap, Clock: d.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			tk.Store = s
			ticktest.Pass(t, tk)
			if c.Count() != 3 || c.Count(storetest.Connect) != 1 {
				t.Errorf("a process of its own: %s", ticktest.Kinds(&c))
			}
		})
	}
}

// A pass that finds nothing to do reports the parked and the failing jobs by one more statement,
// however many there are. If there are none, it sends no more statement.
func TestRoundTripsOfStates(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			d.Seed(t, storetest.Seed{Jobs: 200, Rules: []string{"every 2h"}})
			tk := ticktest.New(t, d.Store)
			ticktest.Pass(t, tk)
			plans, jobs := d.Table("plans"), d.Table("jobs")
			for _, s := range []struct {
				sql             string
				parked, failing int
			}{
				{"UPDATE " + plans + " SET parked = 'broken' WHERE job_id <= 12", 12, 0},
				{"UPDATE " + plans + " SET streak = 3, last_error = 'failed' WHERE job_id > 100", 12, 100},
				{"UPDATE " + jobs + " SET removed_at = created_at, planned = NULL WHERE id IN (1, 101)", 11, 99},
				{"DELETE FROM " + jobs + " WHERE id IN (2, 102)", 10, 98},
				{"UPDATE " + plans + " SET parked = NULL WHERE job_id > 0", 0, 98},
				{"UPDATE " + plans + " SET streak = 0 WHERE job_id > 0", 0, 0},
			} {
				d.Exec(t, s.sql)
				if _, err := tk.Run(t.Context()); err != nil { // it decides for the edited jobs
					t.Fatal(err)
				}
				c.Reset()
				r, err := tk.Run(t.Context())
				if err != nil || r.ParkedJobs != s.parked || r.FailingJobs != s.failing || len(r.Parked) != min(10, s.parked) || len(r.Failing) != min(10, s.failing) {
					t.Fatalf("%s: %v: %d parked, %d failing: %v, %v", s.sql, err, r.ParkedJobs, r.FailingJobs, r.Parked, r.Failing)
				}
				if s.failing > 0 && (r.Failing[0].Failures != 3 || r.Failing[0].Error != "failed") {
					t.Errorf("%+v", r.Failing[0])
				}
				want := 2
				if s.parked+s.failing > 0 {
					want = 3
				}
				if c.Count() != want {
					t.Errorf("%s: %s", s.sql, ticktest.Kinds(&c))
				}
			}
		})
	}
}

// An outage leaves a gap of each job. Their times are counted with one statement for many gaps.
func TestRoundTripsOfMissedTimes(t *testing.T) {
	t.Parallel()
	const jobs = 350
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var c storetest.Calls
			d := storetest.Open(t, e, store.Options{Wrap: c.Wrap})
			d.Seed(t, storetest.Seed{Jobs: jobs, Rules: []string{"every 5m", "every 10m"}, Queue: "another"})
			tk := ticktest.New(t, d.Store)
			for range 2 {
				ticktest.Pass(t, tk)
				d.Clock.Add(2 * time.Hour)
			}
			c.Reset()
			list, err := tick.Missed(t.Context(), d.Store, "", d.Clock.Now().Add(-24*time.Hour), 2000)
			if err != nil || len(list) != jobs {
				t.Fatalf("%v: %d gaps, want %d", err, len(list), jobs)
			}
			for _, m := range list {
				if want := map[bool]int64{true: 11, false: 23}[m.JobID%2 == 1]; m.Times == nil || *m.Times != want {
					t.Fatalf("job %d has missed %v times, want %d", m.JobID, m.Times, want)
				}
			}
			if n := c.Count(); n > 1+jobs/100+1 {
				t.Errorf("%d calls for %d gaps: %s", n, jobs, ticktest.Kinds(&c))
			}
		})
	}
}
