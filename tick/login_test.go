package tick_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// twoLogins is two installations of ticks on one database, each with its own login. first owns "mine", and second owns
// "theirs". Both jobs run every 5 minutes. Each has a job that runs after it, a job on request, and a job that runs
// after the other login's job.
func twoLogins(t *testing.T, d *storetest.DB) (theirs string, first, second func() tick.Report) {
	t.Helper()
	mine, theirs, other := ownAndOther(t, d)
	one := []store.Step{ticktest.Step("", "SELECT 1")}
	ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "shared", Rule: "every 5m"}}, Jobs: []store.Job{
		{Name: "mine", Owner: mine, Schedules: []string{"shared"}, Steps: one},
		{Name: "my follower", Owner: mine, After: []store.After{{Job: theirs + "/theirs"}}, Steps: one},
		{Name: "theirs", Owner: theirs, Schedules: []string{"shared"}, Missed: "all", Overlap: "wait-all", Steps: one},
		{Name: "their own rule", Owner: theirs, Own: &store.Schedule{Rule: "every 20m"}, Steps: one},
		{Name: "their follower", Owner: theirs, After: []store.After{{Job: mine + "/mine"}}, Steps: one},
		{Name: "their request", Owner: theirs, Steps: one},
		{Name: "their repetition", Owner: theirs, RepeatAfter: store.Duration(10 * time.Minute), Steps: one},
		{Name: "their start", Owner: theirs, OnStartup: true, Steps: one}}})
	pass := func(s *store.Store, name string) func() tick.Report {
		tk := ticktest.New(t, s)
		tk.Name, tk.StartupID, tk.Gauges = name, name+"'s start", true
		return func() tick.Report {
			t.Helper()
			r, err := tk.Run(t.Context())
			if err != nil || r.ParkedJobs > 0 || len(r.Parked) > 0 || r.Failed > 0 {
				t.Fatalf("%s: %v: %+v", name, err, r)
			}
			return r
		}
	}
	return theirs, pass(d.Store, "first"), pass(other, "second")
}

// Two logins tick in turn. No job is parked, each login runs its own jobs, and there are no gaps.
func TestLoginsInTurn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		theirs, first, second := twoLogins(t, d)
		first()
		second()
		for range 12 {
			d.Clock.Add(5 * time.Minute)
			first()
			second()
			first()
			second()
		}
		for name, want := range map[string]int{"mine": 12, theirs + "/theirs": 12, "my follower": 12, theirs + "/their follower": 12,
			theirs + "/their own rule": 3, theirs + "/their start": 1, theirs + "/their repetition": 7} {
			runs, err := d.Runs(t.Context(), store.RunFilter{Job: name})
			if err != nil || len(runs) != want {
				t.Errorf("%s: %v: %d runs, want %d: %+v", name, err, len(runs), want, runs)
			}
			for _, r := range runs {
				if r.State != store.Succeeded {
					t.Errorf("%s: %+v", name, r)
				}
			}
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("gaps")); n != 0 {
			t.Errorf("%d gaps", n)
		}
		for range 2 {
			if r := first(); r.Decided != 0 || len(r.Unserved) != 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}

// A job of another login that is parked for a cause outside of it stays due until the repair, although the ticks of that login
// come. No pass asks for another tick.
func TestLoginWhoseJobIsParkedIsServed(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		theirs, other := d.As(t)
		grouped := ticktest.Hourly("grouped")
		grouped.Owner, grouped.Group = theirs, "few"
		ticktest.Apply(t, d, store.Definitions{Groups: []store.Group{{Name: "few", MaxRunning: 1}}, Jobs: []store.Job{grouped}})
		first, second := ticktest.New(t, d.Store), ticktest.New(t, other)
		first.Name, second.Name = "first", "second"
		ticktest.Pass(t, second)
		d.Exec(t, "DELETE FROM "+d.Table("groups"))
		for range 2 {
			d.Clock.Add(time.Hour)
			ticktest.Pass(t, second)
			if r := ticktest.Pass(t, first); r.ParkedJobs != 1 || len(r.Unserved) != 0 {
				t.Errorf("%d jobs are parked, and nobody serves %+v", r.ParkedJobs, r.Unserved)
			}
		}
	})
}

