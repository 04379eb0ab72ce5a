package tick

import (
	"fmt"
	"sync"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// parser reads rules and keeps them by text for one pass: thousands of jobs may share a schedule.
type parser struct {
	login     string // whom this host's SQL connections log in as
	startupID string // of the start-up that the tick reports
	// began is the pass's beginning, by the database's clock: later nominal times are for the next one. Zero: up to now.
	began time.Time

	sync.Mutex // batches are decided side by side
	known      map[parserKey]parsed
}

type parserKey struct {
	text, zone, nonexistent, ambiguous, seed, ends string
	start                                          time.Time
}

type parsed struct {
	rule *rules.Rule
	err  error
}

func newParser(login, startupID string) *parser {
	return &parser{login: login, startupID: startupID, known: map[parserKey]parsed{}}
}

// may tells whether this host can run the SQL of a job: it logs in as the job's owner. SQLite knows no logins.
func (p *parser) may(j *store.Job) bool { return p.login == "" || j.ID == 0 || j.Owner == p.login }

// planned reads a rule as the plan knows it: canonical text, which needs no zone or start from elsewhere.
func (p *parser) planned(r *store.Rule) (*rules.Rule, error) {
	return p.parse(parserKey{text: r.Text, ends: r.Ends})
}

// defined reads a rule as people wrote it.
func (p *parser) defined(c *store.Schedule, j *store.Job) (*rules.Rule, error) {
	seed := c.Name
	if seed == "" {
		seed = j.FullName()
	}
	return p.parse(parserKey{text: c.Rule, zone: c.Zone, nonexistent: c.Nonexistent, ambiguous: c.Ambiguous, seed: seed, start: c.CreatedAt})
}

// current reads a rule as it stands: as planned, unless it was changed since.
func (p *parser) current(r *store.Rule, j *store.Job) (*rules.Rule, error) {
	if r.Changed() || r.Text == "" {
		return p.defined(&r.Schedule, j)
	}
	return p.planned(r)
}

func (p *parser) parse(k parserKey) (*rules.Rule, error) {
	p.Lock()
	defer p.Unlock()
	v, ok := p.known[k]
	if !ok {
		v.rule, v.err = rules.Parse(k.text, rules.Defaults{Zone: k.zone, Start: k.start, Seed: k.seed, Nonexistent: k.nonexistent, Ambiguous: k.ambiguous, Ends: k.ends})
		if v.err != nil {
			v.err = fmt.Errorf("%q: %w", k.text, v.err)
		}
		p.known[k] = v
	}
	return v.rule, v.err
}
