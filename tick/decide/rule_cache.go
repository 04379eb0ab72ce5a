package decide

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// ruleCache parses rules and keeps them by their text, because thousands of jobs may share a
// schedule. Batches that are decided at the same time share the cache.
type ruleCache struct {
	mu        sync.Mutex
	known     map[ruleKey]parsedRule
	calendars map[string]*rules.Calendar // by name and version
}

type ruleKey struct {
	text, zone, nonexistent, ambiguous, seed, ends string
	calendar, onHoliday                            string // the calendar by name and version
	start                                          time.Time
}

type parsedRule struct {
	rule *rules.Rule
	err  error
}

// planned parses the rule of a plan. The text of the rule is canonical, and needs no zone or start from
// another place.
func (c *ruleCache) planned(r *store.Rule) (*rules.Rule, error) {
	return c.parse(ruleKey{text: r.Text, ends: r.Ends})
}

// defined parses the rule of a definition, with the calendar that it names. Where only its calendar has changed since the plan,
// the values of ~ are those of the plan: after a rename, the name would choose others.
func (c *ruleCache) defined(r *store.Rule, j *store.Job) (*rules.Rule, error) {
	s := &r.Schedule
	seed := s.Name
	if seed == "" {
		seed = j.FullName()
	}
	k := ruleKey{text: s.Rule, zone: s.Zone, nonexistent: s.Nonexistent, ambiguous: s.Ambiguous, seed: seed, start: s.CreatedAt}
	if keepsRandom(r) {
		k.text = rules.WithoutCalendar(r.Text)
	}
	if s.Calendar == "" {
		return c.parse(k)
	}
	if r.Calendar == nil {
		return nil, errNoCalendar(s)
	}
	k.calendar, k.onHoliday = s.Calendar+" "+r.Calendar.Version(), s.OnHoliday
	if err := c.readCalendar(k.calendar, r.Calendar); err != nil {
		return nil, err
	}
	return c.parse(k)
}

// keepsRandom reports whether the plan of a rule says which values ~ has.
func keepsRandom(r *store.Rule) bool {
	return strings.Contains(r.Schedule.Rule, "~") && r.Text != "" && r.SameRule()
}

// Replan plans a changed rule as the pass does that sees the edit, if the plan says which values ~ has. It reports whether it did.
func Replan(r *store.Rule, j *store.Job) bool {
	if !keepsRandom(r) {
		return false
	}
	found, err := new(ruleCache).defined(r, j)
	if err != nil {
		return false
	}
	r.Input, r.Text, r.Ends = r.NewInput, found.String(), found.Ends()
	return true
}

// errNoCalendar says that the calendar of a schedule does not exist.
func errNoCalendar(s *store.Schedule) error {
	return fmt.Errorf("calendar: there is no calendar %q; apply the file that has it, or take calendar out of the schedule", s.Calendar)
}

// readCalendar parses a calendar once, for all rules that name it.
func (c *ruleCache) readCalendar(key string, from *store.Calendar) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calendars[key] != nil {
		return nil
	}
	read, err := rules.ParseCalendar(from.Name, from.WorkingDays, from.Text())
	if err != nil {
		return fmt.Errorf("calendar %s: %w", from.Name, err)
	}
	if c.calendars == nil {
		c.calendars = map[string]*rules.Calendar{}
	}
	c.calendars[key] = read
	return nil
}

// calendar returns the parsed form of a calendar; nil: there is no calendar, or it cannot be parsed.
func (c *ruleCache) calendar(from *store.Calendar) *rules.Calendar {
	if from == nil {
		return nil
	}
	key := from.Name + " " + from.Version()
	if c.readCalendar(key, from) != nil {
		return nil
	}
	return c.calendars[key]
}

// current parses the rule of the plan, or the rule of the definition if that has changed since the plan.
func (c *ruleCache) current(r *store.Rule, j *store.Job) (*rules.Rule, error) {
	if r.Changed() || r.Text == "" || r.Calendar == nil && r.Schedule.Calendar != "" {
		return c.defined(r, j)
	}
	return c.planned(r)
}

func (c *ruleCache) parse(k ruleKey) (*rules.Rule, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.known[k]
	if !ok {
		v.rule, v.err = rules.Parse(k.text, rules.Defaults{Zone: k.zone, Start: k.start, Seed: k.seed, Nonexistent: k.nonexistent, Ambiguous: k.ambiguous,
			Calendar: c.calendars[k.calendar], OnHoliday: k.onHoliday, Ends: k.ends})
		if v.err != nil {
			v.err = fmt.Errorf("%.200q: %w", k.text, v.err)
		}
		if c.known == nil {
			c.known = map[ruleKey]parsedRule{}
		}
		c.known[k] = v
	}
	return v.rule, v.err
}