// The owner's login does not tick for an hour. The first tick of another login leaves the nominal times alone and says
// so. Later, the job's own policy decides about these times.
func TestLoginThatNobodyServes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		theirs, first, second := twoLogins(t, d)
		first()
		second()
		second()
		for i := range 60 {
			if d.Clock.Add(time.Minute); i%5 < 3 && !prove.Whole() {
				continue
			}
			r := first()
			if n := r.UnservedJobs(); (n > 0) != (i >= 9) { // due since the fifth minute
				t.Errorf("after %d minutes: %+v", i+1, r.Unserved)
			}
			if r.OldestDue.IsZero() != (i%5 != 4) {
				t.Errorf("after %d minutes, something is due since %s", i+1, r.OldestDue)
			}
		}
		r := first()
		if len(r.Unserved) != 1 || r.Unserved[0].Owner != theirs || r.Unserved[0].Jobs != 3 || !r.Unserved[0].Since.Equal(ticktest.Morning(8, 5)) || r.Decided != 0 {
			t.Errorf("%+v", r)
		}
		// Any login lets requested runs of their job go, and their login executes them.
		ticktest.RunNow(t, d, theirs+"/their request", store.Request{})
		pause(t, d, store.ScopeAll, "", time.Time{})
		d.Clock.Add(time.Second)
		if r := first(); !r.Frozen || len(r.Unserved) != 0 {
			t.Errorf("in a freeze: %+v", r)
		}
		resume(t, d, store.ScopeAll, "", true)
		if r := first(); len(r.Unserved) != 0 { // their ticks may be about to begin
			t.Errorf("just after a freeze: %+v", r.Unserved)
		}
		if runs, err := d.Runs(t.Context(), store.RunFilter{Job: theirs + "/their request"}); err != nil || len(runs) != 1 || runs[0].State != store.Queued {
			t.Errorf("%v: %+v", err, runs)
		}
		if runs, err := d.Runs(t.Context(), store.RunFilter{Job: theirs + "/theirs"}); err != nil || len(runs) != 0 {
			t.Errorf("%v: %+v", err, runs)
		}
		if r := second(); r.Made < 14 || r.Started < 14 {
			t.Errorf("made %d, started %d", r.Made, r.Started)
		}
		if runs, err := d.Runs(t.Context(), store.RunFilter{Job: theirs + "/theirs"}); err != nil || len(runs) != 12 {
			t.Errorf("%v: %d of 12 missed times were made up for", err, len(runs))
		}
		if r := first(); len(r.Unserved) != 0 {
			t.Errorf("%+v", r.Unserved)
		}
		// When the jobs are given to the login that ticks, they are its own, also if plain SQL has given them.
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET owner = (SELECT owner FROM (SELECT owner FROM "+d.Table("jobs")+" WHERE name = 'mine') AS m) WHERE name = 'theirs'")
		first()
		d.Clock.Add(5 * time.Minute)
		if r := first(); !strings.Contains(names(r), "/theirs ") {
			t.Errorf("%+v", r)
		}
	})
}

// ownAndOther returns the login of d, another one, and the store of that. A file has no logins, so it skips the test there.
func ownAndOther(t *testing.T, d *storetest.DB) (mine, theirs string, other *store.Store) {
	t.Helper()
	if d.Engine == "sqlite" {
		t.Skip("knows no logins")
	}
	theirs, other = d.As(t)
	mine, err := d.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return mine, theirs, other
}

