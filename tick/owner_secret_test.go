package tick_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// What is hidden in a text tells its author that he has guessed the beginning of a secret. So in what a job of bob's says, only his own
// secrets are hidden, and neither those of ann nor those of the tick.
func TestAnOwnerGuessesNoSecretOfAnother(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ann, pass := asOwner(t, d)
		bob, asBob := d.Account(t, "user")
		ask, quote := "SELECT CAST(? AS CHAR(100))", "`"
		if d.Engine == "postgres" {
			ask, quote = "SELECT $1::text", `"`
		}
		guesses := "hersabc… herself… tickabc… ticking…"
		job := func(name, owner, secret string, more ...string) store.Job {
			steps := []store.Step{{Name: "asks", Executor: "sql", Spec: []byte(`{"sql": ["` + ask + `"], "args": ["${secret:` + secret + `}"]}`)}}
			for _, st := range more {
				steps = append(steps, ticktest.Step("", st))
			}
			return store.Job{Name: name, Owner: owner, Own: &store.Schedule{Rule: "every 5m"}, Steps: steps}
		}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job("uses", ann, "HERS"),
			job("guesses", bob, "HIS", "SELECT '"+guesses+"'", "SELECT * FROM "+quote+guesses+quote)}})
		allows := func(_ *tick.Tick, h *executor.Host) {
			h.Known.Add("ticking-password-of-the-tick")
			h.Secrets = map[string]executor.Secret{}
			for name, s := range map[string]struct{ owner, value string }{"HERS": {ann, "herself-a-secret-of-anns"}, "HIS": {bob, "himself-a-secret-of-bobs"}} {
				h.Secrets[name] = executor.Secret{Value: func(context.Context) (string, error) { return s.value, nil }, Owners: executor.Owners{s.owner}}
			}
		}
		eve, _ := d.Account(t, "user") // no credentials of hers are on this host, but it decides for her jobs
		eves := []string{"herselfabc…", "herself…", "tickabc…", "ticking…", "himself…"}
		for i, guess := range eves {
			name := fmt.Sprint("eves", i)
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{job(name, eve, "HERS")}})
			d.Exec(t, "UPDATE "+d.Table("schedules")+" SET rule = '"+guess+"' WHERE job_id = (SELECT id FROM "+d.Table("jobs")+" WHERE name = '"+name+"')")
		}
		logins := map[string]string{ann: "", bob: asBob}
		pass(logins, allows)
		for range 2 { // in the second pass, the first has given all of them
			d.Clock.Add(6 * time.Minute)
			pass(logins, allows)
			for i, guess := range eves {
				if v, err := d.Job(t.Context(), fmt.Sprint(eve, "/eves", i)); err != nil || !strings.Contains(v.Parked, guess) {
					t.Errorf("the rule %q: %v, parked: %q", guess, err, v.Parked)
				}
			}
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET description = 'edited' WHERE owner = '"+eve+"'")
		}
		for name, want := range map[string][]string{ann + "/uses": {"[hidden]"}, bob + "/guesses": {"[hidden]", guesses, guesses}} {
			run := ticktest.LastRun(t, d, name)
			for i, out := range want {
				if len(run.Tries) <= i || !strings.Contains(run.Tries[i].Output+run.Tries[i].Error, out) {
					t.Errorf("%s: found no %q in step %d of %+v", name, out, i+1, run.Tries)
				}
			}
		}
	})
}
