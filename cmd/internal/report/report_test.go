package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                     "plain",
		"two\nlines\tand\r\nmore\n": "two lines and more",
		"red \x1b[31m alert\a":      `red \x1b[31m alert\a`,
		"not utf-8 \xff":            `not utf-8 \xff`,
		"right to left \u202e":      `right to left \u202e`,
		"Zürich …":                  "Zürich …",
	} {
		if got := Line(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestTablesStayOnTheirLines: a name or an error text that somebody else wrote can neither break a table nor control
// the terminal.
func TestTablesStayOnTheirLines(t *testing.T) {
	hostile := "x\ny\x1b]0;title\a\tz"
	var out bytes.Buffer
	run := store.Run{ID: "1", Job: hostile, Error: hostile}
	if err := Runs(&out, []store.Run{run}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := Jobs(&out, []store.JobStatus{{Job: store.Job{Name: hostile}}}); err != nil {
		t.Fatal(err)
	}
	if err := Job(&out, JobDetail{JobStatus: store.JobStatus{Job: store.Job{Name: hostile}, LastError: hostile}}); err != nil {
		t.Fatal(err)
	}
	if err := Schedules(&out, []store.ScheduleStatus{{Schedule: store.Schedule{Name: hostile, Rule: "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY"}}}); err != nil {
		t.Fatal(err)
	}
	if err := Changes(&out, Applied{Changes: []store.Change{{Kind: "job", Subject: hostile, Action: "change",
		Fields: []store.FieldChange{{Field: "description", After: hostile}}}}}); err != nil {
		t.Fatal(err)
	}
	if err := Tick(&out, tick.Report{Started: 1, Runs: []tick.Ended{{Job: hostile, Error: hostile}}}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\a\t") || strings.Contains(out.String(), "\ny") {
		t.Errorf("%q", out.String())
	}
}

// TestTickCountsTheRunsThatItDoesNotName: --quiet counts those of them that failed.
func TestTickCountsTheRunsThatItDoesNotName(t *testing.T) {
	r := tick.Report{Started: 9, Succeeded: 6, Failed: 3, MoreRuns: 7, Runs: []tick.Ended{{State: store.Succeeded}, {State: store.Failed}}}
	for want, r := range map[string]tick.Report{"\nand 7 more runs: dbjobs run list\n": r, "\nand 2 more runs: dbjobs run list\n": Wrong(r)} {
		var out bytes.Buffer
		if err := Tick(&out, r); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: not %q: %q", err, want, out.String())
		}
	}
}

// TestTickCountsRunsToBeTriedAgain: the line is right for one of them, and for several.
func TestTickCountsRunsToBeTriedAgain(t *testing.T) {
	for waiting, want := range map[int]string{1: ", 1 to be tried again", 2: ", 2 to be tried again"} {
		if got := Summary(tick.Report{Started: waiting, Waiting: waiting}); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q at its end", got, want)
		}
	}
}

func TestAnEmptyListIsNoNull(t *testing.T) {
	var out bytes.Buffer
	if err := JSON(&out, List[store.Run](nil)); err != nil || out.String() != "[]\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestAPassThatDidNothingSaysNothing(t *testing.T) {
	var out bytes.Buffer
	if err := Tick(&out, tick.Report{Name: "tick"}); err != nil || out.Len() > 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// The additional texts of an engine's error are shown with the attempt, once.
func TestAnAttemptIsToldWithWhatTheEngineSays(t *testing.T) {
	var out bytes.Buffer
	err := Run(&out, store.RunDetail{Tries: []store.Attempt{{StepName: "load", Error: "duplicate key (SQLSTATE 23505)", Code: "23505", Line: 3,
		Detail: "Key (n)=(1) already exists.", Hint: "try\nanother"}}})
	if want := "duplicate key (SQLSTATE 23505), line 3; detail: Key (n)=(1) already exists.; hint: try another"; err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("%v: %q, want %q", err, out.String(), want)
	}
}

// A worker in SQL that ends a run as failed has reported its end, also if it gives no error.
func TestAFailureWithoutAnErrorIsToldByItsCause(t *testing.T) {
	var out bytes.Buffer
	list := []store.FailedAttempt{{Job: "a", RunNumber: 1, RunState: store.Failed}, {Job: "b", RunNumber: 1, RunState: store.Lost}}
	if err := Failures(&out, list); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a#1", "a worker reported the failure without an error", "b#1", "the process that executed it did not report its end"} {
		_, rest, found := strings.Cut(out.String(), want)
		if !found {
			t.Fatalf("no %q, in this order: %s", want, out.String())
		}
		out.Reset()
		out.WriteString(rest)
	}
}

