package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Duration is a length of time that reads and prints as Go writes it, with d for days of 24 hours: 90s, 1h30m, 30d.
// The database keeps whole milliseconds.
type Duration time.Duration

// ParseDuration reads 90s, 1h30m, 7d, 1.5h. It refuses negative lengths and anything below a millisecond but zero.
func ParseDuration(s string) (Duration, error) {
	rest, days := s, time.Duration(0)
	if head, tail, ok := strings.Cut(s, "d"); ok {
		var n int64
		if _, err := fmt.Sscanf(head+"\n", "%d\n", &n); err != nil || n < 0 || n > 36500 {
			return 0, fmt.Errorf("duration %q: want a number with unit, such as 90s, 1h30m or 30d", s)
		}
		days, rest = time.Duration(n)*24*time.Hour, tail
	}
	d := time.Duration(0)
	if rest != "" || days == 0 {
		var err error
		if d, err = time.ParseDuration(rest); err != nil {
			return 0, fmt.Errorf("duration %q: want a number with unit, such as 90s, 1h30m or 30d", s)
		}
	}
	d += days
	if d < 0 || (d > 0 && d < time.Millisecond) {
		return 0, fmt.Errorf("duration %q: want zero or at least 1ms", s)
	}
	return Duration(d), nil
}

// String is the shortest text that ParseDuration reads back.
func (d Duration) String() string {
	t, day := time.Duration(d), 24*time.Hour
	if t >= day && t%day == 0 {
		return fmt.Sprintf("%dd", t/day)
	}
	s := t.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText makes JSON and YAML hold the same text as the command line.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDuration.
func (d *Duration) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDuration(string(b))
	return err
}

func (d Duration) ms() int64 { return time.Duration(d).Milliseconds() }

// Schedule is a named recurrence set. The same struct is the row, the JSON and the entry of a manifest.
type Schedule struct {
	ID          int64     `json:"-" yaml:"-"`
	Name        string    `json:"name" yaml:"-"`
	Rule        string    `json:"rule" yaml:"rule"`                         // any form that package rules reads
	Zone        string    `json:"zone" yaml:"zone,omitempty"`               // IANA name; default UTC
	Nonexistent string    `json:"nonexistent" yaml:"nonexistent,omitempty"` // forward (default), skip
	Ambiguous   string    `json:"ambiguous" yaml:"ambiguous,omitempty"`     // first (default), last, both
	Description string    `json:"description,omitempty" yaml:"description,omitempty"`
	Manifest    string    `json:"manifest,omitempty" yaml:"-"` // the manifest that owns it
	CreatedAt   time.Time `json:"created_at,omitzero" yaml:"-"`
	Jobs        int       `json:"jobs" yaml:"-"` // how many jobs use it

	stale bool   // changed since the plans of its jobs were made
	Fault string `json:"unreadable,omitempty" yaml:"-"` // what of its row cannot be read
}

// Retry says how often a step is tried. Nil fields of a step mean: as the job has it.
type Retry struct {
	Attempts   *Attempts `json:"attempts,omitempty" yaml:"attempts,omitempty"`       // default 1
	Backoff    *Duration `json:"backoff,omitempty" yaml:"backoff,omitempty"`         // default 10s, doubles
	MaxBackoff *Duration `json:"max_backoff,omitempty" yaml:"max_backoff,omitempty"` // default 1h
	Jitter     *int      `json:"jitter,omitempty" yaml:"jitter,omitempty"`           // per cent of the back-off, default 10
}

// Attempts is a number of tries; 0, written until-next, is: until the job's next occurrence.
type Attempts int

// MarshalText writes a number or until-next.
func (a Attempts) MarshalText() ([]byte, error) {
	if a == 0 {
		return []byte("until-next"), nil
	}
	return fmt.Appendf(nil, "%d", int(a)), nil
}

// UnmarshalText reads a number from 1 to 1000, or until-next.
func (a *Attempts) UnmarshalText(b []byte) error {
	var n int
	if string(b) == "until-next" {
		*a = 0
		return nil
	}
	if _, err := fmt.Sscanf(string(b)+"\n", "%d\n", &n); err != nil || n < 1 || n > 1000 {
		return fmt.Errorf("attempts %q: want 1 to 1000, or until-next", b)
	}
	*a = Attempts(n)
	return nil
}

// Keep says how much history a job keeps: a run goes when it is beyond either bound.
type Keep struct {
	Runs int      `json:"runs,omitempty" yaml:"runs,omitempty"` // default 1000
	Age  Duration `json:"age,omitempty" yaml:"age,omitempty"`   // default 90d
}

