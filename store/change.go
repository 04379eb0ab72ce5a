package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// change runs fn as an applier in a transaction, for commands that change one thing.
func (s *Store) change(ctx context.Context, by, reason string, fn func(*applier) error) error {
	login, err := s.Login(ctx)
	if err != nil {
		return err
	}
	if by == "" {
		by = login
	}
	return s.tx(ctx, func(tx *sql.Tx) error {
		a := &applier{s: s, tx: tx, o: ApplyOptions{By: by, Reason: reason}, login: login}
		if err := s.row(ctx, tx, "read_now", args{"now": s.now()}, at{&a.now}); err != nil {
			return err
		}
		return fn(a)
	})
}

// RemoveJob takes a job away. Its history stays until pruned, its name is free, and what waits is not started.
func (s *Store) RemoveJob(ctx context.Context, name, by, reason string) error {
	return s.change(ctx, by, reason, func(a *applier) error {
		j, err := s.findJob(ctx, a.tx, name)
		if err != nil {
			return err
		}
		return a.removeJob(ctx, j.Job)
	})
}

// RemoveSchedule takes away a schedule that no job uses.
func (s *Store) RemoveSchedule(ctx context.Context, name, by, reason string) error {
	return s.change(ctx, by, reason, func(a *applier) error {
		k, err := s.schedules(ctx, a.tx)
		if err != nil {
			return err
		}
		c, ok := k.named[name]
		if !ok {
			return fmt.Errorf("schedule %q: %w; `dbjobs schedule list` shows them", name, ErrNotFound)
		}
		return a.removeSchedule(ctx, c)
	})
}

// PauseJob begins an interval in which nothing is decided or taken for a job; what runs goes on. ErrExists where it is
// paused already.
func (s *Store) PauseJob(ctx context.Context, name string, p Pause) error {
	return s.change(ctx, p.By, p.Reason, func(a *applier) error {
		j, err := s.findJob(ctx, a.tx, name)
		if err != nil {
			return err
		}
		subject := args{"now": s.now(), "scope": "job", "subject_id": j.ID}
		var open int64
		if s.row(ctx, a.tx, "open_pause", subject, &open) == nil {
			return fmt.Errorf("job %s is paused: %w", j.FullName(), ErrExists)
		}
		if !p.Until.IsZero() && !p.Until.After(a.now) {
			return &FieldError{"pause", "until", "it lies in the past"}
		}
		if _, err := s.exec(ctx, a.tx, "pause", args{"now": s.now(), "scope": "job", "subject_id": j.ID, "subject": nil, "reason": p.Reason,
			"paused_by": a.o.By, "until_at": p.Until}); err != nil {
			return err
		}
		return a.record(ctx, "job", j.FullName(), "pause", j.ID, nil, nil)
	})
}

// ResumeJob ends the pause of a job. The nominal times inside it are a gap; with missed, they count as if they had not
// been paused.
func (s *Store) ResumeJob(ctx context.Context, name string, missed bool, by string) error {
	return s.change(ctx, by, "", func(a *applier) error {
		j, err := s.findJob(ctx, a.tx, name)
		if err != nil {
			return err
		}
		n, err := s.exec(ctx, a.tx, "resume", args{"now": s.now(), "scope": "job", "subject_id": j.ID, "resumed_by": a.o.By, "missed": missed})
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("job %s is not paused: %w", j.FullName(), ErrNotFound)
		}
		return a.record(ctx, "job", j.FullName(), "resume", j.ID, nil, nil)
	})
}

// Changes reads the change log, newest first; empty kind and subject mean all.
func (s *Store) Changes(ctx context.Context, kind, subject string, limit int) ([]Change, error) {
	var out []Change
	err := s.query(ctx, s.db, "changes", args{"kind": kind, "subject": subject, "limit": limit}, func(r *sql.Rows) error {
		var c Change
		var was, became map[string]json.RawMessage
		if err := r.Scan(at{&c.At}, &c.By, &c.Kind, &c.Subject, &c.Action, &c.Reason, jsonInto{&was}, jsonInto{&became}); err != nil {
			return err
		}
		if c.Action == "change" {
			c.Fields = differences(was, became)
		}
		out = append(out, c)
		return nil
	})
	return out, err
}
