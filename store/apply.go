package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Group is a cap that several jobs share.
type Group struct {
	Name       string `json:"name"`
	MaxRunning int    `json:"max_running"`

	Fault string `json:"unreadable,omitempty"` // what in its row cannot be read
}

// Definitions are the definitions that people write.
type Definitions struct {
	Schedules []Schedule `json:"schedules,omitempty"`
	Jobs      []Job      `json:"jobs,omitempty"`
	Groups    []Group    `json:"groups,omitempty"`
	Calendars []Calendar `json:"calendars,omitempty"`
	Renames   []Rename   `json:"-"`

	// Checked says that each job has been through Normalize and Validate, and has not changed since. The check of a
	// job that is already as it should be takes as long as all other work on it.
	Checked bool `json:"-"`
}

// ApplyOptions say how definitions are applied.
type ApplyOptions struct {
	Manifest   string // the manifest that owns the rows; empty: none does
	Prune      bool   // remove definitions that the manifest owns but does not name
	DryRun     bool   // only report the changes: a login that may read is enough
	CreateOnly bool   // ErrExists if a definition of that name exists
	// TakeOwnership takes over definitions that another manifest owns. Without it, that is an error: two files that
	// both define something would undo each other's changes for ever.
	TakeOwnership bool
	// Start resolves a start schedule: it returns its first time after an instant. If it is nil, the first decision
	// does that.
	Start func(rule, zone string, after time.Time) (time.Time, error)
	// First returns the first time of a rule, after an instant. It refuses a rule that has no time, such as one to which
	// its calendar leaves none: the next tick would park its jobs. If it is nil, nothing is refused.
	First func(Job, Schedule, *Calendar, time.Time) (time.Time, error)
	// Progress, if set, is called after each batch with the number of jobs that are done.
	Progress func(done, of int)
	Author   // for the change log
}

// Change is one change of a definition: a line of apply, and of the change log.
type Change struct {
	At        time.Time     `json:"at,omitzero"`
	By        string        `json:"by,omitempty"`
	Kind      string        `json:"kind"` // job, schedule, calendar, group; pause: of a tag, of an owner, or of everything
	Subject   string        `json:"subject"`
	subjectID int64         // its id in the change log; 0: it has none
	Action    string        `json:"action"` // done and left are only lines of apply; the others are those of the commands, such as create or run-now
	Reason    string        `json:"reason,omitempty"`
	Fields    []FieldChange `json:"fields,omitempty"` // the fields that differ, if there was a definition both before and after
	// The whole definition, as read from the change log.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	Fault  string          `json:"unreadable,omitempty"` // what in its row cannot be read
}

// PlainSubject returns the subject as a file names it: without the owner.
func (c *Change) PlainSubject() string { return plainName(c.Subject) }

// Apply makes the database match the definitions, in one transaction, and returns what it changed: nothing if the
// database matches them already. Groups, calendars and schedules come first, so that jobs may use them. In the rules
// that jobs have of their own, Apply notes when the database got them.
func (s *Store) Apply(ctx context.Context, d Definitions, o ApplyOptions) ([]Change, error) {
	return s.inTurn(ctx, o, func(a *applier) error { return a.all(ctx, d) })
}

// inTurn runs fn in a transaction, and returns the changes that fn made. Transactions that edit definitions as a
// whole take turns. A dry run only reads.
func (s *Store) inTurn(ctx context.Context, o ApplyOptions, fn func(*applier) error) ([]Change, error) {
	var changes []Change
	var caps []capChange
	login, err := s.Login(ctx)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(o.complete(login), firstError("manifest", check{"name", CheckManifest(o.Manifest)})); err != nil {
		return nil, err
	}
	transaction := s.db.InTx
	if o.DryRun {
		transaction = s.db.InSnapshot
	}
	err = transaction(ctx, func(tx *engine.Tx) error {
		a := &applier{s: s, tx: tx, o: o, login: login, dry: newDryRun(o.DryRun)}
		if err := a.takeTurns(ctx); err != nil {
			return err
		}
		if err := a.tx.Row(ctx, "read_now", engine.Args{"now": s.now()}, engine.At(&a.now)); err != nil {
			return err
		}
		if err := fn(a); err != nil {
			return err
		}
		changes, caps = a.changes, a.caps
		return a.flush(ctx)
	})
	if err == nil {
		s.askAgain(ctx, caps)
	}
	return changes, err
}

