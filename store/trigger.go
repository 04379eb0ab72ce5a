package store

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Trigger is what starts ticks, by the name that they were given, with its newest stretch of passes: those without a silence
// between them.
type Trigger struct {
	Name    string    `json:"name"`
	Since   time.Time `json:"since"`     // the first pass of the stretch
	LastAt  time.Time `json:"last_pass"` // the newest
	Passes  int64     `json:"passes"`
	Holder  string    `json:"holder"`         // host and process of the newest
	Version string    `json:"version"`        // of its program
	Took    Duration  `json:"took,omitempty"` // the newest
	Error   string    `json:"error,omitempty"`
}

// Triggers are all triggers that have passes on record, by name.
func (s *Store) Triggers(ctx context.Context) ([]Trigger, error) {
	var list []Trigger
	var t Trigger
	rd := engine.Reads(&t.Name, engine.At(&t.Since), engine.At(&t.LastAt), &t.Passes, &t.Holder, &t.Version, engine.Nullable(&t.Error), ms{&t.Took})
	err := s.db.Query(ctx, "triggers", nil, rd.Each(func(fault string) error {
		if fault == "" { // a row that cannot be read is none of a tick
			list = append(list, t)
		}
		t = Trigger{}
		return nil
	}))
	return list, err
}
