package tick_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// monitored is a tick whose heartbeats go to a server, which keeps METHOD PATH?QUERY BODY of each. If answer is set,
// the server calls it before that.
func monitored(t *testing.T, d *storetest.DB, answer http.HandlerFunc) (*tick.Tick, string, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if answer != nil {
			answer(w, r)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
	}))
	t.Cleanup(s.Close)
	x := executor.NewHTTP(&executor.Host{Addresses: []executor.Addresses{{Range: netip.MustParsePrefix("127.0.0.0/8")}}})
	t.Cleanup(func() { x.Close() })
	tk := ticktest.New(t, d.Store)
	tk.Executors["http"] = x
	return tk, s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

// requested is a run on request.
func requested(t *testing.T, d *storetest.DB, job string) store.Run {
	t.Helper()
	ticktest.Request(t, d, job)
	ticktest.DecideOnly(t, d)
	runs, err := d.Runs(t.Context(), store.RunFilter{Job: job, Limit: 1})
	if err != nil || len(runs) != 1 {
		t.Fatal(err, runs)
	}
	return runs[0]
}

// Signals say that a run begins, at each delivery, and that it has succeeded or failed. A try that will be repeated is
// not an end.
func TestHeartbeatOfRuns(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk, url, got := monitored(t, d, nil)
		tries, none := store.Attempts(2), 0
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
			{Name: "good", Heartbeat: store.Heartbeat{URL: url + "/${job}"}, Steps: []store.Step{ticktest.Nop("")}},
			{Name: "bad", Heartbeat: store.Heartbeat{URL: url + "/${job}"}, Retry: store.Retry{Attempts: &tries, Jitter: &none}, Steps: []store.Step{ticktest.Step("", "SELECT broken")}},
			{Name: "apart", Heartbeat: store.Heartbeat{Success: url + "/ok?state=complete&series=${run_id}"}, Steps: []store.Step{ticktest.Nop("")}},
			{Name: "silent", Steps: []store.Step{ticktest.Nop("")}},
		}})
		ids, owner := map[string]string{}, ""
		for _, job := range []string{"good", "bad", "apart", "silent"} {
			r := requested(t, d, job)
			if ids[job] = r.ID; r.Owner != "" {
				owner = r.Owner + "/"
			}
		}
		for range 2 {
			if r, err := tk.Run(t.Context()); err != nil || r.UntoldSignals != 0 {
				t.Fatalf("%v: %+v", err, r)
			}
			d.Clock.Add(time.Minute)
		}
		told := map[string][]string{}
		for _, line := range got() {
			for job, id := range ids {
				if before, after, found := strings.Cut(line, id); found {
					told[job] = append(told[job], before+after)
				}
			}
		}
		for job, want := range map[string][]string{
			"good":   {"POST /good/start?rid=", "POST /good?rid= job " + owner + "good succeeded"},
			"bad":    {"POST /bad/start?rid=", "POST /bad/start?rid=", "POST /bad/fail?rid= job " + owner + "bad failed: "},
			"apart":  {"GET /ok?state=complete&series="},
			"silent": nil,
		} {
			if !slices.EqualFunc(told[job], want, func(got, want string) bool { return strings.HasPrefix(got, want) }) {
				t.Errorf("%s: told %q, want %q", job, told[job], want)
			}
		}
	})
}

// No run waits for its heartbeat: the service accepts the start only when it sees in the database that the run has
// ended.
func TestHeartbeatDelaysNoRun(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		var id string
		ended := func(ctx context.Context) bool {
			for ctx.Err() == nil {
				if r, err := d.Run(ctx, id); err == nil && r.State == store.Succeeded {
					return true
				}
			}
			return false
		}
		seen := make(chan bool, 9)
		tk, url, got := monitored(t, d, func(_ http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/start") {
				seen <- ended(r.Context())
			}
		})
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Heartbeat: store.Heartbeat{URL: url}, Steps: []store.Step{ticktest.Nop("")}}}})
		id = requested(t, d, "job").ID
		r, err := tk.Run(t.Context())
		if err != nil || r.Succeeded != 1 || r.UntoldSignals != 0 || !<-seen {
			t.Fatalf("%v: %+v", err, r)
		}
		if told := got(); len(told) != 2 || !strings.HasPrefix(told[0], "POST /start") {
			t.Errorf("told %q", told)
		}
	})
}

// A service that never answers delays the end of the pass by a bounded time, and the report names it. The report also
// names a service to which a job may not send requests.
func TestHeartbeatOfARunThatIsNotTold(t *testing.T) {
	t.Parallel()
	d := storetest.Open(t, "sqlite", store.Options{})
	tk, url, _ := monitored(t, d, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	tk.Budget = 4 * time.Second
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{
		{Name: "hangs", Heartbeat: store.Heartbeat{URL: url + "/geheim"}, Steps: []store.Step{ticktest.Nop("")}},
		{Name: "refused", Heartbeat: store.Heartbeat{Failure: "http://169.254.169.254/geheim", Success: "http://169.254.169.254/geheim"}, Steps: []store.Step{ticktest.Nop("")}},
	}})
	for _, job := range []string{"hangs", "refused"} {
		ticktest.Request(t, d, job)
	}
	r, err := tk.Run(t.Context())
	if err != nil || r.Succeeded != 2 || r.UntoldSignals != 3 || len(r.Untold) != 3 {
		t.Fatalf("%v: %+v", err, r)
	}
	want := map[string]string{"hangs": "no answer before the end of the pass", "refused": "this host does not allow connections to 169.254.169.254"}
	for _, u := range r.Untold {
		if !strings.Contains(u.Error, want[u.Job]) || strings.Contains(u.Error, "geheim") {
			t.Errorf("%s: %s", u.Job, u.Error)
		}
	}
}

// After the holder of a run died, the next delivery sends the signals.
func TestHeartbeatAfterACrash(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		tk, url, got := monitored(t, d, nil)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Heartbeat: store.Heartbeat{URL: url}, Steps: []store.Step{ticktest.Nop("")}}}})
		id := requested(t, d, "job").ID
		if tasks, err := d.Take(t.Context(), "tick", 1, store.Holder{Name: "dead", Lease: time.Minute}); err != nil || len(tasks) != 1 {
			t.Fatal(err, tasks)
		}
		d.Clock.Add(time.Hour)
		if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != 1 {
			t.Fatalf("%v: %+v", err, r)
		}
		if want := []string{"POST /start?rid=" + id, "POST /?rid=" + id}; len(got()) != 2 || got()[0] != want[0] || !strings.HasPrefix(got()[1], want[1]) {
			t.Errorf("told %q, want %q", got(), want)
		}
	})
}