// If two logins apply the same file, the second is refused before it makes each job twice.
func TestLoginsApplyOneFile(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		mine, theirs, other := ownAndOther(t, d)
		file := func(owner string) store.Definitions {
			return store.Definitions{Jobs: []store.Job{{Name: "job", Owner: owner, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}}
		}
		o := store.ApplyOptions{Manifest: "jobs"}
		if _, err := d.Apply(t.Context(), file(""), o); err != nil {
			t.Fatal(err)
		}
		_, err := other.Apply(t.Context(), file(""), o)
		for _, want := range []string{"job job: owner: ", "for the login " + mine, "for " + theirs, "owner: " + mine + " to change its job"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		for _, owner := range []string{mine, theirs} {
			if _, err := other.Apply(t.Context(), file(owner), o); err != nil {
				t.Errorf("asked for %s: %v", owner, err)
			}
		}
		both := []string{mine, theirs}
		slices.Sort(both)
		_, third := d.As(t)
		if _, err := third.Apply(t.Context(), file(""), o); err == nil || !strings.Contains(err.Error(), "for the login "+strings.Join(both, " and ")+";") {
			t.Errorf("%v, want %q", err, both)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("jobs")); n != 2 {
			t.Errorf("%d jobs", n)
		}
		if _, err := other.Apply(t.Context(), file(""), store.ApplyOptions{Manifest: "another", TakeOwnership: true}); err != nil {
			t.Error(err)
		}
	})
}

// So is the second login that applies a file without a name, such as an export. A job of a manifest is another one.
func TestLoginsApplyOneFileWithoutAName(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		mine, theirs, other := ownAndOther(t, d)
		nop := []store.Step{ticktest.Nop("")}
		file := store.Definitions{Jobs: []store.Job{{Name: "job", Steps: nop}, {Name: "shared", Steps: nop}}}
		brought(t, d, store.Definitions{Jobs: file.Jobs[:1]}, store.ApplyOptions{CreateOnly: true})
		brought(t, d, store.Definitions{Jobs: file.Jobs[1:]}, store.ApplyOptions{Manifest: "jobs"})
		_, err := other.Apply(t.Context(), file, store.ApplyOptions{})
		for _, want := range []string{"job job: owner: ", "for the login " + mine, "for " + theirs, "owner: " + mine + " to change its job"} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "job shared") {
				t.Errorf("%v, want %q", err, want)
			}
		}
		file.Jobs[0].Owner = mine
		for _, want := range []int{1, 0} { // the other job is created
			if changes, err := other.Apply(t.Context(), file, store.ApplyOptions{}); err != nil || len(changes) != want {
				t.Errorf("with the owner: %v, %+v; want %d changes", err, changes, want)
			}
		}
	})
}

func names(r tick.Report) (list string) {
	for _, e := range r.Runs {
		list += e.Job + " "
	}
	return list
}

// What is due of an owner whose jobs a tick executes counts as late in its figures, unless it is parked.
func TestAJobOfAnotherOwnerIsLate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, pass := asOwner(t, d)
		pass(nil) // plans the job
		d.Clock.Add(11 * time.Minute)
		due := ticktest.Morning(8, 5)
		if r := pass(nil); !r.OldestDue.IsZero() {
			t.Errorf("without credentials, something is due since %v", r.OldestDue)
		}
		d.Exec(t, "UPDATE "+d.Table("plans")+" SET parked = 'broken'")
		dry := func(tk *tick.Tick, _ *executor.Host) { tk.DryRun = true }
		if r := pass(map[string]string{ann: ""}, dry); !r.OldestDue.IsZero() {
			t.Errorf("a parked job is due since %v", r.OldestDue)
		}
		d.Exec(t, "UPDATE "+d.Table("plans")+" SET parked = NULL")
		if r := pass(map[string]string{ann: ""}); !r.OldestDue.Equal(due) {
			t.Errorf("the job is due since %v, want %v", r.OldestDue, due)
		}
	})
}
