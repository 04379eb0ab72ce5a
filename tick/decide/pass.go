package decide

import (
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Pass holds what the decisions of one pass share. It must not be copied.
type Pass struct {
	Login     string   // the login of this host's SQL connections; empty: the database has none
	Served    []string // owners beside the login, for whom this host has credentials
	StartupID string   // identity of the start-up that the tick reports; empty: it reports none
	// Began is the beginning of the pass by the database's clock. Later nominal times are for the
	// next pass. Zero: all times up to now are decided.
	Began time.Time
	// Heartbeat is the time after its end at which a lease counts as expired.
	Heartbeat time.Duration
	// On are the hooks of this host, each with its owner: for events for which a job has none.
	On store.Hooks
	// Late is how long after its nominal time a run is late; 0: none is.
	Late time.Duration

	rules ruleCache
}

// may reports whether this host can run the SQL of a job: it logs in as the job's owner, or can.
func (p *Pass) may(j *store.Job) bool {
	return p.Login == "" || j.ID == 0 || j.Owner == p.Login || slices.Contains(p.Served, j.Owner)
}
