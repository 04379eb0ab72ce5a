package decide

import (
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Pass holds what the decisions of one pass share. It must not be copied.
type Pass struct {
	Login     string   // the login of this host's SQL connections; empty: the database has no logins
	Served    []string // owners other than the login, for which this host has credentials
	StartupID string   // identity of the start-up that the tick reports; empty: it reports none
	// Began is the beginning of the pass by the database's clock. Later nominal times are left to the
	// next pass. Zero: all times up to now are decided.
	Began time.Time
	// Heartbeat is how long after its end a lease counts as expired.
	Heartbeat time.Duration
	// On holds the hooks of this host, each with its owner: for events for which a job has no hook.
	On store.Hooks
	// Late is how long after its nominal time a run counts as late; 0: no run counts as late.
	Late time.Duration

	rules ruleCache
}

// may reports whether this host can run the SQL of a job: it logs in as the job's owner, or is able to.
func (p *Pass) may(j *store.Job) bool {
	return p.Login == "" || j.ID == 0 || j.Owner == p.Login || slices.Contains(p.Served, j.Owner)
}
