package store_test

import (
	"fmt"
	"net/url"
	"reflect"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// TestDryRunOnlyReads: a dry run reports exactly the changes that apply then makes, or its error, on a
// connection that takes no writes.
func TestDryRunOnlyReads(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		job := func(name string, schedules []string, after ...string) store.Job {
			j := store.Job{Name: name, Schedules: schedules, Steps: []store.Step{sqlStep("", "SELECT 1")}}
			for _, a := range after {
				j.After = append(j.After, store.After{Job: a})
			}
			return j
		}
		hooked := job("hooked", nil)
		hooked.On.Failed, hooked.Group = "b", "etl"
		ruled := job("ruled", nil)
		ruled.Own = &store.Schedule{Rule: "every 5m"}
		nightly, daily := store.Schedule{Name: "nightly", Rule: "30 2 * * *"}, store.Schedule{Name: "daily", Rule: "0 0 * * *"}
		n, m := []string{"nightly"}, []string{"daily"}
		groups := []store.Group{{Name: "etl", MaxRunning: 2}}
		toldAsMade(t, d, []store.Definitions{
			{Groups: groups, Schedules: []store.Schedule{nightly, daily}, Jobs: []store.Job{job("c", nil, "b"), job("a", n), job("b", nil, "a"), hooked, ruled}},
			{Schedules: []store.Schedule{nightly, daily}, Jobs: []store.Job{job("c", nil, "b"), job("b", nil, "a")}},                            // b follows a
			{Schedules: []store.Schedule{daily}, Jobs: []store.Job{job("a", n), job("b", nil), job("c", nil, "b"), ruled}},                      // a uses nightly
			{Schedules: []store.Schedule{daily}, Jobs: []store.Job{job("a", nil, "x"), job("b", m), job("x", m), job("c", nil, "b"), ruled}},    // nightly goes
			{Schedules: []store.Schedule{daily}, Jobs: []store.Job{job("a", nil, "x"), job("b", m), job("x", m), job("c", nil, "ruled")}},       // ruled gets a follower and goes
			{Schedules: []store.Schedule{daily}, Jobs: []store.Job{job("a", nil, "x"), job("b", m, "c"), job("x", m), job("c", nil, "b")}},      // a circle
			{Schedules: []store.Schedule{daily}, Jobs: []store.Job{job("c", nil), job("x", m)}},                                                 // all others go
			{Schedules: []store.Schedule{{Name: "daily", Rule: "0 1 * * *"}, nightly}, Jobs: []store.Job{job("c", n), job("x", nil), hooked}},   // no job b
			{Schedules: []store.Schedule{{Name: "daily", Rule: "0 1 * * *"}, nightly}, Jobs: []store.Job{job("c", n), job("new", nil, "none")}}, // no such job
			{},
		})
	})
}

