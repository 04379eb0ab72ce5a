package decide

import (
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// Pass is what the decisions of one pass have in common. It is not to be copied.
type Pass struct {
	Login     string // whom this host's SQL connections log in as
	StartupID string // of the start-up that the tick reports
	// Began is the pass's beginning, by the database's clock: later nominal times are for the next one. Zero: up to now.
	Began time.Time
	// Heartbeat is how long after its end a lease counts as expired.
	Heartbeat time.Duration

	rules ruleCache
}

// may tells whether this host can run the SQL of a job: it logs in as the job's owner. SQLite knows no logins.
func (p *Pass) may(j *store.Job) bool { return p.Login == "" || j.ID == 0 || j.Owner == p.Login }
