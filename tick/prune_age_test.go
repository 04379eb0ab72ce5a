package tick_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A change of keep.age holds for the runs on record, too, and not only for those that end after it. A run that waits for a later
// time holds up none of them, although it has the lowest number.
func TestPruneByAnAgeThatWasChanged(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, e, store.Options{Chance: func() float64 { return 0 }})
			old := func(name string) store.Job {
				return store.Job{Name: name, Keep: store.Keep{Age: store.Duration(24 * time.Hour), Runs: 10_000}, Steps: []store.Step{ticktest.Nop("")}}
			}
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{old("less"), old("more"), {Name: "busy", Steps: []store.Step{ticktest.Nop("")}}}})
			ticktest.RunNow(t, d, "less", store.Request{At: d.Clock.Now().AddDate(1, 0, 0)})
			for _, name := range []string{"less", "more", "less", "more"} {
				ticktest.Request(t, d, name)
				ticktest.Run(t, d)
				d.Clock.Add(time.Minute)
			}
			manyRuns(t, d, "less", 2500, 1)
			count := func(name string) int {
				return d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE settled_at IS NOT NULL AND job_id = (SELECT id FROM "+d.Table("jobs")+" WHERE name = '"+name+"')")
			}
			pass := func(after time.Duration, what string, less, more int) {
				t.Helper()
				d.Clock.Add(after)
				ticktest.Request(t, d, "busy")
				if r := ticktest.Run(t, d); r.Failed > 0 {
					t.Errorf("%s: %d runs failed", what, r.Failed)
				}
				if l, m := count("less"), count("more"); l != less || m != more {
					t.Errorf("%s: %d and %d runs, want %d and %d", what, l, m, less, more)
				}
			}
			change := func(name string, age time.Duration) {
				t.Helper()
				d.Exec(t, fmt.Sprintf("UPDATE %s SET keep_age_ms = %d WHERE name = '%s'", d.Table("jobs"), age.Milliseconds(), name))
			}
			pass(2*time.Hour, "nothing is too old", 2502, 2)
			change("less", 3*time.Hour)
			change("more", 48*time.Hour)
			pass(0, "nothing is too old by the new ages", 2502, 2)
			pass(time.Hour, "less is kept", 0, 2)
			pass(22*time.Hour, "the end of what was to be kept before", 0, 2)
			pass(22*time.Hour, "more is kept", 0, 2)
			pass(2*time.Hour, "the end of that", 0, 0)
		})
	}
}

// A run that is too old by an age that was made smaller is opened again, and ends, before it is deleted: it stays.
func TestPruneByASmallerAgeKeepsWhatHasEndedAgain(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("", "SELECT * FROM later")}}}})
		ticktest.Request(t, d, "job")
		ticktest.Run(t, d)
		d.Clock.Add(2 * time.Hour)
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET keep_age_ms = 3600000")
		kept, err := d.Sweep(t.Context())
		if err != nil || len(kept) != 1 {
			t.Fatal(err, kept)
		}
		d.Exec(t, "CREATE TABLE later (id int)")
		var calls storetest.Calls
		met := false
		calls.Before = func(c storetest.Call) error {
			if c.Kind != storetest.Begin || met {
				return nil
			}
			met = true
			if _, err := d.RetryRun(t.Context(), "job", "", store.Author{}); err != nil {
				t.Error(err)
			}
			tk := ticktest.New(t, d.Store)
			tk.Limit = 1
			_, _ = tk.Run(t.Context()) // it prunes, too, and only after the run has ended again
			return nil
		}
		gone, err := ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}).Prune(t.Context(), kept, func() bool { return true })
		if err != nil || gone != 0 || !met {
			t.Errorf("%d runs deleted, %v; opened again: %t", gone, err, met)
		}
		if r, err := d.Run(t.Context(), "job"); err != nil || r.State != store.Succeeded {
			t.Errorf("the run is %q, %v", r.State, err)
		}
	})
}