// toldAsMade applies one state of a manifest after the other, with Prune, each first as a dry run on a connection that takes no
// writes.
func toldAsMade(t *testing.T, d *storetest.DB, states []store.Definitions) {
	t.Helper()
	readOnly, err := store.Open(t.Context(), withoutWrites(t, d), store.Options{Clock: d.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	for i, defs := range states {
		o := store.ApplyOptions{Manifest: "jobs", Prune: true, DryRun: true}
		told, toldError := readOnly.Apply(t.Context(), defs, o)
		o.DryRun = false
		made, err := d.Apply(t.Context(), defs, o)
		if text(toldError) != text(err) {
			t.Fatalf("%d: the dry run reports the error %v, apply has %v", i, toldError, err)
		}
		if !reflect.DeepEqual(told, made) {
			t.Fatalf("%d: the dry run reports\n%+v\napply makes\n%+v", i, told, made)
		}
		t.Logf("%d: %d changes, %v", i, len(made), err)
	}
}

// TestDryRunOfCalendars: a dry run refuses to remove a calendar where apply does so, because of what uses it before or after.
func TestDryRunOfCalendars(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		by := func(calendar string) *store.Schedule {
			s := &store.Schedule{Rule: "0 7 * * *", Calendar: calendar}
			s.Normalize()
			return s
		}
		shared := func(name, calendar string) store.Schedule {
			s := *by(calendar)
			s.Name = name
			return s
		}
		job := func(name string, own *store.Schedule) store.Job {
			return store.Job{Name: name, Own: own, Steps: []store.Step{sqlStep("", "SELECT 1")}}
		}
		both := []store.Calendar{{Name: "bank", Days: []string{"12-25"}}, {Name: "shop", Days: []string{"01-01"}}}
		jobs := []store.Job{job("a", by("bank")), job("b", by("shop"))}
		late := shared("late", "bank")
		renamed := []store.Rename{{Kind: store.KindSchedule, From: "early", To: "late"}, {Kind: store.KindJob, From: "a", To: "c"}}
		if _, err := d.Apply(t.Context(), store.Definitions{Calendars: both[:1], Jobs: []store.Job{job("other", by("bank"))}}, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		toldAsMade(t, d, []store.Definitions{
			{Calendars: both, Schedules: []store.Schedule{shared("early", "bank")}, Jobs: jobs},
			{Calendars: both[1:], Schedules: []store.Schedule{shared("early", "")}, Jobs: jobs[1:]}, // the other job stays
		})
		if err := d.RemoveJob(t.Context(), "other", store.Author{}); err != nil {
			t.Fatal(err)
		}
		toldAsMade(t, d, []store.Definitions{
			{Calendars: both[1:], Schedules: []store.Schedule{shared("early", "bank")}, Jobs: jobs[1:]},                                                      // the schedule stays
			{Calendars: both[1:], Schedules: []store.Schedule{late}, Jobs: []store.Job{job("c", by("bank")), jobs[1]}, Renames: renamed},                     // both stay, with other names
			{Calendars: both[1:], Schedules: []store.Schedule{shared("early", ""), shared("new", "bank")}, Jobs: []store.Job{jobs[1], job("d", by("bank"))}}, // new ones
			{Calendars: both[1:], Schedules: []store.Schedule{shared("early", "shop")}, Jobs: []store.Job{job("a", nil), jobs[1]}},                           // nothing needs it
			{Calendars: both[:1], Schedules: []store.Schedule{shared("early", "shop")}, Jobs: []store.Job{job("a", by("shop"))}},
			{}, // all go
		})
	})
}

// TestManyRenames: apply sends one statement for each job that it renames, and a dry run, and an apply of a file that keeps
// renamed_from, none.
func TestManyRenames(t *testing.T) {
	t.Parallel()
	const n = 1500 // more than a batch
	var c storetest.Calls
	d := storetest.Open(t, "sqlite", store.Options{Wrap: c.Wrap})
	defs := func(name string) (d store.Definitions) {
		for i := range n {
			j := store.Job{Name: fmt.Sprint(name, " ", i), Steps: []store.Step{sqlStep("", "SELECT 1")}}
			j.On.Failed = fmt.Sprint(name, " ", i/3)
			if i%2 > 0 {
				j.After = []store.After{{Job: fmt.Sprint(name, " ", i-1)}}
			}
			d.Jobs = append(d.Jobs, j)
		}
		return d
	}
	apply := func(defs store.Definitions, dry bool, most int) []store.Change {
		t.Helper()
		before := len(c.All())
		changes, err := d.Apply(t.Context(), defs, store.ApplyOptions{Manifest: "jobs", Prune: true, DryRun: dry})
		if sent := len(c.All()) - before; err != nil || sent > most {
			t.Errorf("%d statements, want at most %d: %v", sent, most, err)
		}
		return changes
	}
	const few = 150
	apply(defs("old"), false, few)
	renamed := defs("new")
	for i := range n {
		renamed.Renames = append(renamed.Renames, store.Rename{Kind: store.KindJob, From: fmt.Sprint("old ", i), To: fmt.Sprint("new ", i)})
	}
	told, made := apply(renamed, true, few), apply(renamed, false, n+few)
	if len(made) != 2*n || !reflect.DeepEqual(told, made) {
		t.Errorf("a dry run tells %d changes, and apply makes %d", len(told), len(made))
	}
	if again := apply(renamed, false, few); len(again) != 0 {
		t.Errorf("%d changes afterwards", len(again))
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// withoutWrites returns the URL of the database for sessions that only read.
func withoutWrites(t *testing.T, d *storetest.DB) string {
	u, err := url.Parse(d.Direct()) // a pooler refuses such options
	if err != nil {
		t.Fatal("not a URL")
	}
	q := u.Query()
	switch d.Engine {
	case "sqlite":
		q.Set("mode", "ro")
	case "postgres":
		q.Set("default_transaction_read_only", "on")
	default:
		q.Set(storetest.Words(d.Server, "tx_read_only"), "1")
	}
	u.RawQuery = q.Encode()
	return u.String()
}
