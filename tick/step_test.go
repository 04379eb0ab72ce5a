package tick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The next step on success and on failure, with all words.
func TestStepsFollowAsDefined(t *testing.T) {
	for i, c := range []struct{ success, failure, order, state string }{
		{"next", "fail", "good bad", store.Failed},
		{"next", "next", "good bad last", store.Succeeded},
		{"next", "succeed", "good bad", store.Succeeded},
		{"succeed", "fail", "good", store.Succeeded},
		{"fail", "fail", "good", store.Failed},
		{"step:last", "fail", "good last", store.Succeeded},
		{"next", "step:last", "good bad last", store.Succeeded},
		{"step:good", "fail", strings.TrimSpace(strings.Repeat("good ", 1000)), store.Failed},
		{"next", "step:good", strings.TrimSpace(strings.Repeat("good bad ", 500)), store.Failed},
	} {
		t.Run(c.success+" or "+c.failure, func(t *testing.T) {
			circle := strings.Count(c.order, " ") > 500
			run := func(t *testing.T, fn func(*testing.T, *storetest.DB)) { storetest.InTurn(t, i, fn) }
			if circle {
				run = storetest.Each
			}
			run(t, func(t *testing.T, d *storetest.DB) {
				if circle && d.Engine != "sqlite" {
					t.Skip("what bounds them knows no engine")
				}
				good, bad := ticktest.Call("good"), ticktest.Call("bad")
				good.OnSuccess, bad.OnFailure = c.success, c.failure
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{good, bad, ticktest.Call("last")}}}})
				ticktest.Request(t, d, "job")
				var order []string
				r, err := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
					name := r.Task.StepAt(r.Task.Run.Step).Name
					if order = append(order, name); name == "bad" {
						return executor.Result{}, errors.New("bad")
					}
					return executor.Result{}, nil
				}).Run(t.Context())
				if err != nil || strings.Join(order, " ") != c.order || !slices.Equal(ticktest.States(t, d, "job"), []string{c.state}) {
					t.Fatalf("%v: %d steps: %.80v: %+v", err, len(order), order, r)
				}
				if len(order) >= 1000 && !strings.Contains(r.Runs[0].Error, "its steps form a circle: after 1000 attempts, the next would be step good again; a new run begins a new count, `run retry` does not") {
					t.Errorf("it says %q", r.Runs[0].Error)
				}
			})
		})
	}
}

// A circle of steps that no outcome leaves is refused when it is made.
func TestStepsInACircleWithoutAWayOutAreRefused(t *testing.T) {
	type way struct{ success, failure string }
	for name, c := range map[string]struct {
		ways []way
		ok   bool
	}{
		"until it fails":      {[]way{{"step:a", "fail"}}, true},
		"until it succeeds":   {[]way{{"succeed", "step:a"}}, true},
		"to itself":           {[]way{{"step:a", "step:a"}}, false},
		"two":                 {[]way{{"next", "next"}, {"step:a", "step:a"}}, false},
		"one way out":         {[]way{{"next", "next"}, {"step:a", "fail"}}, true},
		"never come to":       {[]way{{"succeed", "fail"}, {"step:b", "step:b"}}, true},
		"come to on failure":  {[]way{{"succeed", "next"}, {"step:b", "step:b"}}, false},
		"over three":          {[]way{{"step:c", "next"}, {"step:a", "step:c"}, {"step:b", "step:a"}}, false},
		"over three, and out": {[]way{{"step:c", "next"}, {"step:a", "step:c"}, {"step:b", "next"}}, true},
	} {
		j := store.Job{Name: "job"}
		for i, w := range c.ways {
			j.Steps = append(j.Steps, store.Step{Name: fmt.Sprintf("%c", 'a'+i), Executor: "sql", Spec: ticktest.Step("", "SELECT 1").Spec, OnSuccess: w.success, OnFailure: w.failure})
		}
		j.Normalize()
		if err := j.Validate(); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "circle") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