// Job is a job's definition. The same struct is the row, the JSON and the entry of a manifest; the zero value of a
// field is its default, which Normalize fills in.
type Job struct {
	ID                 int64     `json:"id,omitempty" yaml:"-"`
	Owner              string    `json:"owner" yaml:"owner,omitempty"` // default: the login of the database
	Name               string    `json:"name" yaml:"-"`
	Description        string    `json:"description,omitempty" yaml:"description,omitempty"`
	Disabled           bool      `json:"disabled,omitempty" yaml:"disabled,omitempty"`
	Schedules          []string  `json:"schedules,omitempty" yaml:"schedules,omitempty"` // names of shared schedules
	Own                *Schedule `json:"own,omitempty" yaml:"-"`                         // the job's own rule (rule: in a manifest)
	Tags               []string  `json:"tags,omitempty" yaml:"tags,omitempty"`
	Queue              string    `json:"queue" yaml:"queue,omitempty"` // default tick
	Priority           int       `json:"priority,omitempty" yaml:"priority,omitempty"`
	Group              string    `json:"group,omitempty" yaml:"group,omitempty"`
	Overlap            string    `json:"overlap" yaml:"overlap,omitempty"` // wait (default), wait-all, skip, allow, replace
	MaxRunning         int       `json:"max_running,omitempty" yaml:"max_running,omitempty"`
	Missed             string    `json:"missed" yaml:"missed,omitempty"` // latest (default), all, skip
	MissedLimit        int       `json:"missed_limit,omitempty" yaml:"missed_limit,omitempty"`
	MissedWithin       Duration  `json:"missed_within,omitempty" yaml:"missed_within,omitempty"`
	MissedGrace        Duration  `json:"missed_grace,omitempty" yaml:"missed_grace,omitempty"`
	Retry              Retry     `json:"retry,omitzero" yaml:"retry,omitempty"`
	MaxDeliveries      int       `json:"max_deliveries,omitempty" yaml:"max_deliveries,omitempty"`
	OnError            string    `json:"on_error,omitempty" yaml:"on_error,omitempty"` // continue (default), pause
	PauseAfterFailures int       `json:"pause_after_failures,omitempty" yaml:"pause_after_failures,omitempty"`
	Timeout            Duration  `json:"timeout,omitempty" yaml:"timeout,omitempty"`
	Jitter             Duration  `json:"jitter,omitempty" yaml:"jitter,omitempty"`
	MaxRuns            int64     `json:"max_runs,omitempty" yaml:"max_runs,omitempty"`
	NotBefore          time.Time `json:"not_before,omitzero" yaml:"not_before,omitempty"`
	NotAfter           time.Time `json:"not_after,omitzero" yaml:"not_after,omitempty"`
	Start              string    `json:"start,omitempty" yaml:"start,omitempty"`               // start schedule, resolved to not_before at creation
	StartZone          string    `json:"start_zone,omitempty" yaml:"start_zone,omitempty"`     // of its wall times; default UTC
	RepeatAfter        Duration  `json:"repeat_after,omitempty" yaml:"repeat_after,omitempty"` // in place of a schedule: so long after its last end
	OnStartup          bool      `json:"on_startup,omitempty" yaml:"on_startup,omitempty"`
	After              string    `json:"after,omitempty" yaml:"after,omitempty"` // job (owner/name or name of the same owner)
	Keep               Keep      `json:"keep,omitzero" yaml:"keep,omitempty"`
	RemoveDone         bool      `json:"remove_when_done,omitempty" yaml:"remove_when_done,omitempty"`
	Steps              []Step    `json:"steps" yaml:"steps,omitempty"`
	Manifest           string    `json:"manifest,omitempty" yaml:"-"`
	CreatedAt          time.Time `json:"created_at,omitzero" yaml:"-"`

	afterID   int64 // what After names
	lostLink  bool  // one of its schedules was deleted by plain SQL
	changedAt time.Time
	removedAt time.Time
	fault     string // what of its row cannot be read
}

// Removed tells since when the definition is only history; zero: it is not.
func (j *Job) Removed() time.Time { return j.removedAt }

// Step is one step of a job. Spec is the executor's own argument object.
type Step struct {
	Name      string          `json:"name" yaml:"name,omitempty"`
	Executor  string          `json:"executor" yaml:"-"`
	Spec      json.RawMessage `json:"spec" yaml:"-"`
	Timeout   Duration        `json:"timeout,omitempty" yaml:"timeout,omitempty"`
	Retry     Retry           `json:"retry,omitzero" yaml:"retry,omitempty"`
	OnSuccess string          `json:"on_success,omitempty" yaml:"on_success,omitempty"` // next (default), succeed, fail, step:NAME
	OnFailure string          `json:"on_failure,omitempty" yaml:"on_failure,omitempty"` // fail (default), next, succeed, step:NAME
}
