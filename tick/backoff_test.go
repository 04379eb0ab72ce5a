package tick_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/decide"
	"github.com/dbjobs/dbjobs/tick/decide/model"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The model doubles a back-off in its own way. Without jitter, both agree, also far above the cap.
func TestBackoffIsThatOfTheModel(t *testing.T) {
	none := 0
	for _, first := range []time.Duration{0, time.Millisecond, time.Minute, 7 * time.Minute, 3 * time.Hour} {
		for _, most := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
			wait, limit := store.Duration(first), store.Duration(most)
			r := store.Retry{Backoff: &wait, MaxBackoff: &limit, Jitter: &none}
			for attempt := 1; attempt <= 16; attempt++ {
				if got, want := decide.Backoff(r, attempt), model.Backoff(r, attempt); got != want {
					t.Errorf("%s up to %s, attempt %d: %s, want %s", first, most, attempt, got, want)
				}
			}
		}
	}
}

// The limit bounds the doubling, and never the first wait: a limit that is a default, or that of another definition, must not
// shorten it.
func TestBackoffIsTheFirstWaitAtLeast(t *testing.T) {
	wait, limit := store.Duration(2*time.Hour), store.Duration(time.Hour)
	for attempt := 1; attempt <= 3; attempt++ {
		if got := decide.Backoff(store.Retry{Backoff: &wait, MaxBackoff: &limit}, attempt); got != 2*time.Hour {
			t.Errorf("attempt %d: %s, want 2h", attempt, got)
		}
	}
}

// A step that gives both waits is held to them like a job. A limit of the job is no contradiction: the step says nothing of it.
func TestStepWhoseLimitIsBelowItsBackoffIsRefused(t *testing.T) {
	d := storetest.Open(t, "sqlite", store.Options{})
	wait, limit := store.Duration(10*time.Minute), store.Duration(time.Minute)
	for want, retry := range map[string]store.Retry{
		"job job, step pull: retry.max_backoff: 1m is below backoff, 10m": {Backoff: &wait, MaxBackoff: &limit},
		"": {Backoff: &wait},
	} {
		st := ticktest.Step("pull", "SELECT 1")
		st.Retry = retry
		job := store.Job{Name: "job", Retry: store.Retry{MaxBackoff: &limit}, Steps: []store.Step{st}}
		_, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{job}}, store.ApplyOptions{})
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("%s, want %q", got, want)
		}
	}
}

// Plain SQL, a routine or an older version may have stored such a step. Its runs have a wait all the same, and execute.
func TestStepWhoseLimitIsBelowItsBackoffRuns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("pull", "SELECT 1")}}}})
		d.Exec(t, "UPDATE "+d.Table("steps")+" SET retry_backoff_ms = 600000, retry_max_backoff_ms = 60000")
		ticktest.Request(t, d, "job")
		for range 2 {
			if r := ticktest.Run(t, d); r.Failed > 0 || len(r.Parked) > 0 {
				t.Errorf("%+v, parked %v", r.Runs, r.Parked)
			}
		}
		if r := ticktest.LastRun(t, d, "job"); r.State != store.Succeeded {
			t.Errorf("%s: %s", r.State, r.Error)
		}
	})
}

// A back-off that doubles beyond what a duration holds would be negative, and the step tried again at once.
func TestBackoffOfCenturiesIsBounded(t *testing.T) {
	const year = 365 * 24 * time.Hour
	wait, limit := store.Duration(90*year), store.Duration(290*year)
	for attempt := 1; attempt <= 4; attempt++ {
		if got := decide.Backoff(store.Retry{Backoff: &wait, MaxBackoff: &limit}, attempt); got < 90*year || got > 100*year {
			t.Errorf("attempt %d: %s", attempt, got)
		}
	}
}

// A step that is tried without a bound, and without a back-off, waits a second: it would keep its pass busy otherwise.
func TestTriesWithoutABoundWaitASecond(t *testing.T) {
	for attempts, want := range map[store.Attempts]time.Duration{0: time.Second, 5: 0} {
		j := store.Job{Name: "job", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")},
			Retry: store.Retry{Attempts: &attempts, Backoff: new(store.Duration(0)), Jitter: new(0)}}
		j.Normalize()
		end := decide.AfterFailure(&store.Task{Job: j, Run: store.Run{Step: 1, Attempt: 1}}, &j.Steps[0], true, nil)
		if !end.Retry || end.Backoff != want {
			t.Errorf("%d attempts: %+v, want a retry after %s", attempts, end, want)
		}
	}
}
