package tick_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// What was asked of a job that nobody changes does not stay in the change log for good. What says its definition and state does.
func TestPruneForgetsWhatWasAsked(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		first := func() float64 { return 0 } // where a sweep begins
		sweeps := ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Chance: first})
		nop := []store.Step{ticktest.Nop("")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "load", Steps: nop}, {Name: "busy", Steps: nop}}})
		for range 3 {
			run := ticktest.RunNow(t, d, "load", store.Request{})
			if _, err := d.CancelRun(t.Context(), run.ID, store.Author{}); err != nil {
				t.Fatal(err)
			}
			ticktest.Run(t, d)
			if _, err := d.RetryRun(t.Context(), run.ID, "", store.Author{}); err != nil {
				t.Fatal(err)
			}
			ticktest.Run(t, d)
			ticktest.Pause(t, d, store.Subject{Scope: store.ScopeJob, Name: "load"}, time.Time{})
			ticktest.Resume(t, d, store.Subject{Scope: store.ScopeJob, Name: "load"}, false)
		}
		d.Clock.Add(401 * 24 * time.Hour)
		for range 4 {
			ticktest.Request(t, d, "busy")
			ticktest.Pass(t, ticktest.New(t, sweeps))
		}
		got := seen(t, d, "changes", "action", "WHERE subject LIKE '%load' ORDER BY id")
		if want := []string{"create", "resume"}; !slices.Equal(got, want) {
			t.Errorf("the change log has %q, want %q", got, want)
		}
	})
}

// However much is asked of the jobs in a day, one pass deletes all requests that are too old, wherever its sweep begins. Where that
// is, it deletes more than one part of what else is needless. What is young stays.
func TestPruneForgetsManyOldChanges(t *testing.T) {
	const old = 350 // a sweep looks at fewer at once
	for what, place := range map[string]float64{"job run-now": 0.9999, "job skip": 0, "pause resume": 0} {
		t.Run(what, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				sweeps := ticktest.OpenBeside(t, d, "", store.Options{Clock: d.Clock.Now, Chance: func() float64 { return place }})
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "busy", Steps: []store.Step{ticktest.Nop("")}}}})
				kind, action, _ := strings.Cut(what, " ")
				for _, days := range []int{401, 399} {
					d.Exec(t, fmt.Sprintf("INSERT INTO %s (changed_at, changed_by, kind, subject_id, subject, action) SELECT %s, 'ada', '%s', (SELECT MAX(j.id) FROM %s j), 'orders', '%s' FROM %s",
						d.Table("changes"), ticktest.Literal(d, d.Clock.Now().AddDate(0, 0, -days)), kind, d.Table("jobs"), action, storetest.Numbers(old)))
				}
				ticktest.Request(t, d, "busy")
				tk := ticktest.New(t, sweeps)
				tk.Now = d.Clock.Now // it has time
				ticktest.Pass(t, tk)
				if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("changes")+" WHERE subject = 'orders'"); n != old {
					t.Errorf("%d changes are left, want the %d young ones", n, old)
				}
			})
		})
	}
}

// The passes of an owner delete the old changes that the owner sees, and no others. By SQL, too, the owner deletes no young ones, and
// no rename.
func TestPruneForgetsTheChangesOfAnOwner(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, _, bobs := connected(t, d)
		bob, err := bobs.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		log := func(by, job, action, age string) {
			d.Exec(t, "INSERT INTO dbjobs.changes (changed_at, changed_by, kind, subject_id, subject, action, reason) SELECT now() - interval '"+age+
				"', '"+by+"', 'job', id, name, '"+action+"', 'test' FROM dbjobs.jobs WHERE name = '"+job+"'")
		}
		left := func(who string) []string {
			return seen(t, d, "changes", "action, changed_at > now() - interval '400 days'", "WHERE reason = 'test' AND changed_by IN ("+who+") ORDER BY action")
		}
		for action, age := range map[string]string{"cancel": "1000 days", "run-now": "399 days", "rename": "1000 days"} {
			log(bob, "bobs", action, age)
			log("dbjobs itself", "bobs", action, age)
			log(ann, "linked", action, age)
		}
		if _, err := bobs.RunNow(t.Context(), "bobs", store.Request{}); err != nil {
			t.Fatal(err)
		}
		asBob(t, bobs)
		his, hers := "'"+bob+"', 'dbjobs itself'", "'"+ann+"'"
		if got := left(his); !slices.Equal(got, []string{"rename|false", "rename|false", "run-now|true", "run-now|true"}) {
			t.Errorf("after a pass of bob's, his changes are %q", got)
		}
		log(bob, "bobs", "cancel", "1000 days")
		if _, err := storetest.SQL(t, bobs).ExecContext(t.Context(), "DELETE FROM dbjobs.changes"); err != nil {
			t.Error(err)
		}
		if got := left(his); !slices.Equal(got, []string{"rename|false", "rename|false", "run-now|true", "run-now|true"}) {
			t.Errorf("after a DELETE of bob's, his changes are %q", got)
		}
		if got := left(hers); len(got) != 3 {
			t.Errorf("ann's changes are %q", got)
		}
	})
}
