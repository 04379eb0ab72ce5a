package store

import (
	"fmt"
	"math"
	"time"
)

// Keep says how much history a job keeps. A run beyond either bound is deleted.
type Keep struct {
	Runs int      `json:"runs,omitempty"` // default 1000
	Age  Duration `json:"age,omitempty"`  // default 90d
}

// Heartbeat is where an outside service learns that a run begins and how it ends: one URL, or one for each signal.
// The package of the executors has the details.
type Heartbeat struct {
	URL     string `json:"url,omitempty"`
	Start   string `json:"start,omitempty"`
	Success string `json:"success,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// Job is a job's definition. The row and the JSON have the same struct. The zero value of a field means its default,
// which Normalize fills in.
type Job struct {
	ID                 int64     `json:"id,omitempty"`
	Owner              string    `json:"owner"` // default: the login of the database
	Name               string    `json:"name"`
	Description        string    `json:"description,omitempty"`
	Disabled           bool      `json:"disabled,omitempty"`
	Schedules          []string  `json:"schedules,omitempty"` // names of shared schedules
	Own                *Schedule `json:"own,omitempty"`       // the job's own rule (rule: in a manifest)
	Tags               []string  `json:"tags,omitempty"`
	Queue              string    `json:"queue"` // default tick
	Priority           int       `json:"priority,omitempty"`
	Group              string    `json:"group,omitempty"`
	Overlap            string    `json:"overlap"` // wait (default), wait-all, skip, allow, replace
	MaxRunning         int       `json:"max_running,omitempty"`
	Missed             string    `json:"missed"` // latest (default), all, skip
	MissedLimit        int       `json:"missed_limit,omitempty"`
	MissedWithin       Duration  `json:"missed_within,omitempty"`
	MissedGrace        Duration  `json:"missed_grace,omitempty"`
	Retry              Retry     `json:"retry,omitzero"`
	MaxDeliveries      int       `json:"max_deliveries,omitempty"`
	OnError            string    `json:"on_error,omitempty"` // continue (default), pause
	PauseAfterFailures int       `json:"pause_after_failures,omitempty"`
	Timeout            Duration  `json:"timeout,omitempty"`
	Jitter             Duration  `json:"jitter,omitempty"`
	MaxRuns            int64     `json:"max_runs,omitempty"`
	NotBefore          time.Time `json:"not_before,omitzero"`
	NotAfter           time.Time `json:"not_after,omitzero"`
	Start              string    `json:"start,omitempty"`        // start schedule, resolved to not_before at creation
	StartZone          string    `json:"start_zone,omitempty"`   // of its wall times; default UTC
	RepeatAfter        Duration  `json:"repeat_after,omitempty"` // instead of a schedule: the time from the end of a run to the next run
	OnStartup          bool      `json:"on_startup,omitempty"`
	After              []After   `json:"after,omitempty"` // the jobs after which it runs
	Keep               Keep      `json:"keep,omitzero"`
	RemoveDone         bool      `json:"remove_when_done,omitempty"`
	On                 Hooks     `json:"on,omitzero"`
	Heartbeat          Heartbeat `json:"heartbeat,omitzero"`
	Steps              []Step    `json:"steps"`
	Manifest           string    `json:"manifest,omitempty"`
	CreatedAt          time.Time `json:"created_at,omitzero"`

	lostLink   bool // one of its schedules was deleted by plain SQL
	staleTimes bool // a schedule, a rule or a link of the job has changed since its plan was made
	changedAt  time.Time
	removedAt  time.Time
	fault      string // what in its row cannot be read
}

// Removed returns when the job was removed; since then its definition is only history. Zero: the job exists.
func (j *Job) Removed() time.Time { return j.removedAt }

// Fault says what in the rows of the job cannot be read; the fields that it names have their defaults.
func (j *Job) Fault() string { return j.fault }

// LostSchedule reports whether plain SQL has deleted one of the job's schedules.
func (j *Job) LostSchedule() bool { return j.lostLink }

// nameOr returns the full name of a job in the ledger, or its id where plain SQL has deleted its row.
func (j *Job) nameOr(id int64) string {
	if j.Name == "" {
		return fmt.Sprintf("job %d", id)
	}
	return j.FullName()
}

// UsedUp reports whether the job is finished with this number of runs, because of MaxRuns.
func (j *Job) UsedUp(made int64) bool { return j.MaxRuns > 0 && made >= j.MaxRuns }

// policies lists all policies, in the order of the columns and of an exported manifest.
var policies = []Policy{
	{Key: "description", column: "description", text: short, field: func(j *Job) any { return &j.Description }},
	{Key: "owner", Shared: true, Help: "login that the job belongs to (yours)",
		text: nameOrNone, field: func(j *Job) any { return &j.Owner }},
	{Key: "disabled", Help: "create the job disabled: its schedule makes no runs",
		column: "enabled", field: func(j *Job) any { return &j.Disabled }, stored: func(j *Job) any { return not{&j.Disabled} }},
	{Key: "tags", Shared: true, Flag: "tag", Help: "tag; may be given several times",
		column: "tags", text: aName, field: func(j *Job) any { return &j.Tags }},
	{Key: "queue", Shared: true, Default: "tick", Help: "queue of its runs: tick, or one that workers serve ({default})",
		column: "queue", text: aName, field: func(j *Job) any { return &j.Queue }},
	{Key: "priority", Shared: true, Least: math.MinInt32, Help: "within a queue, runs with a higher number are taken first (0)",
		column: "priority", field: func(j *Job) any { return &j.Priority }},
	{Key: "group", Shared: true, Help: "group of jobs that share a cap on runs at the same time",
		column: "group_name", null: true, text: nameOrNone, field: func(j *Job) any { return &j.Group }},
	{Key: "overlap", Shared: true, Default: OverlapWait, Allowed: []string{OverlapWait, OverlapWaitAll, OverlapSkip, OverlapAllow, OverlapReplace}, Help: "if a run is due while another is active: {allowed} ({default})",
		column: "overlap", field: func(j *Job) any { return &j.Overlap }},
	{Key: "max_running", Shared: true, Default: 1, Least: 1, Help: "with overlap allow: most runs at the same time",
		column: "max_running", field: func(j *Job) any { return &j.MaxRunning }},
	{Key: "missed", Shared: true, Default: MissedLatest, Allowed: []string{MissedLatest, MissedAll, MissedSkip}, Help: "which missed nominal times still run: {allowed} ({default})",
		column: "missed", field: func(j *Job) any { return &j.Missed }},
	{Key: "missed_limit", Shared: true, Default: usualLimit, Least: 1, Help: "with missed all: most nominal times that still run, the newest ({default})",
		column: "missed_limit", field: func(j *Job) any { return &j.MissedLimit }},
	{Key: "missed_within", Shared: true, Help: "missed nominal times older than this do not run (no limit)",
		column: "missed_within_ms", null: true, field: func(j *Job) any { return &j.MissedWithin }},
	{Key: "missed_grace", Shared: true, Default: usualMissedGrace, Least: 1, Help: "with missed skip: how late the newest nominal time may run ({default})",
		column: "missed_grace_ms", field: func(j *Job) any { return &j.MissedGrace }},
	{Key: "retry.attempts", Shared: true, Default: Attempts(1), Flag: "attempts", Help: "attempts of a step, or until-next ({default})",
		column: "retry_attempts", field: func(j *Job) any { return &j.Retry.Attempts }},
	{Key: "retry.backoff", Shared: true, Default: Duration(10 * time.Second), Flag: "backoff", Help: "wait before the second attempt; doubles with each ({default})",
		column: "retry_backoff_ms", field: func(j *Job) any { return &j.Retry.Backoff }},
	{Key: "retry.max_backoff", Shared: true, Default: usualMaxBackoff, Flag: "max-backoff", Help: "longest wait between attempts ({default})",
		column: "retry_max_backoff_ms", field: func(j *Job) any { return &j.Retry.MaxBackoff }},
	{Key: "retry.jitter", Shared: true, Default: 10, Most: 100, // per cent
		column: "retry_jitter", field: func(j *Job) any { return &j.Retry.Jitter }},
	{Key: "max_deliveries", Shared: true, Default: 3, Least: 1,
		Help:   "how often a step may be started and never report back before its run is lost ({default})",
		column: "max_deliveries", field: func(j *Job) any { return &j.MaxDeliveries }},
	{Key: "on_error", Shared: true, Default: OnErrorContinue, Allowed: []string{OnErrorContinue, OnErrorPause}, Help: "after a failed run: {allowed} ({default})",
		column: "on_error", field: func(j *Job) any { return &j.OnError }},
	{Key: "pause_after_failures", Shared: true, Help: "failed runs in a row that pause the job (none)",
		column: "pause_after_failures", null: true, field: func(j *Job) any { return &j.PauseAfterFailures }},
	{Key: "timeout", Shared: true, Help: "longest time of a run, with all steps and waits (none)",
		column: "timeout_ms", null: true, field: func(j *Job) any { return &j.Timeout }},
	{Key: "jitter", Shared: true, Help: "start up to this much later, to spread load (none)",
		column: "jitter_ms", field: func(j *Job) any { return &j.Jitter }},
	{Key: "max_runs", Least: 1, Help: "the job is finished after this number of runs",
		column: "max_runs", null: true, field: func(j *Job) any { return &j.MaxRuns }},
	{Key: "not_before", Help: "no nominal times before this instant",
		column: "not_before", field: func(j *Job) any { return &j.NotBefore }},
	{Key: "not_after", Help: "no nominal times after this instant",
		column: "not_after", field: func(j *Job) any { return &j.NotAfter }},
	{Key: "start", Help: "rule whose first time after the creation of the job becomes not-before: D 17:30, at 2026-12-01T17:30:00, ...",
		column: "start_rule", null: true, field: func(j *Job) any { return &j.Start }},
	{Key: "start_zone", Help: "time zone of --start (that of the rule)",
		column: "start_zone", null: true, field: func(j *Job) any { return &j.StartZone }},
	{Key: "repeat_after", Least: 1, Help: "instead of a rule: run this long after the end of the last run",
		column: "repeat_after_ms", null: true, field: func(j *Job) any { return &j.RepeatAfter }},
	{Key: "on_startup", Help: "run once for each start-up that a tick reports",
		column: "on_startup", field: func(j *Job) any { return &j.OnStartup }},
	{Key: "after", Help: "run after each success of this job; {job: NAME, on: failure} and on: end name other ends",
		field: func(j *Job) any { return &j.After }},
	{Key: "keep.runs", Shared: true, Default: 1000, Least: 1, Help: "how many runs to keep, the newest ({default})",
		column: "keep_runs", field: func(j *Job) any { return &j.Keep.Runs }},
	{Key: "keep.age", Shared: true, Default: Duration(90 * 24 * time.Hour), Least: 1, Help: "delete runs older than this ({default})",
		column: "keep_age_ms", field: func(j *Job) any { return &j.Keep.Age }},
	{Key: "remove_when_done", Help: "remove the job when it has no further run and the last one has succeeded",
		column: "remove_when_done", field: func(j *Job) any { return &j.RemoveDone }},
	{Key: "on.failed", Shared: true, Help: "job to run once for each run that failed",
		column: "on_failed", null: true, text: aHook, field: func(j *Job) any { return &j.On.Failed }},
	{Key: "on.recovered", Shared: true, Help: "job to run once for the first run that succeeded after a failed one",
		column: "on_recovered", null: true, text: aHook, field: func(j *Job) any { return &j.On.Recovered }},
	{Key: "on.missed", Shared: true, Help: "job to run once for nominal times that did not run because no pass came in time",
		column: "on_missed", null: true, text: aHook, field: func(j *Job) any { return &j.On.Missed }},
	{Key: "on.late", Shared: true, Help: "job to run once for a run that was made late (see tick --late)",
		column: "on_late", null: true, text: aHook, field: func(j *Job) any { return &j.On.Late }},
	{Key: "on.lost", Shared: true, Help: "job to run once for each run that never reported back (that of --on-failed)",
		column: "on_lost", null: true, text: aHook, field: func(j *Job) any { return &j.On.Lost }},
	{Key: "on.parked", Shared: true, Help: "job to run once for a definition that cannot be used",
		column: "on_parked", null: true, text: aHook, field: func(j *Job) any { return &j.On.Parked }},
	{Key: "on.paused", Shared: true, Help: "job to run once for a pause after failed runs",
		column: "on_paused", null: true, text: aHook, field: func(j *Job) any { return &j.On.Paused }},
	{Key: "heartbeat.url", Short: true, Shared: true, Flag: "heartbeat", Help: "URL of a service that learns when a run begins and ends: URL/start, URL, URL/fail",
		column: "heartbeat_url", null: true, field: func(j *Job) any { return &j.Heartbeat.URL }},
	{Key: "heartbeat.start", Shared: true,
		column: "heartbeat_start", null: true, field: func(j *Job) any { return &j.Heartbeat.Start }},
	{Key: "heartbeat.success", Shared: true,
		column: "heartbeat_success", null: true, field: func(j *Job) any { return &j.Heartbeat.Success }},
	{Key: "heartbeat.failure", Shared: true,
		column: "heartbeat_failure", null: true, field: func(j *Job) any { return &j.Heartbeat.Failure }},
}

// planInput names the fields of jobs.plan_input, in the order of its expression on every engine. The text
// itself has no names: they would add 400 bytes twice to each row, and every pass reads the text of every
// due job. If you change the expression, change this list. A new field goes to the end. It makes every
// job stale, so the first pass after the migration decides for all jobs.
var planInput = []string{
	"enabled", "removed_at", "not_before", "not_after", "jitter_ms", "repeat_after_ms", "max_runs", "overlap", "max_running",
	"group_name", "queue", "priority", "missed", "missed_limit", "missed_within_ms", "missed_grace_ms", "retry_attempts",
	"retry_backoff_ms", "retry_max_backoff_ms", "retry_jitter", "max_deliveries", "on_error", "pause_after_failures",
	"timeout_ms", "on_startup", "keep_runs", "keep_age_ms", "remove_when_done", "start_zone", "start_rule",
	"tags", "owner", "on_failed", "on_recovered", "on_missed", "on_late", "on_lost", "on_parked", "on_paused",
}
