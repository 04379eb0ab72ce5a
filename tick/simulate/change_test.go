package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/simulate"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// changed returns other definitions than those of the world: some have another rule or other policies.
func (w *world) changed(rng *rand.Rand) (d store.Definitions, did []string) {
	d = w.defs
	d.Jobs, d.Schedules, d.Groups = slices.Clone(d.Jobs), slices.Clone(d.Schedules), slices.Clone(d.Groups)
	for i := range d.Groups {
		d.Groups[i].MaxRunning = 1 + rng.IntN(3)
	}
	for i := range d.Schedules {
		if rng.IntN(3) == 0 {
			d.Schedules[i].Rule, d.Schedules[i].Calendar, d.Schedules[i].OnHoliday = "every 47m", "", ""
			did = append(did, "rule of "+d.Schedules[i].Name)
		}
	}
	for i := range d.Jobs {
		j := &d.Jobs[i]
		if j.RemoveDone {
			continue // if it was done, it would be a new job, whose gaps nobody can read after it is done
		}
		switch rng.IntN(8) {
		case 0:
			if j.Own != nil {
				own := *j.Own
				own.Rule, own.Calendar, own.OnHoliday = "every 53m", "", ""
				j.Own = &own
				did = append(did, "rule of "+j.Name)
			}
		case 1:
			j.Missed, j.MissedLimit = store.MissedSkip, 0
			did = append(did, "missed of "+j.Name)
		case 2:
			if j.Overlap == store.OverlapWait || j.Overlap == "" {
				j.Overlap = store.OverlapSkip
				did = append(did, "overlap of "+j.Name)
			}
		case 3:
			j.Disabled = !j.Disabled
			did = append(did, "disabled "+j.Name)
		}
	}
	return d, did
}

// What a simulation says of a change before apply, and what it says after apply, is what passes do then.
func TestChangeIsThatOfApply(t *testing.T) {
	for seed := range uint64(prove.Cases(3, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			storetest.InTurn(t, int(seed), func(t *testing.T, d *storetest.DB) {
				w := newWorld(t, seed, 14)
				r := w.real(d)
				every, half := 10*time.Minute, 30*time.Hour
				if d.Engine != "sqlite" {
					half /= 3 // only the way in which rows are read may differ
				}
				middle := w.start.Add(half).Truncate(every).Add(every)
				o := simulate.Options{From: w.start, To: middle.Add(half), Every: every}
				r.until(w.start.Add(every-1).Truncate(every), middle, o)
				r.settled()
				defs, did := w.changed(rand.New(rand.NewPCG(seed, 7)))
				login, err := d.Login(t.Context())
				r.must(err)
				o.From = middle
				in := r.read(middle).Renamed(defs, login)
				left := defs
				left.Jobs = slices.DeleteFunc(slices.Clone(defs.Jobs), func(j store.Job) bool { // a simulation does not know that they are done
					return j.RemoveDone && !slices.ContainsFunc(in.Jobs, func(is simulate.Job) bool { return is.Name == j.Name })
				})
				calendars, err := d.KnownCalendars(t.Context(), left)
				r.must(err)
				in, err = in.With(left, simulate.Shared{Calendars: calendars}, login, middle)
				r.must(err)
				said := w.simulated(in, &r.keys, o)
				d.Clock.Set(middle.Add(-time.Microsecond))
				_, err = d.Apply(t.Context(), defs, store.ApplyOptions{Start: decide.Start})
				r.must(err)
				d.Clock.Set(middle)
				is := w.simulated(r.read(middle), &r.keys, o)
				before, settled := r.ledger(nil), r.settled()
				r.until(middle, o.To, o)
				real := added(before, r.ledger(settled))
				for what, lines := range map[string][]string{"before apply": said, "after it": is} {
					if text := differences(real, r.seen(lines)); text != "" || len(lines) < 10 {
						t.Errorf("%s, of %d lines, with %q:\n%s", what, len(lines), did, text)
					}
				}
			})
		})
	}
}

// A definition that gets another name is the same one afterwards, and so are those that name it.
func TestChangeOfNames(t *testing.T) {
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	hourly := store.Schedule{Name: "old", Rule: "every 1h"}
	steps := []store.Step{{Name: "step 1", Executor: "sql"}}
	is := store.Definitions{Schedules: []store.Schedule{hourly}, Jobs: []store.Job{
		{Name: "a", Schedules: []string{"old"}, Steps: steps, On: store.Hooks{Failed: "b"}}, {Name: "b", After: []store.After{{Job: "a"}}, Steps: steps}}}
	became := store.Definitions{Schedules: []store.Schedule{{Name: "new", Rule: "every 1h"}}, Jobs: []store.Job{
		{Name: "a2", Schedules: []string{"new"}, Steps: steps, On: store.Hooks{Failed: "b"}}, {Name: "b", After: []store.After{{Job: "a2"}}, Steps: steps}},
		Renames: []store.Rename{{Kind: "schedule", From: "old", To: "new"}, {Kind: "job", From: "a", To: "a2"}}}
	in, err := simulate.Of(is, simulate.Shared{}, start)
	if err != nil {
		t.Fatal(err)
	}
	in = in.Renamed(became, "")
	after, err := in.With(became, simulate.Shared{}, "", start)
	if err != nil {
		t.Fatal(err)
	}
	d, err := simulate.Compare(t.Context(), in, after, simulate.Options{From: start, To: start.Add(3 * time.Hour)})
	if err != nil || len(d.Jobs) != 0 || d.Equal != 2 || d.Before == 0 || d.Before != d.After {
		t.Errorf("%v: %+v", err, d)
	}
}

