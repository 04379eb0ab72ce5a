package store

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Trigger is a source of ticks, by the name that the ticks have, with its newest stretch of passes. A stretch is
// passes without a silence between them.
type Trigger struct {
	Name    string    `json:"name"`
	Since   time.Time `json:"since"`          // the first pass of the stretch
	LastAt  time.Time `json:"last_pass"`      // the newest
	Passes  int64     `json:"passes"`         // the first, and those that have set no alarm for the next
	Holder  string    `json:"holder"`         // host and process of the newest
	Version string    `json:"version"`        // of its program
	Took    Duration  `json:"took,omitempty"` // the newest
	Error   string    `json:"error,omitempty"`
	First   time.Time `json:"-"` // the first pass on record, of any stretch
}

// Triggers returns all triggers that have passes on record, by name.
func (s *Store) Triggers(ctx context.Context) ([]Trigger, error) {
	var list []Trigger
	var t Trigger
	rd := engine.Reads(&t.Name, engine.At(&t.Since), engine.At(&t.LastAt), &t.Passes, &t.Holder, &t.Version, engine.Nullable(&t.Error), ms{&t.Took}, engine.At(&t.First))
	err := s.db.Query(ctx, "triggers", nil, rd.Each(func(fault string) {
		if fault == "" { // a row that cannot be read is not a tick's
			list = append(list, t)
		}
		t = Trigger{}
	}))
	return list, err
}

// PassesHidden reports whether row security hides the ticks of other logins from this login: then nothing follows from
// there being no triggers. It is so for a user of an installation with owners on PostgreSQL.
func (s *Store) PassesHidden(ctx context.Context) (hidden bool, err error) {
	if s.db.Has("only_own") {
		err = s.db.Row(ctx, "only_own", nil, &hidden)
	}
	return hidden, err
}

// Unplanned is the job that has waited for its first pass for the longest time, and since when; no name: there is none.
func (s *Store) Unplanned(ctx context.Context) (job string, since time.Time, err error) {
	j := Job{}
	err = s.db.Query(ctx, "unplanned", nil, engine.Reads(&j.Owner, &j.Name, engine.At(&since)).Each(func(string) {
		job = j.FullName()
	}))
	return job, since, err
}
