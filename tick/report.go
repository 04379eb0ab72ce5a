package tick

import "time"

// Report is what one pass did: the JSON of `dbjobs tick --json`, and what its table is made from.
type Report struct {
	Name      string         `json:"name"`
	Database  string         `json:"database"`
	StartedAt time.Time      `json:"started_at"` // by the database's clock
	DryRun    bool           `json:"dry_run,omitempty"`
	Frozen    bool           `json:"frozen,omitempty"` // everything is paused: nothing was decided or taken
	Decided   int            `json:"decided"`          // jobs that were decided for
	Made      int            `json:"made"`             // runs made
	Gaps      map[string]int `json:"gaps,omitempty"`   // gaps recorded or extended, by reason
	Started   int            `json:"started"`          // runs handed out here
	Succeeded int            `json:"succeeded"`
	Failed    int            `json:"failed"`             // finally
	Waiting   int            `json:"waiting"`            // runs that wait for a retry
	Outdated  int            `json:"outdated,omitempty"` // ends that were refused: the run was handed out again
	Parked    []Parked       `json:"parked,omitempty"`   // jobs that cannot be planned
	Runs      []Ended        `json:"runs,omitempty"`     // runs that ended or wait for a retry, in that order
	Due       []Coming       `json:"due,omitempty"`      // with a dry run: what a pass would decide
	NextRun   time.Time      `json:"next_run,omitzero"`  // when something needs a decision next
	CutShort  string         `json:"cut_short,omitempty"`
}

// Parked is a job that is not planned until its definition is mended.
type Parked struct {
	JobID int64  `json:"job_id"`
	Error string `json:"error"`
}

// Ended is a run that this pass executed.
type Ended struct {
	ID           string    `json:"id"`
	Job          string    `json:"job"` // owner/name
	Occurrence   string    `json:"occurrence"`
	ScheduledFor time.Time `json:"scheduled_for,omitzero"`
	State        string    `json:"state"`
	Step         int       `json:"step"`
	Error        string    `json:"error,omitempty"`
}

// Coming is a job that needs a decision.
type Coming struct {
	JobID int64     `json:"job_id"`
	Due   time.Time `json:"due,omitzero"`
}
