package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// calling is an executor whose requests or programs are calls of the process, like those of the
// database. So a fault falls on them, too: before, at and after their effect.
type calling struct {
	calls *storetest.Calls
	to    executor.Executor
}

func (c calling) Execute(ctx context.Context, r executor.Request) (res executor.Result, err error) {
	err = c.calls.Act(r.Task.Job.Name+": "+r.Task.StepAt(r.Task.Run.Step).Name, func() error {
		res, err = c.to.Execute(ctx, r)
		return err
	})
	return res, err
}

// caller is an executor that reaches the web server.
func caller() *executor.HTTP {
	return executor.NewHTTP(&executor.Host{Addresses: []executor.Addresses{{Range: netip.MustParsePrefix("127.0.0.0/8")}}})
}

// web is a server whose requests have the effect that an attempt has. A request to /NAME has the effect of the
// step NAME. The server knows each run's step by its key, as a server does that must not do a thing twice.
type web struct {
	w    *world
	mu   sync.Mutex
	keys map[string]string // by run and step
	runs map[string]string // by key
}

func (s *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var told struct {
		Run     string `json:"run_id"`
		Fence   int    `json:"fence"`
		Attempt int    `json:"attempt"`
	}
	if err := json.NewDecoder(r.Body).Decode(&told); err != nil {
		s.w.t.Errorf("%s was sent no facts: %v", r.URL.Path, err)
	}
	name, key := strings.TrimPrefix(r.URL.Path, "/"), r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	of := told.Run + " " + name
	if known := s.keys[of]; key == "" || known != "" && known != key {
		s.w.t.Errorf("%s has the keys %q and %q", of, known, key)
	}
	if known := s.runs[key]; known != "" && known != of {
		s.w.t.Errorf("the key %q belongs to %s and to %s", key, known, of)
	}
	s.keys[of], s.runs[key] = key, of
	s.mu.Unlock()
	if _, err := s.w.d.SQL.Exec(fmt.Sprintf("INSERT INTO effects VALUES ('%s', '%s', %d, %d)", told.Run, name, told.Fence, told.Attempt)); err != nil {
		s.w.t.Error(err)
	}
	if name == "busy" && told.Attempt == 1 {
		rw.Header().Set("Retry-After", "90")
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
}

// serve starts the web server of a world.
func (w *world) serve() string {
	s := httptest.NewServer(&web{w: w, keys: map[string]string{}, runs: map[string]string{}})
	w.t.Cleanup(s.Close)
	return s.URL
}

func request(url, name string) store.Step {
	return store.Step{Name: name, Executor: "http", Spec: fmt.Appendf(nil, `{"url": "%s/%s"}`, url, name)}
}

// requesting is a scenario of jobs that send requests. One request succeeds, between other steps. The
// server asks the other one to come later.
func requesting(string) []stage {
	return []stage{
		{name: "plan", at: time.Minute, edit: func(w *world) {
			url := w.serve()
			tells := hourlyOf(patient("tells", act("first", 0), request(url, "send"), w.effect("two", true)), "all", "wait-all")
			w.define([]store.Job{tells, hourlyOf(patient("waits", request(url, "busy")), "latest", "wait")})
		}},
		{name: "outage", at: 2*time.Hour + 5*time.Minute},
		{name: "decided only", at: 3*time.Hour + 5*time.Minute, decide: true},
		{name: "taken up", at: 3*time.Hour + 15*time.Minute},
	}
}

// A process dies before, at or after a request, or at any other call. Each run's request is sent at
// least once, always with the same key, and no run is forgotten.
func TestCrashAtEveryCallOfRequests(t *testing.T) {
	t.Parallel()
	crashesOn(t, storetest.EnginesFor(t, t.Name()), requesting, 2)
}
