package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Jobs prints the table of job list.
func Jobs(w io.Writer, jobs []store.JobStatus) error {
	t := newTable(w, "JOB", "OWNER", "STATE", "NEXT RUN", "OVERDUE", "LAST RUN", "RESULT", "FAILED IN A ROW", "SCHEDULE")
	for _, j := range jobs {
		t.row(j.Name, j.Owner, jobState(j), nextRun(j), length(j.Overdue), Instant(j.LastFinished), j.LastState, positive(j.Streak), When(j.Job))
	}
	return t.flush()
}

// jobState returns the state of a job in a list. For a paused job, it also says when the pause ends. For a waiting
// job, it also says how its last runs ended.
func jobState(j store.JobStatus) string {
	if j.State == store.JobPaused && !j.Paused.Until.IsZero() {
		return j.State + " until " + Instant(j.Paused.Until)
	}
	return failingState(&j)
}

// failingState returns the state of a job, or failing, if it waits and fails as JobStatus.Failing says.
func failingState(j *store.JobStatus) string {
	if j.Failing() && (j.State == store.JobSleeping || j.State == store.JobEnabled) {
		return store.JobFailing
	}
	return j.State
}

// notPlanned stands in place of a next run that was planned from an older definition.
const notPlanned = "not planned yet"

func nextRun(j store.JobStatus) string {
	switch {
	case noNextRun(&j) != "":
		return ""
	case j.Stale:
		return notPlanned
	}
	return Instant(j.NextRun)
}

// noNextRun says why a job has no next run, however often ticks come; empty, if it has one or gets one when it is planned.
func noNextRun(j *store.JobStatus) string {
	switch {
	case j.Disabled:
		return "none while disabled"
	case j.NextRun.IsZero() && (j.Paused != nil || len(j.SchedulePauses) > 0 && !j.Stale):
		return "none while paused"
	case j.Parked != "" && !j.Stale:
		return "none while parked"
	}
	return ""
}

// When says in a few words when a job runs.
func When(j store.Job) string {
	parts := append([]string{}, j.Schedules...)
	if j.Own != nil {
		parts = append(parts, ruleLine(*j.Own))
	}
	if len(j.After) > 0 {
		parts = append(parts, "after "+store.AfterText(j.After))
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

// JobDetail holds the facts of job show: the job, and its gaps, the newest first.
type JobDetail struct {
	store.JobStatus
	NextTimes []time.Time    `json:"next_times"` // the next nominal times, not decided yet
	Lateness  store.Duration `json:"lateness"`   // of the last run, when it was first delivered
	// Gaps are the latest stretches of times that did not run, the newest first.
	Gaps []tick.MissedTimes `json:"gaps"`
	// Holidays are the next times that calendars remove or move, within three months.
	Holidays []rules.Holiday `json:"holidays,omitempty"`
	// Faulty says that the definition, as it is now, cannot be planned.
	Faulty bool `json:"-"`
}

// Job prints the facts of job show.
func Job(w io.Writer, j JobDetail) error {
	f := newFacts(w)
	f.add("job", j.Name)
	f.add("owner", j.Owner)
	f.add("description", j.Description)
	f.add("state", failingState(&j.JobStatus))
	f.add("parked because", j.Parked)
	if j.Paused != nil {
		f.add("paused", Paused(*j.Paused))
	}
	f.add("schedule", When(j.Job))
	none := noNextRun(&j.JobStatus)
	switch {
	case none != "":
		f.add("next run", none)
	case j.Stale && j.Faulty:
		f.add("next run", "none: the next dbjobs tick parks the job")
	case j.Stale:
		f.add("next run", notPlanned+": the next dbjobs tick plans it")
	default:
		f.add("next run", Instant(j.NextRun))
	}
	f.add("overdue", length(j.Overdue))
	f.add("next times", instants(j.NextTimes))
	for _, k := range j.Skips {
		f.add("skipped", Skipped(k))
	}
	for i := range j.Holidays {
		f.add("holiday", j.Holidays[i].Text())
	}
	f.add("last run", Instant(j.LastFinished))
	f.add("started late", length(j.Lateness))
	f.add("last result", j.LastState)
	f.add("last error", j.LastError)
	f.add("last success", Instant(j.LastSuccess))
	f.add("failed in a row", positive(j.Streak))
	f.add("ends of runs", count(j.Cycles))
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
	t := newTable(w, "DID NOT RUN FROM", "TO", "TIMES", "REASON")
	for i := range j.Gaps {
		n, first, last := missed(&j.Gaps[i])
		t.row(first, last, n, j.Gaps[i].Reason)
	}
	return t.flush()
}

// positive returns a number, or "" for zero.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return count(int64(n))
}

// length is a duration to the second, or "" if it is shorter than a second.
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

// Paused returns since when a pause has been in force. If something else than the job itself was paused, it also
// names that.
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

// policies returns the policies that differ from their default, and always overlap and missed. The policies that
// start a job come after the others, and the policies that limit it come last.
func policies(j store.Job) string {
	var usual store.Job
	usual.Normalize()
	j.Normalize()
	late := []string{"after", "on_startup", "start", "not_before", "not_after", "keep.runs", "remove_when_done"}
	shown := map[string]string{}
	var parts []string
	for _, p := range store.Policies() {
		value := policy(p, &j)
		if value == policy(p, &usual) && p.Key != "overlap" && p.Key != "missed" {
			value = ""
		}
		if slices.Contains(late, p.Key) {
			shown[p.Key] = value
		} else if value != "" {
			parts = append(parts, value)
		}
	}
	for _, key := range late {
		if shown[key] != "" {
			parts = append(parts, shown[key])
		}
	}
	return strings.Join(parts, ", ")
}

// policy returns the name and value of a policy. It returns "" for a policy that has a line of its own in job
// show, or that is part of another one.
func policy(p store.Policy, j *store.Job) string {
	switch p.Key {
	case "description", "owner", "disabled", "tags", "start_zone", "repeat_after", "retry.backoff", "retry.max_backoff", "retry.jitter", "keep.age":
		return ""
	case "start":
		return p.Key + " " + strings.ReplaceAll(j.Start, "\n", " ") + " " + j.StartZone
	case "keep.runs":
		return fmt.Sprintf("keep %d runs, %s", j.Keep.Runs, j.Keep.Age)
	}
	name := strings.TrimPrefix(p.Key, "retry.")
	switch v := p.Of(j).(type) {
	case *string:
		return name + " " + *v
	case *int:
		return fmt.Sprintf("%s %d", name, *v)
	case *int64:
		return fmt.Sprintf("%s %d", name, *v)
	case *bool:
		return fmt.Sprintf("%s %t", name, *v)
	case *store.Duration:
		return fmt.Sprintf("%s %s", name, *v)
	case *time.Time:
		return name + " " + Instant(*v)
	case *[]store.After:
		return name + " " + store.AfterText(*v)
	case **store.Attempts:
		text, _ := (*v).MarshalText() // never fails
		return name + " " + string(text)
	}
	panic(fmt.Sprintf("report: policy %s is of no known type", p.Key))
}

// stepLine is a step on one line: its name, and what it does.
func stepLine(s store.Step) string {
	what := s.Executor
	if k := executor.KindOf(s.Executor); k != nil {
		what = cmp.Or(k.Line(s.Spec), what)
	}
	if r := []rune(what); len(r) > 100 {
		what = string(r[:99]) + "…"
	}
	return s.Name + ": " + what
}
