package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// The scopes of pauses.
const (
	ScopeJob      = "job"
	ScopeSchedule = "schedule"
	ScopeTag      = "tag"
	ScopeOwner    = "owner"
	ScopeAll      = "all"
)

// Itself is the author of what dbjobs does because of a job's runs, such as a pause. No person has this name: see Author.
const Itself = "dbjobs itself"

// How a person has given the end of a pause, if not as an instant.
const (
	UntilLength = "length" // from now on, such as 2h
	UntilDay    = "day"    // today or tomorrow, with a time of day or without
)

// Subject is what a pause stops: a job or a schedule by name, the jobs with a tag or of an owner, or all jobs.
type Subject struct{ Scope, Name string }

// String is the subject in messages and in the change log.
func (u Subject) String() string {
	switch u.Scope {
	case ScopeAll:
		return "everything"
	case ScopeOwner:
		return "the jobs of owner " + u.Name
	case ScopeTag:
		return "the jobs with tag " + u.Name
	}
	return u.Scope + " " + u.Name
}

// Pause begins an interval in which no run of the subject is decided or taken. Runs that execute continue, runs that
// have not begun are held, and the nominal times of the interval become a gap when it ends. A zero until means until
// somebody resumes it. The error wraps ErrExists if the subject is paused already, ErrNotFound if there is no such
// job, schedule, tag or owner.
func (s *Store) Pause(ctx context.Context, on Subject, until time.Time, who Author) (Pause, error) {
	return s.PauseUntil(ctx, on, until, "", who)
}

// PauseUntil is Pause with how until was given, such as UntilLength. Replan moves such an end, if the clock was wrong.
func (s *Store) PauseUntil(ctx context.Context, on Subject, until time.Time, as string, who Author) (Pause, error) {
	var begun Pause
	err := s.change(ctx, who, func(a *applier) error {
		id, subject, err := a.subject(ctx, &on)
		if err != nil {
			return err
		}
		if err := a.anybody(ctx, on); err != nil {
			return err
		}
		known := engine.Args{"now": s.now(), "scope": on.Scope, "subject_id": id, "subject": subject}
		var p Pause
		switch err := s.openPause(ctx, a.tx, known, &p); {
		case err == nil:
			return fmt.Errorf("%s: paused since %s: %w", on, p.Since.Format(time.RFC3339), ErrExists)
		case !errors.Is(err, ErrNotFound):
			return err
		}
		if err := instant(until); err != nil {
			return &FieldError{on.String(), "until", err.Error()}
		}
		if !until.IsZero() && !until.After(a.now) {
			return &FieldError{on.String(), "until", fmt.Sprintf("%s is in the past: the database's clock says %s", until.Format(time.RFC3339), a.now.Format(time.RFC3339))}
		}
		if _, err := a.tx.Exec(ctx, "pause", engine.Args{"now": s.now(), "scope": on.Scope, "subject_id": positive(id), "subject": engine.Null(subject), "reason": a.o.Reason,
			"paused_by": a.o.By, "until_at": until, "until_as": engine.Null(as)}); err != nil {
			return err
		}
		begun = Pause{}
		if err := s.openPause(ctx, a.tx, known, &begun); err != nil {
			return err
		}
		begun.Subject = on.Name
		kind, name := on.logged()
		return a.record(kind, name, "pause", id, nil, struct {
			Until time.Time `json:"until,omitzero"`
		}{begun.Until})
	})
	return begun, err
}

// Resume ends the pause of a subject. Other pauses that hold the same jobs continue. The nominal times inside the
// pause become a gap. With missed they count as if there had been no pause, unless they were decided meanwhile, which
// only another of the job's schedules can cause, or an edit of what its nominal times depend on: see PlannedPolicies.
// The error wraps ErrNotFound if the subject is not paused.
func (s *Store) Resume(ctx context.Context, on Subject, missed bool, who Author) (Pause, error) {
	var ended Pause
	err := s.change(ctx, who, func(a *applier) error {
		id, subject, err := a.subject(ctx, &on)
		if err != nil {
			return err
		}
		known := engine.Args{"now": s.now(), "scope": on.Scope, "subject_id": id, "subject": subject, "resumed_by": a.o.By, "missed": missed}
		open := func() error {
			ended = Pause{}
			err := s.openPause(ctx, a.tx, known, &ended)
			if errors.Is(err, ErrNotFound) {
				err = fmt.Errorf("the pause of %s: %w; `dbjobs pauses` lists the pauses", on, ErrNotFound)
			}
			return err
		}
		if err := open(); err != nil {
			return err
		}
		n, err := a.tx.Exec(ctx, "resume", known)
		if err == nil && n == 0 { // somebody else has just ended it, or it is not this login's
			err = open()
		}
		if err != nil {
			return err
		}
		if n == 0 { // a login sees all pauses, but may end only its own
			return &FieldError{on.String(), "pause", fmt.Sprintf("belongs to %s; only an administrator may end it", ended.By)}
		}
		ended.Subject, ended.ResumedAt, ended.ResumedBy, ended.Missed = on.Name, a.now, a.o.By, missed
		kind, name := on.logged()
		return a.record(kind, name, "resume", id, nil, struct {
			Missed bool `json:"missed,omitempty"`
		}{missed})
	})
	return ended, err
}

