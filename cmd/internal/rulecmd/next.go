// Package rulecmd does what `dbjobs rule` does: next, explain and lint. It reads and writes plain streams, and the
// caller passes the time, so the command line adds only flags. Nothing here needs a database.
package rulecmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/holiday"
	"github.com/dbjobs/dbjobs/rules"
)

// Options are the flags of the three commands.
type Options struct {
	Rules       []string  // the arguments; next and explain take one
	After       time.Time // --after; the zero time is Now
	Count       int       // --count
	Zone        string    // --zone, an IANA name; "" is UTC
	Seed        string    // --seed, the schedule's name, for ~
	Nonexistent string    // --nonexistent: forward, skip
	Ambiguous   string    // --ambiguous: first, last, both
	Calendar    string    // --calendar, a file of days
	WorkingDays string    // --working-days
	OnHoliday   string    // --on-holiday: skip, next, previous
	JSON        bool      // --json

	Open func(path string) (io.ReadCloser, error) // opens the file of days

	holidays  *rules.Calendar // what ReadCalendar has read
	Now       time.Time       // the clock
	MaxPerDay int             // --max-per-day of lint; 0 is its default
}

const (
	// DefaultCount is how many times `rule next` prints.
	DefaultCount = 5
	// maxCount limits --count and "count", and with them the memory.
	maxCount = 100_000
)

func (o *Options) after() time.Time { return cmp.Or(o.After, o.Now) }

// parse reads a rule as if it were created at start.
func (o *Options) parse(text string, start time.Time) (*rules.Rule, error) {
	return rules.Parse(text, rules.Defaults{
		Zone: o.Zone, Start: start, Seed: o.Seed, Nonexistent: o.Nonexistent, Ambiguous: o.Ambiguous, Calendar: o.holidays, OnHoliday: o.OnHoliday,
	})
}

// ReadCalendar reads the holidays that the flags name. A command does so once, for all its rules: the file may be a pipe.
func (o *Options) ReadCalendar() error {
	if o.Calendar == "" && o.WorkingDays == "" {
		return nil
	}
	var days []string
	var err error
	if o.Calendar != "" {
		if days, err = holiday.ReadFile(o.Calendar, o.Open, o.Now); err != nil {
			return fmt.Errorf("--calendar: %w", err)
		}
	}
	o.holidays, err = rules.ParseCalendar("", o.WorkingDays, strings.Join(days, "\n"))
	return err
}

// times is what next prints: at most count times after an instant, and whether the rule has no more times than
// these.
type times struct {
	Next      []string `json:"next"`
	Exhausted bool     `json:"exhausted"`

	instants []time.Time
}

// nextTimes asks a rule. Exhausted is true if fewer than count exist.
func nextTimes(r *rules.Rule, after time.Time, count int) (*times, error) {
	list, err := r.Between(after, endOfTime, count)
	if err != nil {
		return nil, err
	}
	t := &times{Next: make([]string, len(list)), Exhausted: len(list) < count, instants: list}
	for i, at := range list {
		t.Next[i] = at.Format(time.RFC3339)
	}
	return t, nil
}

// endOfTime is after the end of the calendar of rules.
var endOfTime = time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC)

// Next prints the next times of one rule: a line each, in UTC and in the zone of the rule, or one JSON object.
func Next(stdout io.Writer, o Options) error {
	text, err := o.single()
	if err != nil {
		return err
	}
	if o.Count < 1 || o.Count > maxCount {
		return fmt.Errorf("--count is %d; allowed: 1 to %d", o.Count, maxCount)
	}
	r, err := o.parse(text, o.after())
	if err != nil {
		return err
	}
	t, err := nextTimes(r, o.after(), o.Count)
	if err != nil {
		return err
	}
	if o.JSON {
		return encode(stdout, t)
	}
	if len(t.Next) == 0 {
		_, err = io.WriteString(stdout, "none: the rule is exhausted\n")
		return err
	}
	if zone := r.Zone(); zone != "UTC" {
		for i, at := range t.instants {
			t.Next[i] += "  " + rules.Local(at, zone)
		}
	}
	_, err = io.WriteString(stdout, strings.Join(t.Next, "\n")+"\n")
	return err
}

func (o *Options) single() (string, error) {
	if len(o.Rules) != 1 {
		return "", fmt.Errorf("found %d rules, want one; put a rule that contains blanks in quotes", len(o.Rules))
	}
	return o.Rules[0], nil
}