type applier struct {
	s         *Store
	tx        *engine.Tx
	o         ApplyOptions
	login     string
	now       time.Time
	groups    map[string]Group
	calendars map[string]*Calendar // the calendars that the definitions name, as they are at this point
	schedules map[string]Schedule  // the schedules of the definitions, as they are at this point
	known     knownJobs
	kinds     kinds // of the jobs that exist
	done      doneJobs
	checked   bool    // see Definitions.Checked
	refused   []error // mistakes, to be returned together: the first ones
	refusals  int     // how many such mistakes there are
	changes   []Change
	caps      []capChange       // of groups that have other caps now
	log       []json.RawMessage // rows for the change log, not written yet
	dry       dryRun
}

func (a *applier) all(ctx context.Context, d Definitions) error {
	a.checked = d.Checked
	if err := a.renames(ctx, d); err != nil {
		return err
	}
	groups, err := a.s.groups(ctx, a.tx)
	if err != nil {
		return err
	}
	for _, g := range d.Groups {
		if err := a.group(ctx, g, groups); err != nil {
			return err
		}
	}
	if err := a.allCalendars(ctx, d); err != nil {
		return err
	}
	names := make([]string, len(d.Schedules))
	for i := range d.Schedules {
		names[i] = d.Schedules[i].Name
	}
	schedules, err := a.s.schedulesNamed(ctx, a.tx, names)
	if err != nil {
		return err
	}
	for was, is := range a.dry.shared {
		if schedules[was].ID == is.ID { // the name is free for a new schedule
			delete(schedules, was)
		}
		schedules[is.Name] = is
	}
	a.schedules = schedules
	for i := range d.Schedules {
		if err := a.schedule(ctx, d.Schedules[i], schedules); err != nil {
			return err
		}
	}
	for _, g := range d.Groups {
		groups[g.Name] = g
	}
	a.groups = groups
	if err := a.find(ctx, d.Jobs); err != nil {
		return err
	}
	if err := a.findOwned(ctx); err != nil {
		return err
	}
	if err := a.findDone(ctx, d.Jobs); err != nil {
		return err
	}
	if err := a.jobs(ctx, d.Jobs); err != nil {
		return err
	}
	if a.o.Manifest != "" && !a.o.CreateOnly {
		return a.leave(ctx, d)
	}
	return nil
}

// takeTurns locks the row that migrators lock too, so that all transactions that apply definitions, or backfill, take
// turns. A dry run takes no turn: it sees one state of the database.
func (a *applier) takeTurns(ctx context.Context) error {
	if a.dry.on {
		return nil
	}
	var version int
	return a.tx.Row(ctx, "lock_installation", engine.Args{}, &version)
}

func (a *applier) group(ctx context.Context, g Group, known map[string]Group) error {
	if err := g.Validate(); err != nil {
		return err
	}
	old, ok := known[g.Name]
	switch {
	case ok && a.o.CreateOnly:
		return fmt.Errorf("group %s: %w", g.Name, ErrExists)
	case ok && same(old, g): // a definition that cannot be read never counts as the same
		return nil
	case ok:
		c := capChange{g.Name, Waiting, "wake_held"} // there may be room for waiting runs now
		if g.MaxRunning < old.MaxRunning {
			c = capChange{g.Name, Queued, "hold_runs"} // there may be more queued runs than it admits
		}
		if err := a.run(ctx, engine.Args{"name": g.Name, "max_running": g.MaxRunning}, "update_group"); err != nil {
			return err
		}
		if !a.dry.on {
			a.caps = append(a.caps, c)
			if err := c.ask(ctx, a.tx); err != nil {
				return err
			}
		}
		return a.record("group", g.Name, "change", 0, old, g)
	}
	if err := a.run(ctx, engine.Args{"name": g.Name, "max_running": g.MaxRunning}, "insert_group"); err != nil {
		return taken("group "+g.Name, err)
	}
	if err := a.run(ctx, engine.Args{"name": g.Name}, "touch_group"); err != nil {
		return err
	}
	return a.record("group", g.Name, "create", 0, nil, g)
}

