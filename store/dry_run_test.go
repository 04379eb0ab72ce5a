package store_test

import (
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
		readOnly, err := store.Open(t.Context(), withoutWrites(t, d), store.Options{Clock: d.Clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer readOnly.Close()
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
		for i, defs := range []store.Definitions{
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
		} {
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
	})
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
