package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// Duration is a length of time that reads and prints as Go writes it, with d for days of 24 hours: 90s, 1h30m, 30d.
// The database keeps whole milliseconds.
type Duration time.Duration

// durationWord finds a number with a unit that is a word, and durationUnits are the short forms of these words.
var (
	durationWord  = lazyregexp.New(`(?i)^([0-9.]+) ?(ms|s|m|h|d|(?:millisecond|second|sec|minute|min|hour|day)s?)(?: |$)`)
	durationUnits = map[string]string{"millisecond": "ms", "second": "s", "sec": "s", "minute": "m", "min": "m", "hour": "h", "day": "d"}
)

// inUnits returns a duration in words, such as 1 hour 30 minutes, as 1h30m, and any other text as it is. So is a unit M: it
// may mean months, and a history that is kept for 3 minutes is lost.
func inUnits(s string) string {
	short := ""
	for rest := s; rest != ""; {
		m := durationWord.FindStringSubmatch(rest)
		if m == nil || m[2] == "M" {
			return s
		}
		unit := strings.ToLower(m[2])
		short += m[1] + cmp.Or(durationUnits[strings.TrimSuffix(unit, "s")], unit)
		rest = rest[len(m[0]):]
	}
	return short
}

// ParseDuration reads 90s, 1h30m, 7d, 1.5h, and words: 2 minutes, 1 hour 30 minutes. It refuses negative lengths, and
// lengths below a millisecond other than zero. It leaves out what is finer than a millisecond.
func ParseDuration(s string) (Duration, error) {
	rest, days := inUnits(s), time.Duration(0)
	head, tail, ok := strings.Cut(rest, "d")
	if ok {
		var n int64
		if _, err := fmt.Sscanf(head+"\n", "%d\n", &n); err != nil || n < 0 || n > 36500 {
			return 0, fmt.Errorf("duration %q: want a number with unit, such as 90s, 1h30m or 30d", s)
		}
		days, rest = time.Duration(n)*24*time.Hour, tail
	}
	d := time.Duration(0)
	if rest != "" || !ok {
		var err error
		if d, err = time.ParseDuration(rest); err != nil {
			return 0, fmt.Errorf("duration %q: want a number with unit, such as 90s, 1h30m or 30d", s)
		}
	}
	negative := d < 0
	if d += days; negative || (d > 0 && d < time.Millisecond) {
		return 0, fmt.Errorf("duration %q: want zero or at least 1ms", s)
	}
	return Duration(d.Truncate(time.Millisecond)), nil
}

// String returns the shortest text that ParseDuration reads back.
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

// MarshalText makes JSON and YAML have the same text as the command line.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDuration.
func (d *Duration) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDuration(string(b))
	return err
}

func (d Duration) ms() int64 { return time.Duration(d).Milliseconds() }

// Schedule is a named recurrence set. The row and the JSON have the same struct.
type Schedule struct {
	ID          int64     `json:"-"`
	Name        string    `json:"name"`
	Rule        string    `json:"rule"`                 // any form that package rules reads
	Zone        string    `json:"zone"`                 // IANA name; default UTC
	Nonexistent string    `json:"nonexistent"`          // forward (default), skip
	Ambiguous   string    `json:"ambiguous"`            // first (default), last, both
	Calendar    string    `json:"calendar,omitempty"`   // the calendar whose holidays count
	OnHoliday   string    `json:"on_holiday,omitempty"` // with a calendar: skip (default), next, previous
	Description string    `json:"description,omitempty"`
	Manifest    string    `json:"manifest,omitempty"` // the manifest that owns it
	CreatedAt   time.Time `json:"created_at,omitzero"`
	Jobs        int       `json:"jobs"` // how many jobs use it

	// Past is set by who has read the rule from a file: it has no time if it counts from now. Apply refuses it, unless
	// the database has the schedule already, from an instant at which the rule has times.
	Past bool `json:"-"`

	made  time.Time // CreatedAt of a job's own rule, which is no part of the job's definition
	stale bool      // it changed since the plans of its jobs were made

	parked string // why it cannot be used, as found by the last pass that looked at it
	Fault  string `json:"unreadable,omitempty"` // which columns of its row cannot be read
}

// Made is when the database got the schedule, or the rule that a job has of its own; zero: it does not have it yet, or that
// was not looked up.
func (c *Schedule) Made() time.Time {
	if c.CreatedAt.IsZero() {
		return c.made
	}
	return c.CreatedAt
}

// madeAs notes when the database got the rule that a job has of its own. was is the rule that it has; nil: it has none.
func (c *Schedule) madeAs(was *Schedule) {
	var made time.Time
	if was != nil {
		made = was.Made()
	}
	c.made = made
}

// Retry says how often a step is tried. In a step, a nil field means the value of the job.
type Retry struct {
	Attempts   *Attempts `json:"attempts,omitempty"`    // default 1
	Backoff    *Duration `json:"backoff,omitempty"`     // default 10s, doubles
	MaxBackoff *Duration `json:"max_backoff,omitempty"` // default 1h
	Jitter     *int      `json:"jitter,omitempty"`      // per cent of the back-off, default 10
}

// Attempts is a number of attempts. 0, written until-next, means until the job's next occurrence.
type Attempts int

// MarshalText writes a number or until-next.
func (a Attempts) MarshalText() ([]byte, error) {
	if a == 0 {
		return []byte(attemptsUntilNext), nil
	}
	return fmt.Appendf(nil, "%d", int(a)), nil
}

// UnmarshalText reads a number from 1 to 1000, or until-next.
func (a *Attempts) UnmarshalText(b []byte) error {
	var n int
	if string(b) == attemptsUntilNext {
		*a = 0
		return nil
	}
	if _, err := fmt.Sscanf(string(b)+"\n", "%d\n", &n); err != nil || n < 1 || n > 1000 {
		return fmt.Errorf("attempts %q: want 1 to 1000, or until-next", b)
	}
	*a = Attempts(n)
	return nil
}

// Step is one step of a job. Spec is the executor's own argument object.
type Step struct {
	Name      string          `json:"name"`
	Executor  string          `json:"executor"`
	Spec      json.RawMessage `json:"spec"`
	Timeout   Duration        `json:"timeout,omitempty"`
	Retry     Retry           `json:"retry,omitzero"`
	OnSuccess string          `json:"on_success,omitempty"` // next (default), succeed, fail, step:NAME
	OnFailure string          `json:"on_failure,omitempty"` // fail (default), next, succeed, step:NAME
}
