package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Jobs prints the table of job list.
func Jobs(w io.Writer, jobs []store.JobStatus) error {
	t := newTable(w, "JOB", "OWNER", "STATE", "NEXT RUN", "OVERDUE", "LAST RUN", "RESULT", "FAILED", "SCHEDULE")
	for _, j := range jobs {
		t.row(j.Name, j.Owner, j.State, nextRun(j), length(j.Overdue), Instant(j.LastFinished), j.LastState, positive(j.Streak), when(j.Job))
	}
	return t.flush()
}

// notPlanned stands in place of a next run that an older definition led to.
const notPlanned = "not planned yet"

func nextRun(j store.JobStatus) string {
	if j.Stale {
		return notPlanned
	}
	return Instant(j.NextRun)
}

// when says in few words when a job runs.
func when(j store.Job) string {
	parts := append([]string{}, j.Schedules...)
	if j.Own != nil {
		parts = append(parts, ruleLine(*j.Own))
	}
	if j.After != "" {
		parts = append(parts, "after "+j.After)
	}
	if j.RepeatAfter > 0 {
		parts = append(parts, j.RepeatAfter.String()+" after its end")
	}
	if j.OnStartup {
		parts = append(parts, "on start-up")
	}
	return strings.Join(parts, ", ")
}

func ruleLine(s store.Schedule) string {
	text := strings.ReplaceAll(s.Rule, "\n", " ")
	if s.Zone != "" && s.Zone != "UTC" && !strings.Contains(text, s.Zone) {
		text += " " + s.Zone
	}
	return text
}

// JobDetail is what job show tells: the job, and what was decided not to run, the newest first.
type JobDetail struct {
	store.JobStatus
	NextTimes []time.Time    `json:"next_times"` // nominal times that are to be decided
	Lateness  store.Duration `json:"lateness"`   // of the last run, when it was first delivered
	Gaps      []store.Gap    `json:"gaps"`
}

// Job prints what job show tells.
func Job(w io.Writer, j JobDetail) error {
	f := newFacts(w)
	f.add("job", j.Name)
	f.add("owner", j.Owner)
	f.add("description", j.Description)
	f.add("state", j.State)
	f.add("parked because", j.Parked)
	if j.Paused != nil {
		f.add("paused", Paused(*j.Paused))
	}
	f.add("schedule", when(j.Job))
	if j.Stale {
		f.add("next run", notPlanned+": the next dbjobs tick plans it")
	} else {
		f.add("next run", Instant(j.NextRun))
	}
	f.add("overdue", length(j.Overdue))
	f.add("next times", instants(j.NextTimes))
	f.add("last run", Instant(j.LastFinished))
	f.add("started late", length(j.Lateness))
	f.add("last result", j.LastState)
	f.add("last error", j.LastError)
	f.add("last success", Instant(j.LastSuccess))
	f.add("failed in a row", positive(j.Streak))
	f.add("ended runs", count(j.Cycles))
	f.add("open runs", fmt.Sprintf("%d (%d running)", j.RunsOpen, j.RunsRunning))
	f.add("policies", policies(j.Job))
	f.add("tags", strings.Join(j.Tags, ", "))
	f.add("manifest", j.Manifest)
	f.add("created", Instant(j.CreatedAt))
	for i, s := range j.Steps {
		f.add(fmt.Sprintf("step %d", i+1), stepLine(s))
	}
	if err := f.flush(); err != nil || len(j.Gaps) == 0 {
		return err
	}
	fmt.Fprintln(w)
	t := newTable(w, "DID NOT RUN AFTER", "THROUGH", "REASON")
	for _, g := range j.Gaps {
		t.row(Instant(g.From), Instant(g.Through), g.Reason)
	}
	return t.flush()
}

// positive is a number, or nothing where it is zero.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return count(int64(n))
}

