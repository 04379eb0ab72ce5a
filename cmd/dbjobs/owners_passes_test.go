package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A login that sees only its own rows does not see the tick of another login that runs its jobs. The commands say that something
// is wrong only where a job of its own waits for a pass.
func TestAUserWhoseJobsAnothersTickRuns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("has no row security")
		}
		if err := d.SetOwners(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		ann, asAnn := d.Account(t, "user")
		_, asTicker := d.Account(t, "ticker")
		expect := func(when string, code int, line string, args ...string) {
			t.Helper()
			out := dbjobs(t, asAnn, "", code, args...)
			if !strings.Contains(out, line) {
				t.Errorf("%s: %q: found no %q in\n%s", when, args, line, out)
			}
			if strings.Contains(out, "no pass of a tick") || strings.Contains(out, "no tick has come") {
				t.Errorf("%s: %q:\n%s", when, args, out)
			}
		}
		dbjobs(t, asAnn, "", exitDone, "job", "create", "hers", "--rule", "daily at 03:00", "--zone", "UTC", "--sql", "SELECT 1")
		expect("just created", 0, "OK: nothing waits for a pass; this login does not see the ticks of others; 1 job", "check")
		d.Exec(t, "UPDATE dbjobs.jobs SET created_at = now() - interval '1 hour'")
		expect("no tick comes", 2, "CRITICAL: job "+ann+"/hers has waited for its first pass for 1h", "check")
		expect("no tick comes", 1, "hers", "doctor")
		dbjobs(t, asTicker, "", exitDone, "tick")
		expect("a tick comes", 0, "OK: nothing waits for a pass; ", "check")
		expect("a tick comes", 0, "nothing to do", "status")
		expect("a tick comes", 0, "note: this login sees no ticks of other logins", "doctor")
		dbjobs(t, asAnn, "", exitDone, "tick", "--name", ann)
		expect("just after a tick of her own", 0, "OK: the last pass was ", "check")
		d.Exec(t, "UPDATE dbjobs.ticks SET since = since - interval '1 day', last_at = last_at - interval '1 day' WHERE name = '"+ann+"'")
		expect("a day after a tick of her own", 0, "OK: nothing waits for a pass; ", "check")
		expect("a day after a tick of her own", 2, "CRITICAL: the last pass was ", "check", "--trigger", ann)
		expect("a day after a tick of her own", 0, "nothing to do", "status")
		expect("a day after a tick of her own", 0, "note: this login sees no ticks of other logins", "doctor")
		d.Exec(t, "UPDATE dbjobs.ticks SET passes = 1000, since = since - interval '1 day' WHERE name = '"+ann+"'")
		expect("a day after the last of many ticks of her own", 0, "SILENT", "status")
		expect("a day after the last of many ticks of her own", 0, "nothing to do", "status")
		d.Exec(t, "UPDATE dbjobs.plans SET next_run = now() - interval '1 hour'")
		expect("it comes no more", 2, "CRITICAL: job "+ann+"/hers is overdue by 1h", "check")
		expect("it comes no more", 0, "job "+ann+"/hers is overdue: ask who runs the ticks", "status")
		expect("it comes no more", 1, "hers", "doctor")

		var id, talk bytes.Buffer
		env := func(name string) (string, bool) {
			url, set := map[string]string{settings.URLVariable: asAnn}[name]
			return url, set
		}
		if code := run(t.Context(), []string{"tick"}, strings.NewReader(""), &id, &talk, env, nil); code != exitDatabase || !strings.Contains(talk.String(), "give it as --name or DBJOBS_NAME") {
			t.Errorf("a tick of hers under another name: exit code %d: %s", code, &talk)
		}
		for _, until := range []time.Duration{2 * time.Second, time.Minute} { // a slow machine may not come as far in 2 s
			talk.Reset()
			ctx, stop := context.WithTimeout(t.Context(), until)
			run(ctx, []string{"job", "run-now", "hers", "--wait"}, strings.NewReader(""), &id, &talk, env, nil)
			if stop(); strings.Contains(talk.String(), "goes on") {
				break
			}
		}
		if !strings.Contains(talk.String(), "goes on") || strings.Contains(talk.String(), "has ever come") || strings.Contains(talk.String(), "tick came") {
			t.Errorf("she waits for a run: %s", &talk)
		}
	})
}

// The change log names a user by its login, and an administrator by the name that it gives.
func TestTheNameOfAUserInTheChangeLog(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("has no row security")
		}
		o := newOwned(t, d)
		pause := []string{"job", "pause", o.ann + "/rollup", "--by", "ada"}
		if code := o.run(o.asAnn, "", pause...); code != exitDatabase || !strings.Contains(o.lastOutput, "leave out --by and DBJOBS_BY") {
			t.Errorf("a user gives another name: %d: %s", code, o.lastOutput)
		}
		o.must(o.asAnn, "", "job", "pause", "rollup", "--by", o.ann)
		o.must(o.asAnn, "", "job", "resume", "rollup")
		o.must(o.asAdmin, "", pause...)
		if n := d.Int(t, "SELECT count(*) FROM dbjobs.changes WHERE changed_by = 'ada'"); n != 1 {
			t.Errorf("%d changes by ada, want 1", n)
		}
	})
}
