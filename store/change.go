package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Author is the person who changes something, with the reason, for the change log.
type Author struct{ By, Reason string }

// complete fills in the login if no name is given. It refuses texts that an engine would not store unchanged, and Itself.
func (w *Author) complete(login string) error {
	if w.By == "" {
		w.By = login
	}
	if w.By == Itself {
		return &FieldError{"change log", "by", fmt.Sprintf("%q is kept for what dbjobs does because of a job's runs; give another name", Itself)}
	}
	return firstError("change log", check{"by", shortText(w.By, maxName)}, check{"reason", shortText(w.Reason, maxReason)})
}

// maxReason is the longest reason, in bytes.
const maxReason = 1000

func shortText(s string, most int) error {
	switch {
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return errors.New("is not UTF-8 text")
	case len(s) > most:
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(s), most)
	}
	return nil
}

// shortLine is shortText without control characters.
func shortLine(s string, most int) error {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%q holds a control character", s)
	}
	return shortText(s, most)
}

// CheckTrigger refuses the name of a trigger, the identity of a start, or a queue to take from, that is too long for one of
// the engines, or no text: it would stop the pass, for all jobs.
func CheckTrigger(name, startup string, queues []string) error {
	checks := []check{{"name", shortLine(name, maxName)}, {"startup-id", shortLine(startup, maxName-len(occurrenceStart))}}
	for _, q := range queues {
		checks = append(checks, check{"queue", shortText(q, maxName)})
	}
	return firstError("trigger", checks...)
}

// change runs fn as an applier in a transaction, for commands that change one thing.
func (s *Store) change(ctx context.Context, who Author, fn func(*applier) error) error {
	login, err := s.Login(ctx)
	if err != nil {
		return err
	}
	if err := who.complete(login); err != nil {
		return err
	}
	return s.db.InTx(ctx, func(tx *engine.Tx) error {
		a := &applier{s: s, tx: tx, o: ApplyOptions{Author: who}, login: login}
		if err := tx.Row(ctx, "read_now", engine.Args{"now": s.now()}, engine.At(&a.now)); err != nil {
			return err
		}
		if err := fn(a); err != nil {
			return err
		}
		return a.flush(ctx)
	})
}

// record collects a change; before and after are the JSON of the definition, nil where there is none. flush writes
// it.
func (a *applier) record(kind, subject, action string, id int64, before, after any) error {
	c := Change{At: a.now, By: a.o.By, Kind: kind, Subject: subject, Action: action, Reason: a.o.Reason}
	was, err := fields(before)
	if err != nil {
		return err
	}
	became, err := fields(after)
	if err != nil {
		return err
	}
	if was != nil && became != nil {
		if c.Fields, err = fieldChanges(was, became); err != nil {
			return err
		}
	}
	a.changes = append(a.changes, c)
	e := a.s.Engine()
	row := e.AppendField(e.AppendField(nil, "kind", kind), "subject_id", positive(id))
	row = e.AppendField(e.AppendField(row, "subject", subject), "action", action)
	row = e.AppendField(e.AppendField(row, "was", engine.Document(was)), "became", engine.Document(became))
	a.log = append(a.log, engine.EndRow(row))
	return nil
}

// flush writes the collected changes to the change log.
func (a *applier) flush(ctx context.Context) error {
	if err := a.mistakes(); err != nil {
		return err
	}
	rows := a.log
	a.log = nil
	return a.write(ctx, "log_changes", rows)
}

// RemoveJob removes a job. Its history stays until it is pruned, its name can be used again, and its waiting runs are
// not started.
func (s *Store) RemoveJob(ctx context.Context, name string, who Author) error {
	_, err := s.inTurn(ctx, ApplyOptions{Author: who}, func(a *applier) error {
		j, err := s.findJob(ctx, a.tx, name)
		if err != nil {
			return err
		}
		going := map[int64]bool{j.ID: true}
		uses, err := a.hookUses(ctx, &j.Job, going)
		if err != nil {
			return err
		}
		return a.removeJobs(ctx, []Job{j.Job}, going, uses)
	})
	return err
}

// Changes reads the change log, newest first; empty kind and subject mean all.
func (s *Store) Changes(ctx context.Context, kind, subject string, limit int) ([]Change, error) {
	return s.changesOf(ctx, kind, subject, 0, limit)
}

// changesOf also reads entries under other names that the subject had, if its id is known.
func (s *Store) changesOf(ctx context.Context, kind, subject string, id int64, limit int) ([]Change, error) {
	var out []Change
	var c Change
	rd := engine.Reads(engine.At(&c.At), &c.By, &c.Kind, &c.subjectID, &c.Subject, &c.Action, &c.Reason, jsonInto{&c.Before}, jsonInto{&c.After})
	err := s.db.Query(ctx, "changes", engine.Args{"kind": kind, "subject": subject, "id": id, "limit": limit}, rd.Each(func(fault string) {
		var was, became map[string]json.RawMessage
		if c.Before != nil && c.After != nil {
			if err := errors.Join(json.Unmarshal(c.Before, &was), json.Unmarshal(c.After, &became)); err != nil {
				fault = engine.JoinFaults(fault, fmt.Sprintf("columns was, became: %v", err))
			}
			c.Fields = differences(was, became)
		}
		c.Fault = fault
		out = append(out, c)
		c = Change{}
	}))
	return out, err
}

// JobHistory reads the change log of a job, by name or owner/name. It also finds removed jobs, and jobs that had the
// name before.
func (s *Store) JobHistory(ctx context.Context, name string, limit int) ([]Change, error) {
	j, err := s.findJob(ctx, s.db, name)
	if err == nil {
		return s.changesOf(ctx, "job", j.FullName(), j.ID, limit)
	}
	if !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	gone, failed := s.named(ctx, name)
	if failed != nil {
		return nil, failed
	}
	return s.history(ctx, "job", gone.FullName(), limit, err)
}

// named returns a job of which only the name is known. If the name has no owner, the owner is the login.
func (s *Store) named(ctx context.Context, name string) (j Job, err error) {
	if owner, plain, ok := strings.Cut(name, "/"); ok {
		return Job{Owner: owner, Name: plain}, nil
	}
	j.Name = name
	j.Owner, err = s.Login(ctx)
	return j, err
}

// ScheduleHistory reads the change log of a shared schedule, also of one that was removed.
func (s *Store) ScheduleHistory(ctx context.Context, name string, limit int) ([]Change, error) {
	c, err := s.Schedule(ctx, name)
	if err == nil {
		return s.changesOf(ctx, "schedule", name, c.ID, limit)
	}
	if !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	return s.history(ctx, "schedule", name, limit, err)
}

// history returns the change log of a subject that is gone, or has another name now: of the last one that had the name. If no
// subject ever had it, the error is missing.
func (s *Store) history(ctx context.Context, kind, name string, limit int, missing error) ([]Change, error) {
	last, err := s.Changes(ctx, kind, name, 1)
	switch {
	case err != nil:
		return nil, err
	case len(last) == 0:
		return nil, missing
	}
	return s.changesOf(ctx, kind, name, last[0].subjectID, limit)
}