// The pause of a schedule that gets another name holds the jobs that get the schedule, too.
func TestChangeOfTheNameOfAPausedSchedule(t *testing.T) {
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	in := simulate.Input{Pauses: []store.Pause{{ID: 1, Scope: store.ScopeSchedule, SubjectID: 9, Subject: "old", Since: start.Add(-time.Hour)}}}
	became := store.Definitions{Schedules: []store.Schedule{{Name: "new", Rule: "every 1h"}}, Renames: []store.Rename{{Kind: "schedule", From: "old", To: "new"}},
		Jobs: []store.Job{{Name: "a", Schedules: []string{"new"}, Steps: []store.Step{{Name: "step 1", Executor: "sql"}}}}}
	after, err := in.Renamed(became, "").With(became, simulate.Shared{}, "", start)
	if err != nil {
		t.Fatal(err)
	}
	r, err := simulate.Run(t.Context(), after, simulate.Options{From: start, To: start.Add(3 * time.Hour)})
	if err != nil || r.Runs != 0 || in.Pauses[0].Subject != "old" {
		t.Errorf("%v: %d runs, want none; the pause was of %s", err, r.Runs, in.Pauses[0].Subject)
	}
}

// A schedule that a file gives a calendar of the database has the days of that calendar, also for jobs that the file does not have.
func TestChangeOfCalendar(t *testing.T) {
	start := time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)
	shared := simulate.Shared{Calendars: map[string]*store.Calendar{
		"a": {Name: "a", WorkingDays: "MO,TU,WE,TH,FR,SA,SU"}, "b": {Name: "b", WorkingDays: "MO,TU,WE,TH,SA,SU"}}}
	daily := store.Schedule{Name: "daily", Rule: "daily at 08:00"}
	other := daily
	other.Calendar = "b"
	for _, calendar := range []string{"", "a"} {
		daily.Calendar = calendar
		in, err := simulate.Of(store.Definitions{Schedules: []store.Schedule{daily}, Jobs: []store.Job{
			{Name: "a", Schedules: []string{"daily"}, Steps: []store.Step{{Name: "step 1", Executor: "sql"}}}}}, shared, start)
		if err != nil {
			t.Fatal(err)
		}
		after, err := in.With(store.Definitions{Schedules: []store.Schedule{other}}, shared, "", start)
		if err != nil {
			t.Fatal(err)
		}
		d, err := simulate.Compare(t.Context(), in, after, simulate.Options{From: start, To: start.Add(72 * time.Hour)})
		if err != nil || d.Before != 3 || d.After != 2 { // the 25th is a Friday
			t.Errorf("from calendar %q to b: %v: %d runs before, %d after; want 3 and 2\n%+v", calendar, err, d.Before, d.After, d.Jobs)
		}
	}
}

// A change of a simulation that begins later takes no time at its beginning away: not from a rule that has changed, nor
// from a job whose policies have.
func TestChangeFromLaterKeepsTheFirstTime(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		own := func(name, rule string) store.Job {
			return store.Job{Name: name, Own: &store.Schedule{Rule: rule}, Steps: []store.Step{ticktest.Step("", "SELECT 1")}}
		}
		shared := own("shared", "")
		shared.Own, shared.Schedules = nil, []string{"often"}
		off := own("enabled", "0 * * * *")
		off.Disabled = true
		ticktest.Apply(t, d, store.Definitions{Schedules: []store.Schedule{{Name: "often", Rule: "0 * * * *"}}, Jobs: []store.Job{own("rule", "0 * * * *"), own("bounds", "0 * * * *"), shared, off}})
		ticktest.Run(t, d)
		now := d.Clock.Now()
		from := now.Truncate(24*time.Hour).AddDate(0, 0, 1)
		in, _, err := simulate.Read(t.Context(), d.Store, from, now)
		if err != nil {
			t.Fatal(err)
		}
		bounds := own("bounds", "0 * * * *")
		bounds.NotBefore = from
		login, err := d.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		after, err := in.With(store.Definitions{Schedules: []store.Schedule{{Name: "often", Rule: "0,30 * * * *"}},
			Jobs: []store.Job{own("rule", "0,30 * * * *"), bounds, own("enabled", "0 * * * *")}}, simulate.Shared{}, login, from)
		if err != nil {
			t.Fatal(err)
		}
		diff, err := simulate.Compare(t.Context(), in, after, simulate.Options{From: from, To: from.Add(2 * time.Hour), Keep: 100})
		if err != nil || diff.Before != 6 || diff.After != 12 {
			t.Errorf("%v: %d runs before, want 6, and %d after, want 12", err, diff.Before, diff.After)
		}
		for _, m := range diff.Jobs {
			if len(m.Removed)+len(m.Moved) > 0 {
				t.Errorf("%s: removed %s, moved %v", m.Job, m.Removed, m.Moved)
			}
		}
	})
}
