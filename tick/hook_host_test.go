package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The host's hooks are only for the events for which a job names no hook. A job can have its own hook, or "none".
func TestHookOfTheHost(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		load := func(name string, on store.Hooks) store.Job {
			return store.Job{Name: name, Own: ticktest.EveryFiveMinutes(), On: on, Steps: []store.Step{ticktest.Call("")}}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			load("bare", store.Hooks{}), load("own", store.Hooks{Failed: "tell"}), load("quiet", store.Hooks{Failed: store.NoHook}),
			load("half", store.Hooks{Recovered: "tell"}), {Name: "tell", Steps: ok}, {Name: "pager", Steps: ok},
		}})
		broken := true
		tk := failing(t, d, &broken)
		tk.On = store.Hooks{Failed: "pager", Recovered: "pager", Parked: "pager", Missed: "pager", Late: "pager"}
		ticktest.Pass(t, tk)
		d.Clock.Add(5 * time.Minute)
		if r := ticktest.Pass(t, tk); r.UnheardEvents != 0 || r.Failed != 4 {
			t.Fatalf("%+v", r)
		}
		broken = false
		d.Clock.Add(5 * time.Minute)
		ticktest.Pass(t, tk)
		for hook, want := range map[string][]string{
			"tell":  {"failed of own", "recovered of half"},
			"pager": {"failed of bare", "failed of half", "recovered of bare", "recovered of own", "recovered of quiet"},
		} {
			got := kinds(told(t, d, hook))
			for _, w := range want {
				if strings.Count(got, w) != 1 {
					t.Errorf("%s: %s, want %v", hook, got, want)
				}
			}
			if strings.Count(got, ",") != len(want)-1 {
				t.Errorf("%s: %s, want %v", hook, got, want)
			}
		}

		// Without the settings, as on another host, no event is raised. A job that a hook names has to exist.
		d.Exec(t, "UPDATE "+d.Table("jobs")+" SET missed = 'skip'")
		tk.On = store.Hooks{}
		d.Clock.Add(time.Hour)
		ticktest.Pass(t, tk)
		if got := kinds(told(t, d, "pager")); strings.Contains(got, "missed") {
			t.Errorf("without settings: %s", got)
		}
		tk.On = store.Hooks{Missed: "nobody"}
		d.Clock.Add(time.Hour)
		r := ticktest.Pass(t, tk)
		if r.UnheardEvents != 4 || r.Unheard[0].Event != store.EventMissed || r.Unheard[0].Error != "there is no such job" {
			t.Errorf("%+v", r)
		}
	})
}

// A name without an owner means a job of the tick's login, whichever job has the event.
func TestHookOfTheHostIsItsOwn(t *testing.T) {
	on := store.Hooks{Failed: "pager", Late: "ann/pager", Lost: store.NoHook}
	if got := on.Of("bob"); got != (store.Hooks{Failed: "bob/pager", Late: "ann/pager", Lost: store.NoHook}) || on.Of("") != on {
		t.Errorf("%+v", got)
	}
}

// The word none stays as it is in a definition, also through a file; a job of that name is named with its owner.
func TestHookThatIsNone(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		ok := []store.Step{ticktest.Nop("")}
		defs := store.Definitions{Jobs: []store.Job{{Name: "load", On: store.Hooks{Failed: store.NoHook}, Steps: ok}, {Name: "none", Steps: ok}}}
		if d.Engine != "sqlite" {
			login, err := d.Login(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defs.Jobs[0].On.Parked = login + "/none"
		}
		ticktest.Apply(t, d, defs)
		if list, err := d.Apply(t.Context(), defs, store.ApplyOptions{}); err != nil || len(list) != 0 {
			t.Fatalf("applied twice: %v, %+v", err, list)
		}
		if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("jobs")+" WHERE on_failed = 'none' AND (on_parked IS NULL OR on_parked LIKE '%/none')"); n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}
