package model

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// randomPolicy returns policies that do not contradict each other.
func randomPolicy(rng *rand.Rand, start time.Time) store.Job {
	j := store.Job{Overlap: pick(rng, "wait", "wait-all", "skip", "allow", "replace"), Missed: pick(rng, "latest", "all", "skip")}
	if tag := pick(rng, "", "red", "blue"); tag != "" {
		j.Tags = []string{tag}
	}
	if limit := 1 + rng.IntN(6); j.Missed == "all" {
		j.MissedLimit = limit
	}
	if j.Overlap == "allow" {
		j.MaxRunning = 1 + rng.IntN(3)
	}
	if rng.IntN(4) == 0 {
		j.MissedWithin = store.Duration(time.Duration(1+rng.IntN(300)) * time.Minute)
	}
	if rng.IntN(3) == 0 {
		if grace := time.Duration(1+rng.IntN(100)) * time.Minute; j.Missed == "skip" {
			j.MissedGrace = store.Duration(grace)
		}
	}
	if rng.IntN(5) == 0 {
		j.MaxRuns = int64(1 + rng.IntN(30))
	}
	if rng.IntN(5) == 0 {
		j.NotBefore = start.Add(time.Duration(1+rng.IntN(20*1440)) * time.Minute)
		if rng.IntN(2) == 0 {
			j.Start, j.StartZone = "at "+j.NotBefore.Format("2006-01-02T15:04:05"), "UTC"
		}
	}
	if rng.IntN(5) == 0 {
		j.NotAfter = later(start, j.NotBefore).Add(time.Duration(rng.IntN(40*1440)) * time.Minute)
	}
	if rng.IntN(4) == 0 {
		j.Jitter = store.Duration(time.Duration(1+rng.IntN(40)) * time.Minute)
	}
	j.Disabled, j.MaxDeliveries, j.OnStartup = rng.IntN(12) == 0, 1+rng.IntN(3), rng.IntN(6) == 0
	none := 0
	attempts, backoff := store.Attempts(1), store.Duration(time.Duration(1+rng.IntN(30))*time.Minute)
	if rng.IntN(3) == 0 {
		attempts = store.Attempts(rng.IntN(4)) // 0 is until-next
	}
	j.Retry = store.Retry{Attempts: &attempts, Backoff: &backoff, Jitter: &none}
	// Runs of one job that a pass executes side by side end in any order. So no pause may depend on that order.
	if j.Overlap != "allow" && attempts != 0 && rng.IntN(4) == 0 {
		j.OnError = "pause"
	} else if j.Overlap != "allow" && attempts != 0 && rng.IntN(4) == 0 {
		j.PauseAfterFailures = 1 + rng.IntN(3)
	}
	j.Normalize()
	return j
}

// AsWritten returns the policy as a person writes it down. With a start schedule, a decision sets not_before.
func AsWritten(j store.Job) store.Job {
	if j.Start != "" {
		j.NotBefore = time.Time{}
	}
	return j
}

// withoutStart is for a job that might lose all of its schedules: a start schedule alone would park it.
func withoutStart(j store.Job) store.Job {
	j.Start, j.StartZone = "", ""
	return j
}

func pick(rng *rand.Rand, list ...string) string { return list[rng.IntN(len(list))] }

func policyText(j *store.Job) string {
	return fmt.Sprintf("overlap %s %d, missed %s %d within %s grace %s, max_runs %d, %s%s..%s, jitter %s, disabled %t, attempts %d, max_deliveries %d, on_startup %t, on_error %s %d, tags %s",
		j.Overlap, j.MaxRunning, j.Missed, j.MissedLimit, j.MissedWithin, j.MissedGrace, j.MaxRuns, j.Start, j.NotBefore.Format(time.DateTime),
		j.NotAfter.Format(time.DateTime), j.Jitter, j.Disabled, *j.Retry.Attempts, j.MaxDeliveries, j.OnStartup, j.OnError, j.PauseAfterFailures, j.Tags)
}

// policies is the part of a job's definition whose change makes a new plan, in a form that can be compared.
type policies struct {
	overlap, missed, onError, tags                  string
	maxRunning, limit, attempts, streak, deliveries int
	within, grace, jitter, backoff                  store.Duration
	cycles, notBefore, notAfter                     int64
	disabled, startup                               bool
}

func planInput(j *store.Job) (p policies) {
	p = policies{j.Overlap, j.Missed, j.OnError, strings.Join(j.Tags, ","), j.MaxRunning, j.MissedLimit, 0, j.PauseAfterFailures, j.MaxDeliveries, j.MissedWithin, j.MissedGrace, j.Jitter, 0,
		j.MaxRuns, j.NotBefore.UnixMicro(), j.NotAfter.UnixMicro(), j.Disabled, j.OnStartup}
	if j.Retry.Attempts != nil { // else no decision has been made yet
		p.attempts, p.backoff = int(*j.Retry.Attempts), *j.Retry.Backoff
	}
	return p
}

// SamePolicies reports whether two definitions have the same input for the plan.
func SamePolicies(a, b *store.Job) bool { return planInput(a) == planInput(b) }

// sameTimes reports whether two definitions with the same rules have the same nominal times, held by the same pauses.
func sameTimes(a, b *store.Job) bool {
	of := func(j *store.Job) policies {
		all := planInput(j)
		return policies{disabled: all.disabled, notBefore: all.notBefore, notAfter: all.notAfter, cycles: all.cycles, tags: all.tags}
	}
	return of(a) == of(b)
}

// Backoff returns how long to wait after a failed attempt: never less than after the first one.
func Backoff(r store.Retry, attempt int) time.Duration {
	first := time.Duration(*r.Backoff)
	return max(first, min(first<<min(attempt-1, 16), time.Duration(*r.MaxBackoff)))
}

// chance returns a number below n. It is always the same for an attempt of an occurrence of a job.
func chance(seed uint64, occurrence string, attempt, n int) int {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", seed, occurrence, attempt)
	return int(h.Sum64() >> 8 % uint64(n))
}

// duration returns how long a worker takes for a run.
func (j *Job) duration(occurrence string) time.Duration {
	switch chance(j.Seed, occurrence, 1, 4) {
	case 0:
		return time.Duration(chance(j.Seed, occurrence, 2, 36*3600)) * time.Second
	case 1:
		return time.Duration(chance(j.Seed, occurrence, 2, 3*3600)) * time.Second
	}
	return time.Duration(chance(j.Seed, occurrence, 2, 600)) * time.Second
}

// Vanishes reports whether the worker that gets a delivery never reports again.
func (j *Job) Vanishes(h Hold) bool { return chance(j.Seed, h.Occurrence, 1000+h.Fence, 6) == 0 }

// Lease returns the time by which a worker that takes a run has to report. A worker that does not
// vanish always reports in time.
func (j *Job) Lease(now time.Time, h Hold) time.Time {
	if j.Vanishes(h) {
		return now.Add(90 * time.Minute)
	}
	return now.AddDate(10, 0, 0)
}

// Succeeds reports whether an attempt of a run succeeds.
func (j *Job) Succeeds(occurrence string, attempt int) bool {
	return chance(j.Seed, occurrence, 100+attempt, 100) >= j.Fails
}

func later(x, y time.Time) time.Time {
	if y.After(x) {
		return y
	}
	return x
}

func earlier(x, y time.Time) time.Time {
	if y.Before(x) {
		return y
	}
	return x
}