// length is a length of time to the second; what is shorter is nothing.
func length(d store.Duration) string {
	if t := time.Duration(d).Truncate(time.Second); t > 0 {
		return store.Duration(t).String()
	}
	return ""
}

func instants(list []time.Time) string {
	parts := make([]string, len(list))
	for i, t := range list {
		parts[i] = Instant(t)
	}
	return strings.Join(parts, ", ")
}

// Paused says since when a pause holds, and what was paused where that is not the job itself.
func Paused(p store.Pause) string {
	text := "since " + Instant(p.Since)
	if p.Scope != store.ScopeJob {
		text = store.Subject{Scope: p.Scope, Name: p.Subject}.String() + " " + text
	}
	if !p.Until.IsZero() {
		text += ", until " + Instant(p.Until)
	}
	if p.By != "" {
		text += ", by " + p.By
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// policies are those that differ from their default.
func policies(j store.Job) string {
	var usual store.Job
	usual.Normalize()
	j.Normalize()
	var parts []string
	add := func(differs bool, name string, value any) {
		if differs {
			parts = append(parts, fmt.Sprintf("%s %v", name, value))
		}
	}
	add(j.Queue != usual.Queue, "queue", j.Queue)
	add(j.Priority != 0, "priority", j.Priority)
	add(j.Group != "", "group", j.Group)
	add(true, "overlap", j.Overlap)
	add(j.MaxRunning != usual.MaxRunning, "max_running", j.MaxRunning)
	add(true, "missed", j.Missed)
	add(j.MissedLimit != usual.MissedLimit, "missed_limit", j.MissedLimit)
	add(j.MissedWithin != usual.MissedWithin, "missed_within", j.MissedWithin)
	add(j.MissedGrace != usual.MissedGrace, "missed_grace", j.MissedGrace)
	add(j.Retry.Attempts != nil && (usual.Retry.Attempts == nil || *j.Retry.Attempts != *usual.Retry.Attempts), "attempts", attempts(j.Retry))
	add(j.MaxDeliveries != usual.MaxDeliveries, "max_deliveries", j.MaxDeliveries)
	add(j.OnError != usual.OnError, "on_error", j.OnError)
	add(j.PauseAfterFailures != usual.PauseAfterFailures, "pause_after_failures", j.PauseAfterFailures)
	add(j.Timeout != usual.Timeout, "timeout", j.Timeout)
	add(j.Jitter != usual.Jitter, "jitter", j.Jitter)
	add(j.MaxRuns > 0, "max_runs", j.MaxRuns)
	add(j.After != "", "after", j.After)
	add(j.OnStartup, "on_startup", j.OnStartup)
	add(j.Start != "", "start", strings.ReplaceAll(j.Start, "\n", " ")+" "+j.StartZone)
	add(!j.NotBefore.IsZero(), "not_before", Instant(j.NotBefore))
	add(!j.NotAfter.IsZero(), "not_after", Instant(j.NotAfter))
	add(j.Keep != usual.Keep, "keep", fmt.Sprintf("%d runs, %s", j.Keep.Runs, j.Keep.Age))
	add(j.RemoveDone, "remove_when_done", j.RemoveDone)
	return strings.Join(parts, ", ")
}

func attempts(r store.Retry) string {
	if r.Attempts == nil {
		return ""
	}
	text, _ := r.Attempts.MarshalText() // never fails
	return string(text)
}

// stepLine is a step in a line: its name, and what it does.
func stepLine(s store.Step) string {
	what := s.Executor
	var spec store.SQLSpec
	if s.Executor == "sql" && json.Unmarshal(s.Spec, &spec) == nil {
		var list []string
		for _, st := range spec.SQL {
			list = append(list, st.Text)
		}
		what = strings.Join(list, "; ")
		if spec.Atomic {
			what = "atomic " + what
		}
	}
	if r := []rune(what); len(r) > 100 {
		what = string(r[:99]) + "…"
	}
	return s.Name + ": " + what
}