// A look for runs that are too old by a smaller age goes further for the jobs that still have some, and not for those whose last
// one is gone: it would read all their young runs, once for each part of the others.
func TestPruneLooksNoFurtherThanForWhatIsOld(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			var calls storetest.Calls
			d := storetest.Open(t, e, store.Options{Chance: func() float64 { return 0 }, Wrap: calls.Wrap})
			keep, steps := store.Keep{Runs: 10_000}, []store.Step{ticktest.Nop("")}
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "few", Keep: keep, Steps: steps}, {Name: "many", Keep: keep, Steps: steps}}})
			for _, name := range []string{"few", "many", "many"} {
				ticktest.Request(t, d, name)
				ticktest.Run(t, d)
			}
			manyRuns(t, d, "many", 2500, 2)
			d.Clock.Add(2 * time.Hour)
			ticktest.Request(t, d, "few")
			ticktest.Run(t, d)
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET keep_age_ms = 3600000")
			kept, err := d.Sweep(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			calls.Reset()
			if gone, err := d.Prune(t.Context(), kept, func() bool { return true }); err != nil || gone != 2503 {
				t.Errorf("%d runs deleted, %v", gone, err)
			}
			of := regexp.MustCompile(fmt.Sprintf(`"job_id":%d,"below":(-?\d+),"through":(-?\d+)`, d.Int(t, "SELECT id FROM "+d.Table("jobs")+" WHERE name = 'few'")))
			var through []string // of each look
			for _, c := range calls.All() {
				if m := of.FindStringSubmatch(c.SQL + fmt.Sprint(c.Args)); m != nil && strings.Contains(c.SQL, "through") && strings.HasPrefix(c.SQL, "SELECT r.id") {
					through = append(through, strings.Replace(m[2], m[1], "below", 1))
				}
			}
			if want := []string{"1000", "2000", "below", "below", "below", "below", "below"}; !slices.Equal(through, want) {
				t.Errorf("the looks go through %q, want %q", through, want)
			}
		})
	}
}

// manyRuns adds runs to a job that ended with its second one. Their numbers go up by the step.
func manyRuns(t *testing.T, d *storetest.DB, name string, n, step int) {
	t.Helper()
	id := map[string]string{
		"sqlite":   "'00000000-0000-7000-8000-' || printf('%012d', i)",
		"postgres": "('00000000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid",
		"mariadb":  "CONCAT('00000000-0000-7000-8000-', LPAD(i, 12, '0'))",
	}[d.Engine]
	occurrence := map[bool]string{true: "CONCAT('key:', i)", false: "'key:' || i"}[d.Engine == "mariadb"]
	d.Exec(t, fmt.Sprintf("INSERT INTO %s (id, job_id, number, occurrence, state, ready_at, created_at, finished_at, settled_at, expires_at) "+
		"SELECT %s, r.job_id, r.number + 1 + i * %d, %s, 'succeeded', r.ready_at, r.created_at, r.finished_at, r.settled_at, r.expires_at "+
		"FROM (SELECT * FROM %s WHERE number = 2 AND job_id = (SELECT id FROM %s WHERE name = '%s')) AS r, %s",
		d.Table("runs"), id, step, occurrence, d.Table("runs"), d.Table("jobs"), name, storetest.Numbers(n)))
}

// A look for old gaps reads all gaps of its jobs, and they may be very many. So a pass looks for those of the jobs of its sweep,
// and not for those of each job that has run.
func TestPruneLooksForTheGapsOfItsSweep(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			place := 1.0
			var calls storetest.Calls
			d := storetest.Open(t, e, store.Options{Chance: func() float64 { return place }, Wrap: calls.Wrap})
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
				{Name: "first", Steps: []store.Step{ticktest.Nop("")}}, {Name: "last", Steps: []store.Step{ticktest.Nop("")}}}})
			first := d.Int(t, "SELECT MIN(id) FROM "+d.Table("jobs"))
			old := ticktest.Literal(d, d.Clock.Now().AddDate(0, 0, -91))
			d.Exec(t, fmt.Sprintf("INSERT INTO %s (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at) VALUES (%d, 1, %s, %[3]s, 'overlap', '', %[3]s)",
				d.Table("gaps"), first, old))
			looks := func() (all, ofFirst int) {
				calls.Reset()
				ticktest.Request(t, d, "first")
				ticktest.Run(t, d)
				for _, c := range calls.All() {
					if !strings.HasPrefix(c.SQL, "SELECT") || !strings.Contains(c.SQL, "recorded_at <") {
						continue
					}
					if all++; strings.Contains(c.SQL+fmt.Sprint(c.Args), fmt.Sprintf(`"job_id":%d,`, first)) {
						ofFirst++
					}
				}
				return all, ofFirst
			}
			if all, ofFirst := looks(); all != 1 || ofFirst != 0 {
				t.Errorf("a sweep of the last job: %d looks for gaps, %d at those of the first", all, ofFirst)
			}
			place = 0
			if all, ofFirst := looks(); all != 1 || ofFirst != 1 || d.Int(t, "SELECT COUNT(*) FROM "+d.Table("gaps")) != 0 {
				t.Errorf("a sweep of the first job: %d looks for gaps, %d at those of the first, or they are there still", all, ofFirst)
			}
		})
	}
}
