package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// RunNow inserts a request: the run is let go by the next decision for the job, behind what is active.
func (s *Store) RunNow(ctx context.Context, name string, with map[string]string) (Run, error) {
	var r Run
	err := s.tx(ctx, func(tx *sql.Tx) error {
		j, err := s.findJob(ctx, tx, name)
		if err != nil {
			return err
		}
		var now time.Time
		if err := s.row(ctx, tx, "read_now", args{"now": s.now()}, at{&now}); err != nil {
			return err
		}
		id := NewRunID(now, 0)
		r = Run{ID: id, Owner: j.Owner, Job: j.Name, JobID: j.ID, Occurrence: "now:" + id, State: Waiting, Queue: j.Queue, Priority: j.Priority,
			ReadyAt: now, CreatedAt: now, Step: 1}
		if len(with) > 0 {
			b, err := json.Marshal(with)
			if err != nil {
				return fmt.Errorf("encode the arguments: %w", err)
			}
			r.Args = string(b)
		}
		_, err = s.exec(ctx, tx, "request_run", args{"now": s.now(), "id": runID(id), "job": j.ID, "occurrence": r.Occurrence, "queue": r.Queue,
			"priority": r.Priority, "args": document(r.Args)})
		return err
	})
	return r, err
}
