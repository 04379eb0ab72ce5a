package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/tick"
)

// A function that sets alarms asks EventBridge Scheduler for the next time. The answer and the log line have that time,
// too. The function keeps no connection, so the database may sleep. If the alarm cannot be set, the invocation is an
// error, so that Lambda tries again.
func TestLambdaSetsAlarms(t *testing.T) {
	c := onPostgres(t)
	c.dbjobs("job", "create", "seldom", "--sql", "SELECT 1", "--repeat-after", "3h")
	var mu sync.Mutex
	asked, refuses := map[string]string{}, false
	scheduler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var s struct{ ScheduleExpression string }
		switch err := json.NewDecoder(r.Body).Decode(&s); {
		case refuses || err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKID/"):
			w.WriteHeader(http.StatusForbidden)
		case asked[r.URL.Path] != "":
			w.WriteHeader(http.StatusConflict)
		default:
			asked[r.URL.Path] = s.ScheduleExpression
		}
	}))
	t.Cleanup(scheduler.Close)
	const name = "a-function"
	f := c.function("DBJOBS_DATABASE_URL="+c.url+"&application_name="+name, "DBJOBS_WAKE=aws-scheduler", "DBJOBS_WAKE_ENDPOINT="+scheduler.URL, "DBJOBS_WAKE_NAME=prod-wake",
		"DBJOBS_WAKE_TARGET=arn:aws:lambda:eu-central-1:123456789012:function:jobs:live", "DBJOBS_WAKE_ROLE=arn:aws:iam::123456789012:role/jobs-scheduler",
		"AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=geheim")
	var r tick.Report
	for range 2 {
		r = f.report(f.invoke("{}", ample))
		if n := c.backends(name, 0); n != 0 {
			t.Errorf("%d connections are kept", n)
		}
	}
	at := r.WakeAt.UTC()
	if wait := at.Sub(r.NextRun); wait < 0 || wait > time.Second || r.NextRun.IsZero() {
		t.Errorf("the next run is at %v, the alarm at %v", r.NextRun, r.WakeAt)
	}
	mu.Lock()
	if got := asked["/schedules/prod-wake-"+at.Format("20060102T150405Z")]; len(asked) != 1 || got != at.Format("at(2006-01-02T15:04:05)") {
		t.Errorf("the schedules are %v", asked)
	}
	refuses = true
	mu.Unlock()
	c.dbjobs("job", "run-now", "seldom")
	kind, message := f.refused(f.invoke("{}", ample))
	if kind != "PassFailed" || !strings.Contains(message, "the pass is over, but the alarm for the next one") || strings.Contains(message, "geheim") {
		t.Errorf("%s: %s", kind, message)
	}
	if n := c.number("SELECT count(*) FROM " + c.table("runs") + " WHERE state = 'succeeded'"); n != 2 {
		t.Errorf("%d runs, want the two that are done all the same", n)
	}
}

// TestAlarmsOfServeHaveItsAudience: a task calls with an identity token for the audience that serve asks for, also where a flag has
// said it. Otherwise serve would refuse each of its own alarms.
func TestAlarmsOfServeHaveItsAudience(t *testing.T) {
	t.Parallel()
	const queue, audience = "projects/p-1/locations/europe-west3/queues/wake", "https://jobs.example.com/tick"
	asked := make(chan string, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /computeMetadata/v1/instance/service-accounts/default/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		fmt.Fprint(w, `{"access_token":"ya29.t0ken"}`)
	})
	mux.HandleFunc("POST /v2/"+queue+"/tasks", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		fmt.Fprint(w, "{}")
	})
	cloud := httptest.NewServer(mux)
	t.Cleanup(cloud.Close)
	srv := startServer(t, "jobs:\n  seldom: {rule: every 3h, sql: SELECT 1}\n", "--oidc-audience="+audience, "--oidc-caller=ticker@p-1.iam.gserviceaccount.com",
		"DBJOBS_WAKE=gcp-tasks:"+queue, "DBJOBS_WAKE_ENDPOINT="+cloud.URL, "GCE_METADATA_HOST="+cloud.Listener.Addr().String(),
		"DBJOBS_WAKE_TARGET="+audience, "DBJOBS_WAKE_ROLE=ticker@p-1.iam.gserviceaccount.com")
	if a := srv.post("/tick"); a.status != http.StatusOK || len(asked) != 1 {
		t.Fatalf("%d: %s; %d tasks", a.status, a.body, len(asked))
	}
	if body := <-asked; !strings.Contains(body, `"audience":"`+audience+`"`) {
		t.Errorf("the task is %s; want the audience %s", body, audience)
	}
}

// A tick whose budget ends before what an early alarm has started it for is refused: otherwise it would set the next alarm at once,
// and so on, a pass each second. A worker waits for nothing, and without a budget a tick waits as long as it takes. What a request
// to serve has waited for its turn, its alarm has waited, too.
func TestLeadFitsIntoTheBudget(t *testing.T) {
	t.Parallel()
	env := func(lead, budget, kind string) settings.Lookup {
		all := map[string]string{"HOME": t.TempDir(), "DBJOBS_WAKE_LEAD": lead, "DBJOBS_BUDGET": budget, "DBJOBS_WAKE": kind}
		return func(name string) (string, bool) { value := all[name]; return value, value != "" }
	}
	refused := func(what, said string, want bool) {
		t.Helper()
		lead, passed := strings.Contains(said, "--wake-lead (DBJOBS_WAKE_LEAD)"), strings.Contains(said, "there is no embedded database")
		if lead != want || passed == want || want && !strings.Contains(said, "(--budget, DBJOBS_BUDGET)") {
			t.Errorf("%s: %s; want a refusal: %v", what, said, want)
		}
	}
	const alarm = "exec:true"
	for _, c := range []struct {
		command, lead, budget, kind string
		refused                     bool
	}{
		{"tick", "60s", "20s", alarm, true},
		{"tick", "18s", "20s", alarm, true},
		{"tick", "17s", "20s", alarm, false},
		{"tick", "60s", "", alarm, false},
		{"tick", "60s", "20s", "", false},
		{"work", "60s", "20s", alarm, false},
	} {
		var said bytes.Buffer
		if code := run(t.Context(), []string{c.command}, nil, io.Discard, &said, env(c.lead, c.budget, c.kind), nil); code != exitUsage {
			t.Errorf("%+v: code %d", c, code)
		}
		refused(fmt.Sprint(c), said.String(), c.refused)
	}
	for lead, want := range map[string]bool{"50s": false, "56s": true} {
		h := &handler{timeout: time.Minute, ending: t.Context(), service: service{stderr: io.Discard, env: env(lead, "", alarm)}}
		a := h.run(event{Command: "tick"}, time.Now().Add(40*time.Second))
		refused("serve, "+lead, string(a.body), want)
	}
	f := startFunction(t, "DBJOBS_DATABASE_URL=postgres://nobody@127.0.0.1:1/jobs", "DBJOBS_WAKE="+alarm, "DBJOBS_WAKE_LEAD=60s")
	if kind, message := f.refused(f.invoke("{}", time.Minute)); kind != "BadInput" || !strings.Contains(message, "DBJOBS_WAKE_LEAD") {
		t.Errorf("%s: %s", kind, message)
	}
}