// The clock of the database may be set back while a run executes. Then nobody knows how long the run took.
func TestADurationIsNeverNegative(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	for end, want := range map[time.Time]string{start.Add(1500 * time.Millisecond): "1.5s", start: "0s", start.Add(-time.Minute): "", {}: ""} {
		if got := between(start, end); got != want {
			t.Errorf("from %s to %s: %q, want %q", start, end, got, want)
		}
	}
}

// The output of an attempt is below the table, on its own lines, and cannot control the terminal.
func TestAnOutputIsToldBeneathTheTable(t *testing.T) {
	var out bytes.Buffer
	err := Run(&out, store.RunDetail{Tries: []store.Attempt{{StepName: "load", Attempt: 1, Output: "one\r\n\ttwo\x1b[31m\n\n"}, {StepName: "sum", Attempt: 1}}})
	if want := "\noutput of load, try 1:\n  one\n      two\\x1b[31m\n"; err != nil || !strings.HasSuffix(out.String(), want) {
		t.Errorf("%v: %q, want at its end %q", err, out.String(), want)
	}
}

// TestPolicies: every policy that differs from its default is shown, in a fixed order.
func TestPolicies(t *testing.T) {
	at := time.Date(2026, 12, 1, 17, 30, 0, 0, time.UTC)
	for want, j := range map[string]store.Job{
		"overlap wait, missed latest": {},
		"queue slow, priority -3, group etl, overlap allow, max_running 4, missed all, missed_limit 7, missed_within 36h, attempts until-next, " +
			"max_deliveries 1, pause_after_failures 3, timeout 1h, jitter 1m30s, max_runs 1000, on.failed tell, on.lost ann/pager, after others, on_startup true, start D 17:30 Asia/Tokyo, " +
			"not_before 2026-12-01T17:30:00Z, not_after 2026-12-01T17:30:00Z, keep 10 runs, 30d, remove_when_done true": {
			Owner: "ann", Description: "all", Disabled: true, Tags: []string{"eu"}, Queue: "slow", Priority: -3, Group: "etl", Overlap: "allow", MaxRunning: 4,
			Missed: "all", MissedLimit: 7, MissedWithin: store.Duration(36 * time.Hour),
			Retry:         store.Retry{Attempts: new(store.Attempts(0)), Backoff: new(store.Duration(time.Minute)), MaxBackoff: new(store.Duration(time.Minute)), Jitter: new(0)},
			MaxDeliveries: 1, PauseAfterFailures: 3, Timeout: store.Duration(time.Hour), Jitter: store.Duration(90 * time.Second), MaxRuns: 1000,
			NotBefore: at, NotAfter: at, Start: "D 17:30", StartZone: "Asia/Tokyo", RepeatAfter: store.Duration(time.Minute), OnStartup: true, After: []store.After{{Job: "others"}},
			Keep: store.Keep{Runs: 10, Age: store.Duration(30 * 24 * time.Hour)}, RemoveDone: true, On: store.Hooks{Failed: "tell", Lost: "ann/pager"}},
		"overlap replace, missed skip, missed_grace 5m, on_error pause, keep 1000 runs, 7d": {
			Overlap: "replace", Missed: "skip", MissedGrace: store.Duration(5 * time.Minute), OnError: "pause", Keep: store.Keep{Age: store.Duration(7 * 24 * time.Hour)}},
	} {
		if got := policies(j); got != want {
			t.Errorf("told\n%s\nwant\n%s", got, want)
		}
	}
}
