package tick_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// If a server says when it wants the next request, the step waits until then, up to max_backoff. All requests of a run
// have the same key.
func TestRetryAfterIsHeeded(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		var mu sync.Mutex
		after := map[string]string{"/soon": "90", "/late": "86400"}
		keys := map[string][]string{}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			keys[r.URL.Path] = append(keys[r.URL.Path], r.Header.Get("Idempotency-Key"))
			if len(keys[r.URL.Path]) == 1 {
				w.Header().Set("Retry-After", after[r.URL.Path])
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		defer s.Close()
		tries, wait, most, none := store.Attempts(2), store.Duration(time.Second), store.Duration(10*time.Minute), 0
		retry := store.Retry{Attempts: &tries, Backoff: &wait, MaxBackoff: &most, Jitter: &none}
		for path := range after {
			spec, err := json.Marshal(executor.HTTPSpec{URL: s.URL + path})
			if err != nil {
				t.Fatal(err)
			}
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: path[1:], Retry: retry, Steps: []store.Step{{Executor: "http", Spec: spec}}}}})
			ticktest.Request(t, d, path[1:])
		}
		x := executor.NewHTTP(&executor.Host{Addresses: []executor.Addresses{{Range: netip.MustParsePrefix("127.0.0.0/8")}}})
		defer x.Close()
		tk := ticktest.New(t, d.Store)
		tk.Executors["http"] = x
		for _, step := range []struct {
			after              time.Duration
			started, succeeded int
		}{{0, 2, 0}, {80 * time.Second, 0, 0}, {20 * time.Second, 1, 1}, {8 * time.Minute, 0, 0}, {time.Minute, 1, 1}} {
			d.Clock.Add(step.after)
			r, err := tk.Run(t.Context())
			if err != nil || r.Started != step.started || r.Succeeded != step.succeeded {
				t.Fatalf("after %s more: %v: %+v, want %+v", step.after, err, r, step)
			}
		}
		for path, list := range keys {
			if len(list) != 2 || list[0] == "" || list[0] != list[1] {
				t.Errorf("%s: keys %v", path, list)
			}
		}
		if keys["/soon"][0] == keys["/late"][0] {
			t.Error("two runs have the same key")
		}
	})
}

// The key of a request belongs to its step, not to the place of the step: if an edit puts another step in front while the run is
// open, the step keeps its key, and another one has a key of its own. Otherwise a server would do the work of the step a second
// time, and would take the request of the other step for one that it has answered.
func TestIdempotencyKeyFollowsItsStep(t *testing.T) {
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		var mu sync.Mutex
		keys := map[string][]string{}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			keys[r.URL.Path] = append(keys[r.URL.Path], r.Header.Get("Idempotency-Key"))
			if r.URL.Path == "/charge" && len(keys["/charge"]) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		defer s.Close()
		x := executor.NewHTTP(&executor.Host{Addresses: []executor.Addresses{{Range: netip.MustParsePrefix("127.0.0.0/8")}}})
		defer x.Close()
		tk := ticktest.New(t, d.Store)
		tk.Executors["http"] = x
		tries, wait := store.Attempts(2), store.Duration(time.Second)
		apply := func(names ...string) {
			t.Helper()
			j := store.Job{Name: "job", Retry: store.Retry{Attempts: &tries, Backoff: &wait}}
			for _, name := range names {
				spec, err := json.Marshal(executor.HTTPSpec{URL: s.URL + "/" + name})
				if err != nil {
					t.Fatal(err)
				}
				j.Steps = append(j.Steps, store.Step{Name: name, Executor: "http", Spec: spec})
			}
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{j}})
		}
		apply("charge", "note")
		ticktest.Request(t, d, "job")
		ticktest.Pass(t, tk)
		apply("audit", "charge", "note")
		d.Clock.Add(time.Minute)
		if r := ticktest.Pass(t, tk); r.Succeeded != 1 {
			t.Fatalf("%+v", r)
		}
		mu.Lock()
		defer mu.Unlock()
		charge, note := keys["/charge"], keys["/note"]
		if len(charge) != 2 || charge[0] == "" || charge[0] != charge[1] {
			t.Errorf("charge had the keys %q, want the same one twice", charge)
		}
		if len(note) != 1 || note[0] == charge[0] {
			t.Errorf("note had the keys %q, want one that is not that of charge, %q", note, charge)
		}
	})
}
