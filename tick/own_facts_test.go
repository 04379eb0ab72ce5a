package tick_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// page is a step that leads back to itself, and names what it told before.
func page() store.Step {
	st := ticktest.Call("page")
	st.Spec = json.RawMessage(`{"args": ["${steps.page.row.n}", "${steps.page.status}"]}`)
	st.OnSuccess = "step:page"
	return st
}

// endByHand ends attempts of a run one after another, and opens the run again where it has ended. The next attempt has begun then,
// and its process is dead.
func endByHand(t *testing.T, d *storetest.DB, run string, ends []store.StepEnd) {
	t.Helper()
	h := store.Holder{Name: "dies", Lease: time.Minute}
	take := func() *store.Task {
		ticktest.DecideOnly(t, d)
		tasks, err := d.Take(t.Context(), "tick", 1, h)
		if err != nil || len(tasks) != 1 {
			t.Fatal(len(tasks), err)
		}
		return &tasks[0]
	}
	task := take()
	for _, end := range ends {
		if err := d.EndStep(t.Context(), task, end, h); err != nil {
			t.Fatal(err)
		}
		if end.Final != "" {
			ticktest.DecideOnly(t, d)
			d.Clock.Add(time.Second) // a life of a run is known by when it began
			if _, err := d.RetryRun(t.Context(), run, "", store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
		if end.NextStep == 0 {
			task = take()
		}
	}
	d.Clock.Add(10 * time.Minute)
}

// A step that leads back to itself learns of its last visit: neither a further try, nor a further delivery, nor the next life of
// its run comes in between.
func TestStepFactsOfItself(t *testing.T) {
	one := store.StepEnd{State: store.Succeeded, NextStep: 1, Result: `{"row": {"n": 1}}`}
	two := store.StepEnd{State: store.Succeeded, NextStep: 1, Result: `{"row": {"n": 2}}`}
	fails := store.StepEnd{State: store.Failed, Retry: true, Result: `{"code": 503}`}
	cut := store.StepEnd{State: "cut", Redeliver: true}
	over := store.StepEnd{State: store.Failed, Final: store.Failed}
	again := store.StepEnd{State: store.Failed, NextStep: 1, Result: `{"code": 503}`}
	for name, c := range map[string]struct {
		ends []store.StepEnd
		want string
	}{
		"dies":                  {[]store.StepEnd{one, two}, "2 succeeded"},
		"fails":                 {[]store.StepEnd{one, two, fails}, "2 succeeded"},
		"is cut":                {[]store.StepEnd{one, two, cut}, "2 succeeded"},
		"all of it, many times": {[]store.StepEnd{one, fails, two, fails, cut, fails, cut, cut, fails}, "2 succeeded"},
		"first visit":           {[]store.StepEnd{cut, fails, fails}, "<nil> <nil>"},
		"after the first visit": {[]store.StepEnd{fails, one}, "1 succeeded"},
		"run retry":             {[]store.StepEnd{one, two, fails, over}, "2 succeeded"},
		"by way of another": {[]store.StepEnd{one, {State: store.Failed, NextStep: 2, Result: `{"rows": 0}`}, {State: store.Succeeded, NextStep: 1}, fails},
			"<nil> failed"},
		"after a failure":              {[]store.StepEnd{one, fails, again}, "<nil> failed"},
		"after failures, and cut":      {[]store.StepEnd{one, fails, again, cut, cut, fails, cut}, "<nil> failed"},
		"after a success again":        {[]store.StepEnd{again, two, cut, fails, fails}, "2 succeeded"},
		"run retry, after a failure":   {[]store.StepEnd{one, fails, over}, "1 succeeded"},
		"after a failure in that life": {[]store.StepEnd{one, over, fails, again, fails}, "<nil> failed"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 9, Steps: []store.Step{page(), ticktest.Call("repair")}}}})
				run := ticktest.RunNow(t, d, "job", store.Request{})
				endByHand(t, d, run.ID, c.ends)
				told := ""
				r, err := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
					facts := executor.Facts(r.Task)
					told = fmt.Sprint(facts["steps.page.row.n"], " ", facts["steps.page.status"])
					return executor.Result{Skip: true}, nil
				}).Run(t.Context())
				if err != nil || r.Succeeded != 1 || told != c.want {
					t.Errorf("%v: it learns %q, want %q; %d runs have succeeded", err, told, c.want, r.Succeeded)
				}
			})
		})
	}
}

// A request for the page that its last answer names is sent again as it was.
func TestRequestOfTheNextPageIsTriedAgain(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, "page "+r.URL.Query().Get("page"))
		switch len(asked) {
		case 1, 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 5:
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = fmt.Fprintf(w, `{"next": %d}`, len(asked)/2+1)
		}
	}))
	t.Cleanup(s.Close)
	storetest.OnTwo(t, func(t *testing.T, d *storetest.DB) {
		asked = nil
		spec, err := json.Marshal(executor.HTTPSpec{URL: s.URL + "/?page=${steps.fetch.body.next}"})
		if err != nil {
			t.Fatal(err)
		}
		fetch := store.Step{Name: "fetch", Executor: "http", Spec: spec, OnSuccess: "step:fetch"}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{fetch},
			Retry: store.Retry{Attempts: new(store.Attempts(2)), Backoff: new(store.Duration(0))}}}})
		ticktest.Request(t, d, "job")
		tk := ticktest.New(t, d.Store)
		x := executor.NewHTTP(&executor.Host{Addresses: []executor.Addresses{{Range: netip.MustParsePrefix("127.0.0.0/8")}}})
		defer x.Close()
		tk.Executors["http"] = x
		for range 4 {
			if _, err := tk.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.Clock.Add(time.Minute)
		}
		if want := []string{"page ", "page ", "page 2", "page 2", "page 3"}; !slices.Equal(asked, want) {
			t.Errorf("asked for %q, want %q: %s", asked, want, ticktest.LastRun(t, d, "job").Error)
		}
	})
}
