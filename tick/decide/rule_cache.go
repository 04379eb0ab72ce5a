package decide

import (
	"fmt"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// ruleCache parses rules and keeps them by their text, because thousands of jobs may share a
// schedule. Batches that are decided side by side share it.
type ruleCache struct {
	mu    sync.Mutex
	known map[ruleKey]parsedRule
}

type ruleKey struct {
	text, zone, nonexistent, ambiguous, seed, ends string
	start                                          time.Time
}

type parsedRule struct {
	rule *rules.Rule
	err  error
}

// planned parses the rule of a plan. Its text is canonical and needs no zone or start from
// elsewhere.
func (c *ruleCache) planned(r *store.Rule) (*rules.Rule, error) {
	return c.parse(ruleKey{text: r.Text, ends: r.Ends})
}

// defined parses the rule of a definition.
func (c *ruleCache) defined(s *store.Schedule, j *store.Job) (*rules.Rule, error) {
	seed := s.Name
	if seed == "" {
		seed = j.FullName()
	}
	return c.parse(ruleKey{text: s.Rule, zone: s.Zone, nonexistent: s.Nonexistent, ambiguous: s.Ambiguous, seed: seed, start: s.CreatedAt})
}

// current parses the rule of the plan, or that of the definition if it was changed since.
func (c *ruleCache) current(r *store.Rule, j *store.Job) (*rules.Rule, error) {
	if r.Changed() || r.Text == "" {
		return c.defined(&r.Schedule, j)
	}
	return c.planned(r)
}

func (c *ruleCache) parse(k ruleKey) (*rules.Rule, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.known[k]
	if !ok {
		v.rule, v.err = rules.Parse(k.text, rules.Defaults{Zone: k.zone, Start: k.start, Seed: k.seed, Nonexistent: k.nonexistent, Ambiguous: k.ambiguous, Ends: k.ends})
		if v.err != nil {
			v.err = fmt.Errorf("%q: %w", k.text, v.err)
		}
		if c.known == nil {
			c.known = map[ruleKey]parsedRule{}
		}
		c.known[k] = v
	}
	return v.rule, v.err
}
