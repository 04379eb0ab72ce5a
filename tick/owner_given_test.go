package tick_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The statements of the page on backups give all that belongs to a login to another one. A pass of that login then finds all that its
// jobs need, and a hook and a pause that named the old login mean the new one.
func TestAllOfAnOwnerIsGivenToAnother(t *testing.T) {
	page, err := os.ReadFile("../store/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, statements, _ := strings.Cut(string(page), "```sql\n   UPDATE dbjobs.jobs SET owner = 'nightly'")
	statements, _, found := strings.Cut("UPDATE dbjobs.jobs SET owner = 'nightly'"+statements, "```")
	if !found {
		t.Fatal("the page has no statements")
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("knows no logins")
		}
		if err := d.SetOwners(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		old, _ := d.Account(t, "user")
		nightly, as := d.Account(t, map[string]string{"postgres": "user", "mariadb": "ticker"}[d.Engine])
		job := func(name string, j store.Job) store.Job {
			j.Name, j.Steps = name, []store.Step{ticktest.Step("", "SELECT 1")}
			return j
		}
		ticktest.Apply(t, d, store.Definitions{
			Groups:    []store.Group{{Name: "few", MaxRunning: 1}},
			Calendars: []store.Calendar{{Name: "de", Days: []string{"2036-12-26"}}},
			Schedules: []store.Schedule{{Name: "often", Rule: "every 5m"}},
			Jobs: []store.Job{
				job("alert", store.Job{Owner: old}), job("shares", store.Job{Owner: old, Schedules: []string{"often"}, Group: "few"}),
				job("rests", store.Job{Owner: old, Own: &store.Schedule{Rule: "every 5m", Calendar: "de"}}),
				job("calls", store.Job{Owner: "eve", On: store.Hooks{Failed: old + "/alert", Paused: old + "/alert"}}),
			},
		})
		for _, table := range []string{"schedules", "calendars", "groups"} {
			d.Exec(t, "UPDATE "+d.Table(table)+" SET owner = '"+old+"'")
		}
		ticktest.Pause(t, d, store.Subject{Scope: store.ScopeOwner, Name: old}, time.Time{})
		ticktest.DecideOnly(t, d)
		words := strings.NewReplacer("dbjobs.", strings.TrimSuffix(d.Table("jobs"), "jobs"), "nightly", nightly, "old", old)
		for statement := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(statements), ";"), ";") {
			d.Exec(t, words.Replace(statement))
		}
		if v, err := d.Job(t.Context(), nightly+"/shares"); err != nil || v.State != "paused" {
			t.Errorf("the pause does not hold: %v, %s", err, v.State)
		}
		if v, err := d.Job(t.Context(), "eve/calls"); err != nil || v.On.Failed != nightly+"/alert" || v.On.Paused != nightly+"/alert" || v.On.Late != "" {
			t.Errorf("the hooks: %v, %+v", err, v.On)
		}
		ticktest.Resume(t, d, store.Subject{Scope: store.ScopeOwner, Name: nightly}, false)
		s, err := store.Open(t.Context(), as, store.Options{Clock: d.Clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 2 {
			pass := ticktest.New(t, s)
			pass.Name = nightly
			if r := ticktest.Pass(t, pass); len(r.Parked) > 0 || r.ParkedJobs > 0 {
				t.Errorf("parked: %+v", r.Parked)
			}
			d.Clock.Add(6 * time.Minute)
		}
		for _, name := range []string{"shares", "rests"} {
			if run := ticktest.LastRun(t, d, nightly+"/"+name); run.State != store.Succeeded {
				t.Errorf("%s: %+v", name, run)
			}
		}
	})
}
