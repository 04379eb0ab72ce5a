package tick_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// deliverOnce makes one delivery of the one run that is due, and ends it in this way.
func deliverOnce(t *testing.T, d *storetest.DB, how string) {
	t.Helper()
	if how == "dies" {
		ticktest.DecideOnly(t, d)
		if tasks, err := d.Take(t.Context(), "tick", 1, store.Holder{Name: "dead", Lease: time.Minute}); err != nil || len(tasks) != 1 {
			t.Fatal(err, len(tasks))
		}
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := ticktest.NewDoing(t, d, func(within context.Context, _ executor.Request) (executor.Result, error) {
		switch how {
		case "idle":
			return executor.Result{}, executor.ErrNothingDone
		case "waits": // until the pass ends
			cancel()
			<-within.Done()
			return executor.Result{}, executor.ErrNothingDone
		case "fails":
			return executor.Result{}, errors.New("it fails")
		case "cut":
			cancel()
			<-within.Done()
		}
		return executor.Result{}, within.Err()
	}).Run(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// Deliveries without effect are bounded for each try of a step. They are no losses, of which a run may have two here.
func TestDeliveryWithoutEffectIsNoLoss(t *testing.T) {
	for deliveries, want := range map[string]string{
		"idle idle cut done":                                  "succeeded in try 1, 1 lost",
		"idle idle dies":                                      "queued in try 0, 1 lost",
		"cut idle dies idle done":                             "succeeded in try 1, 2 lost",
		"idle idle cut cut cut":                               "lost in try 1, 2 lost",
		"idle idle idle done":                                 "succeeded in try 2, 0 lost",
		"waits waits waits done":                              "succeeded in try 2, 0 lost",
		"waits idle waits idle waits waits":                   "failed in try 2, 0 lost",
		"cut waits waits waits cut done":                      "succeeded in try 2, 2 lost",
		"idle idle fails idle idle cut done":                  "succeeded in try 2, 1 lost",
		"idle idle idle idle idle idle":                       "failed in try 2, 0 lost",
		"idle idle cut cut cut retry idle idle cut cut done":  "succeeded in try 1, 2 lost",
		"fails idle idle idle retry idle idle fails cut done": "succeeded in try 2, 1 lost",
	} {
		t.Run(deliveries, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 3, Steps: []store.Step{ticktest.Call("")},
					Retry: store.Retry{Attempts: new(store.Attempts(2)), Backoff: new(store.Duration(time.Minute))}}}})
				run := ticktest.RunNow(t, d, "job", store.Request{})
				for how := range strings.FieldsSeq(deliveries) {
					if how != "retry" {
						deliverOnce(t, d, how)
						d.Clock.Add(10 * time.Minute)
						continue
					}
					ticktest.DecideOnly(t, d)
					if _, err := d.RetryRun(t.Context(), run.ID, "", store.Author{}); err != nil {
						t.Fatal(err)
					}
				}
				ticktest.DecideOnly(t, d)
				r := ticktest.LastRun(t, d, "job")
				if got := fmt.Sprintf("%s in try %d, %d lost", r.State, r.Attempt, r.Losses); got != want {
					t.Errorf("%s, want %s: %s", got, want, r.Error)
				}
			})
		})
	}
}

// Deliveries without effect may follow each other within seconds, in one pass or in the passes of a tick that stays. What passes
// within a minute and a half, such as a server that takes no logins, fails no try.
func TestDeliveryEndsATryOnlyAfterAWhile(t *testing.T) {
	for away, want := range map[time.Duration]string{
		0:                "succeeded after 0s, paused: false",
		20 * time.Second: "succeeded after 31s, paused: false",
		85 * time.Second: "succeeded after 2m7s, paused: false",
		time.Hour:        "failed after 2m7s, paused: true",
	} {
		t.Run(away.String(), func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, d *storetest.DB) {
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", OnError: store.OnErrorPause, Steps: []store.Step{ticktest.Call("")}}}})
				ticktest.Request(t, d, "job")
				began := d.Clock.Now()
				for {
					how := "idle"
					if d.Clock.Now().Sub(began) >= away {
						how = "done"
					}
					deliverOnce(t, d, how)
					r := ticktest.LastRun(t, d, "job")
					if r.State == store.Waiting {
						d.Clock.Add(r.ReadyAt.Sub(d.Clock.Now()))
						continue
					}
					j, err := d.Job(t.Context(), "job")
					if got := fmt.Sprintf("%s after %s, paused: %t", r.State, d.Clock.Now().Sub(began), err != nil || j.Paused != nil); got != want {
						t.Errorf("%s, want %s: %s", got, want, r.Error)
					}
					return
				}
			})
		})
	}
}
