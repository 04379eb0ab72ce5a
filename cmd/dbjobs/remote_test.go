package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// answered returns the answer of an invocation that must succeed.
func answered[T any](f *aFunction, a answer) (v T) {
	f.t.Helper()
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.failed || a.killed {
		f.t.Fatalf("answered %+v, %v; log:\n%s", a, err, f.log)
	}
	return v
}

// orderOf makes an event from pairs of members.
func orderOf(command string, members ...any) string {
	m := map[string]any{"command": command}
	for i := 0; i < len(members); i += 2 {
		m[members[i].(string)] = members[i+1]
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestLambdaSetsItUp: only the function reaches the database. It makes the tables, applies the jobs, runs them, and
// reports the status.
func TestLambdaSetsItUp(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" {
			continue
		}
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			c := &cloud{TB: t, url: storetest.URL(t, e)}
			f := c.function("DBJOBS_LAMBDA_ALLOW=migrate, apply,export status,check,run-now")
			if kind, _ := f.refused(f.invoke("{}", ample)); kind != "Schema" {
				t.Errorf("a tick before the migration: %s", kind)
			}
			for range 2 { // the second changes nothing
				if s := answered[report.Schema](f, f.invoke(orderOf("migrate"), ample)); !s.Usable || s.Version != store.Latest {
					t.Errorf("migrated: %+v", s)
				}
			}
			jobs := "manifest: night\njobs:\n  hello: {rule: every 1s, sql: SELECT 1}\n"
			if a := answered[report.Applied](f, f.invoke(orderOf("apply", "manifest", jobs, "dry_run", true), ample)); !a.DryRun || len(a.Changes) == 0 {
				t.Errorf("would apply %+v", a)
			}
			if a := answered[report.Applied](f, f.invoke(orderOf("apply", "manifest", jobs, "by", "ann", "reason", "first"), ample)); a.DryRun || a.Manifest != "night" || len(a.Changes) == 0 {
				t.Errorf("applied %+v", a)
			}
			run := answered[store.RequestedRun](f, f.invoke(orderOf("run-now", "job", "hello", "args", map[string]string{"day": "--key=x"}, "key", "k"), ample))
			if again := answered[store.RequestedRun](f, f.invoke(orderOf("run-now", "job", "hello", "key", "k"), ample)); run.ID == "" || again.ID != run.ID || !again.Existing {
				t.Errorf("one key has the runs %+v and %+v", run, again)
			}
			if run := answered[store.RequestedRun](f, f.invoke(orderOf("run-now", "job", "hello", "from_step", "step 1"), ample)); run.Step != 1 || run.Existing {
				t.Errorf("from a step: %+v", run)
			}
			if kind, why := f.refused(f.invoke(orderOf("run-now", "job", "hello", "from_step", "2"), ample)); !strings.Contains(why, "no step") {
				t.Errorf("from a step that is not there: %s, %s", kind, why)
			}
			// Lambda may deliver an event twice, with the same id of the request.
			event := orderOf("run-now", "job", "hello")
			first := answered[store.RequestedRun](f, f.invokeAs("delivered-twice", event, ample))
			if again := answered[store.RequestedRun](f, f.invokeAs("delivered-twice", event, ample)); again.ID != first.ID || !again.Existing {
				t.Errorf("an event that was delivered twice requests %+v and %+v", first, again)
			}
			if other := answered[store.RequestedRun](f, f.invoke(event, ample)); other.ID == first.ID {
				t.Errorf("another event gets the same run: %+v", other)
			}
			if r := f.report(f.invoke("{}", ample)); r.Succeeded == 0 {
				t.Errorf("the first tick: %+v", r)
			}
			if s := answered[report.Status](f, f.invoke(orderOf("status", "limit", 3), ample)); len(s.Triggers) == 0 {
				t.Errorf("status: %+v", s)
			}
			if h := answered[struct{ Level string }](f, f.invoke(orderOf("check"), ample)); h.Level != "OK" {
				t.Errorf("check: %+v", h)
			}
			if h := answered[struct{ Level string }](f, f.invoke(orderOf("check", "last_pass", "70m", "overdue", "70m", "stuck", "2h", "trigger", "another"), ample)); h.Level != "UNKNOWN" {
				t.Errorf("check, of a trigger that never came: %+v", h)
			}
			exported := answered[map[string]string](f, f.invoke(orderOf("export", "manifest", "night"), ample))
			if a := answered[report.Applied](f, f.invoke(orderOf("apply", "manifest", exported["manifest"], "prune", true), ample)); len(a.Changes) != 0 || !strings.Contains(exported["manifest"], "hello") {
				t.Errorf("what was exported changes %+v:\n%s", a, exported)
			}
			// The same as JSON. A level that is not OK is an answer, not an error.
			bad := json.RawMessage(`{"manifest": "night", "jobs": {"bad": {"rule": "every 1s", "sql": "SELECT nothing"}}}`)
			answered[report.Applied](f, f.invoke(orderOf("apply", "manifest", bad, "prune", true), ample))
			answered[store.RequestedRun](f, f.invoke(orderOf("run-now", "job", "bad"), ample))
			if r := f.report(f.invoke("{}", ample)); r.Failed == 0 {
				t.Errorf("the tick after: %+v", r)
			}
			if h := answered[struct{ Level string }](f, f.invoke(orderOf("check"), ample)); h.Level == "OK" {
				t.Errorf("check, after a failure: %+v", h)
			}
		})
	}
}