// openPause reads the pause that holds a subject, as far as the pause can be read; ErrNotFound if there is none.
func (s *Store) openPause(ctx context.Context, q engine.Runner, known engine.Args, p *Pause) error {
	found := false
	err := q.Query(ctx, "open_pause", known, engine.Reads(scanPause(p)...).Each(func(fault string) {
		found, p.Fault = true, fault
	}))
	if err == nil && !found {
		err = fmt.Errorf("look for a pause: %w", ErrNotFound)
	}
	return err
}

// subject looks up a subject, and replaces a short name by the full one.
func (a *applier) subject(ctx context.Context, on *Subject) (id int64, subject string, err error) {
	switch on.Scope {
	case ScopeAll:
		on.Name = ""
		return 0, "", nil
	case ScopeJob:
		j, err := a.s.findJob(ctx, a.tx, on.Name)
		if err == nil { // otherwise it may be tried again, with the name that was given
			on.Name = j.FullName()
		}
		return j.ID, "", err
	case ScopeSchedule:
		c, err := a.s.findSchedule(ctx, a.tx, on.Name)
		return c.ID, "", err
	}
	if on.Name == "" { // on SQLite, which has no logins, every job has an empty owner
		return 0, "", &FieldError{"pause", on.Scope, "is missing"}
	}
	return 0, on.Name, nil
}

// anybody refuses to pause a tag that no job has, or an owner without jobs: that is a typing mistake.
func (a *applier) anybody(ctx context.Context, on Subject) error {
	if on.Scope != ScopeTag && on.Scope != ScopeOwner {
		return nil
	}
	known := false
	err := eachJobName(ctx, a.tx, func(j JobName) {
		known = known || on.Scope == ScopeOwner && j.Owner == on.Name || on.Scope == ScopeTag && slices.Contains(j.Tags, on.Name)
	})
	if err != nil {
		return err
	}
	if !known {
		return &MissingError{Kind: on.Scope, Name: on.Name, said: on.String()}
	}
	return nil
}

// logged returns the subject in the change log: pauses of jobs and schedules belong to the history of those.
func (u Subject) logged() (kind, subject string) {
	switch u.Scope {
	case ScopeJob, ScopeSchedule:
		return u.Scope, u.Name
	case ScopeAll:
		return "pause", u.Scope
	}
	return "pause", u.Scope + " " + u.Name
}

// maxPauses bounds how many of the pauses that no pass has seen the end of are read for a list of jobs.
const maxPauses = 10_000

// Pauses lists the pauses in force, a freeze first, or, with ended, all pauses on record, otherwise the newest first. Subject is the
// name of the job or schedule.
func (s *Store) Pauses(ctx context.Context, ended bool, limit int) ([]Pause, error) {
	statement := "pauses_held"
	if ended {
		statement = "pauses"
	}
	return readPauses(ctx, s.db, statement, engine.Args{"now": s.now(), "limit": limit})
}

func readPauses(ctx context.Context, q engine.Runner, statement string, a engine.Args) (out []Pause, err error) {
	var p Pause
	var j Job
	var schedule string
	rd := engine.Reads(append(scanPause(&p), engine.Nullable(&j.Owner), engine.Nullable(&j.Name), engine.Nullable(&schedule))...)
	err = q.Query(ctx, statement, a, rd.Each(func(fault string) {
		switch p.Fault = fault; {
		case j.Name != "":
			p.Subject = j.FullName()
		case schedule != "":
			p.Subject = schedule
		}
		out = append(out, p)
		p, j, schedule = Pause{}, Job{}, ""
	}))
	return out, err
}

// pausesSize bounds how many pauses one statement inserts.
const pausesSize = 5000

// pauseFailing pauses jobs because of their runs, until somebody resumes them, and records that in the change log.
func (s *Store) pauseFailing(ctx context.Context, tx engine.Runner, now any, jobs []changeRow) error {
	for part := range slices.Chunk(jobs, pausesSize) {
		for i := range part {
			part[i].Action = "pause"
			if r := []rune(part[i].Reason); len(r) > 1000 { // more does not fit MySQL's column
				part[i].Reason = string(r[:999]) + "…"
			}
		}
		rows, err := doc(part)
		if err != nil {
			return err
		}
		if err := execAll(ctx, tx, engine.Args{"now": now, "rows": rows}, "insert_pauses", "insert_changes"); err != nil {
			return err
		}
	}
	return nil
}