// taken explains why there can be no new group, calendar or schedule with a name that the login does not find: all
// owners share these names.
func taken(subject string, err error) error {
	if !errors.Is(err, ErrExists) {
		return err
	}
	kind, _, _ := strings.Cut(subject, " ")
	return &FieldError{subject, "name", "another login has a " + kind + " with this name, and all logins share these names; choose another one"}
}

func scheduleArgs(c Schedule, a *applier) engine.Args {
	return engine.Args{"now": a.now, "id": c.ID, "name": engine.Null(c.Name), "job": nil, "rule": c.Rule, "zone": c.Zone, "nonexistent": c.Nonexistent,
		"ambiguous": c.Ambiguous, "calendar": c.Calendar, "on_holiday": cmp.Or(c.OnHoliday, HolidaySkip),
		"calendar_version": a.versionOf(c.Calendar), "description": c.Description, "manifest": engine.Null(c.Manifest)}
}

func (a *applier) schedule(ctx context.Context, c Schedule, known map[string]Schedule) error {
	c.Normalize()
	if err := c.Validate(); err != nil {
		return err
	}
	old, ok := known[c.Name]
	c.Manifest, c.CreatedAt = a.o.Manifest, old.CreatedAt
	if err := a.observes("schedule "+c.Name, Job{}, c); err != nil {
		a.refuse(err)
		c.Calendar = "" // which may not exist; the schedule is written, and rolled back, for the jobs that name it
	}
	old.Normalize() // plain SQL may have written it in another way
	err := a.mayTake("schedule "+c.Name, old.Manifest)
	switch {
	case err != nil && !a.o.CreateOnly:
		a.refuse(err)
		return nil
	case ok && a.o.CreateOnly:
		return fmt.Errorf("schedule %s: %w", c.Name, ErrExists)
	case ok && same(old, c):
		return nil
	case ok:
		c.ID = old.ID
		if err := a.run(ctx, scheduleArgs(c, a), "update_schedule"); err != nil {
			return err
		}
		known[c.Name] = c
		return a.record("schedule", c.Name, "change", c.ID, old, c)
	}
	if c.ID, err = a.insertSchedule(ctx, c); err != nil {
		return taken("schedule "+c.Name, err)
	}
	known[c.Name] = c
	return a.record("schedule", c.Name, "create", c.ID, nil, c)
}

func (a *applier) insertSchedule(ctx context.Context, c Schedule) (id int64, err error) {
	if a.dry.on {
		return a.dry.id(), nil
	}
	if err := a.run(ctx, scheduleArgs(c, a), "insert_schedule"); err != nil {
		return 0, err
	}
	err = a.tx.Row(ctx, "schedule_id", engine.Args{"name": c.Name}, &id)
	return id, err
}

// mayTake refuses to change a definition that another manifest owns.
func (a *applier) mayTake(subject, owner string) error {
	if owner == "" || owner == a.o.Manifest || a.o.TakeOwnership {
		return nil
	}
	this := "this one has no name"
	if a.o.Manifest != "" {
		this = fmt.Sprintf("this one is %q", a.o.Manifest)
	}
	return &FieldError{subject, "manifest", fmt.Sprintf("belongs to the manifest %q, and %s; --take-ownership takes it over", owner, this)}
}

// calls returns how the definition of j names another job: without an owner if it is the owner of j, so that the definition
// means the same under any login.
func (j *Job) calls(other *Job) string {
	if other.Owner == j.Owner {
		return other.Name
	}
	return other.FullName()
}

// FullName returns the full name of the job.
func (j *Job) FullName() string { return FullName(j.Owner, j.Name) }

// FullName returns owner/name, or the name alone where there is no owner.
func FullName(owner, name string) string { return strings.TrimPrefix(owner+"/"+name, "/") }