// TestLambdaAllowsWhatIsNamed: only ticks and the actions that the host names are allowed. A mistake in the names stops
// no ticks.
func TestLambdaAllowsWhatIsNamed(t *testing.T) {
	c := onPostgres(t)
	for _, allow := range []string{"", "status", "status,aply"} {
		f := c.function("DBJOBS_LAMBDA_ALLOW=" + allow)
		for _, command := range slices.Sorted(maps.Keys(remotes)) {
			a := f.invoke(orderOf(command), ample)
			if allow == "status" && command == "status" {
				answered[report.Status](f, a)
				continue
			}
			if kind, message := f.refused(a); kind != "BadInput" || !strings.Contains(message, "DBJOBS_LAMBDA_ALLOW") {
				t.Errorf("%q: %s: %s: %s", allow, command, kind, message)
			}
		}
		f.report(f.invoke("{}", ample))
	}
}

// TestLambdaEventsAreStrict: mistakes in an event are found, and no event reads anything that only the function may
// read.
func TestLambdaEventsAreStrict(t *testing.T) {
	c := onPostgres(t)
	f := c.function("DBJOBS_LAMBDA_ALLOW=apply,run-now,migrate,check")
	for event, want := range map[string]string{
		orderOf("apply"):                                    "apply needs a manifest",
		orderOf("apply", "manifest", nil):                   "apply needs a manifest",
		orderOf("apply", "manifest", "jobs: [x]"):           "standard input:1",
		orderOf("apply", "manifest", 5):                     "standard input",
		orderOf("apply", "manifest", "include: [/etc/pwd]"): "files cannot be included here",
		orderOf("apply", "manifest", "jobs:\n  x: {rule: every 1h, sql: '${env:AWS_SECRET_ACCESS_KEY}'}"): "AWS_SECRET_ACCESS_KEY",
		orderOf("apply", "manifest", "calendars:\n  c: {file: /proc/self/environ}"):                       "no file can be read here",
		orderOf("apply", "manifst", "jobs: {}"):                                                           `unknown field "manifst"`,
		orderOf("migrate", "limit", 1):                                                                    `unknown field "limit"`,
		orderOf("run-now"):                                                                                "name of a job",
		orderOf("check", "last_pass", "soon"):                                                             "soon",
		orderOf("run-now", "job", "--help"):                                                               "--help",
		orderOf("run-now", "job", "x", "args", []int{1}):                                                  "cannot unmarshal",
		orderOf("uninstall"):                                                                              "unknown command \"uninstall\"",
		orderOf("apply", "manifest", "jobs:\n  y: {sql: x, ${env:HOME}: 1}"):                              "standard input",
	} {
		kind, message := f.refused(f.invoke(event, ample))
		if kind != "BadInput" && kind != "PassFailed" || !strings.Contains(message, want) || strings.Contains(message, "geheim") {
			t.Errorf("%s: %s: %s; want %q", event, kind, message, want)
		}
	}
	if n := c.number("SELECT count(*) FROM " + c.table("jobs")); n != 0 {
		t.Errorf("%d jobs were made\n%s", n, f.log)
	}
}
