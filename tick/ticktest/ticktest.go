// Package ticktest has what the tests of passes share: ticks over a test's database, small jobs,
// functions that read the records of jobs, and ticks in processes of their own. Only tests import it.
package ticktest

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// New is a tick over the test's database, by the test's clock.
func New(t testing.TB, s *store.Store) *tick.Tick {
	t.Helper()
	x, err := executor.NewSQL(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return &tick.Tick{Store: s, Name: "test", Holder: t.Name(), Version: "test", Now: time.Now,
		Executors: executor.Registry{"sql": x, "nothing": Nothing{}}}
}

// Pass is a pass, or several, of a tick. It must not fail.
func Pass(t testing.TB, tk *tick.Tick) tick.Report {
	t.Helper()
	r, err := tk.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Run is one pass, which must not fail.
func Run(t testing.TB, d *storetest.DB) tick.Report {
	t.Helper()
	return Pass(t, New(t, d.Store))
}

// DecideOnly is a pass that starts nothing.
func DecideOnly(t testing.TB, d *storetest.DB) {
	t.Helper()
	tk := New(t, d.Store)
	tk.Limit = -1
	Pass(t, tk)
}

// Apply makes the definitions.
func Apply(t testing.TB, d *storetest.DB, defs store.Definitions) {
	t.Helper()
	if _, err := d.Apply(t.Context(), defs, store.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Request plans the jobs that there are, executes nothing, and asks for a run of the job.
func Request(t testing.TB, d *storetest.DB, job string) {
	t.Helper()
	DecideOnly(t, d)
	RunNow(t, d, job, store.Request{})
}

// RunNow requests a run of the job.
func RunNow(t testing.TB, d *storetest.DB, job string, q store.Request) store.RequestedRun {
	t.Helper()
	r, err := d.RunNow(t.Context(), job, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Pause pauses a subject until an instant; zero: until it is resumed.
func Pause(t testing.TB, d *storetest.DB, on store.Subject, until time.Time) {
	t.Helper()
	if _, err := d.Pause(t.Context(), on, until, store.Author{}); err != nil {
		t.Fatal(err)
	}
}

// Resume ends the pause of a subject. missed says that the missed times are made up for.
func Resume(t testing.TB, d *storetest.DB, on store.Subject, missed bool) {
	t.Helper()
	if _, err := d.Resume(t.Context(), on, missed, store.Author{}); err != nil {
		t.Fatal(err)
	}
}

// OnServers runs a test on the engines to which several sessions write at once: all but SQLite.
func OnServers(t *testing.T, fn func(t *testing.T, d *storetest.DB)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("one writer at a time")
		}
		fn(t, d)
	})
}

// LockPlans locks the plans of all jobs until the test ends, as another session may.
func LockPlans(t *testing.T, d *storetest.DB) {
	t.Helper()
	tx, err := d.SQL.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // nothing was written
	if _, err := tx.Exec("SELECT job_id FROM " + d.Table("plans") + " FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
}

// OpenBeside opens the test's database once more, with options of the URL, such as "a=b", and of
// the store.
func OpenBeside(t *testing.T, d *storetest.DB, options string, o store.Options) *store.Store {
	t.Helper()
	if options != "" {
		if strings.Contains(d.URL, "?") {
			options = "&" + options
		} else {
			options = "?" + options
		}
	}
	if o.Clock == nil {
		o.Clock = d.Clock.Now
	}
	s, err := store.Open(t.Context(), d.URL+options, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
