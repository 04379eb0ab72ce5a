package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// The events of a job that a hook can follow. An event for the end of a run has the name of the run's state.
const (
	EventFailed    = Failed      // a run failed, and no attempt is left
	EventRecovered = "recovered" // a run succeeded, and one had failed or was lost since the last success
	EventMissed    = "missed"    // nominal times lie in a gap, because no pass came in time
	EventLate      = "late"      // a run was made long after its nominal time, or a trigger was silent
	EventLost      = Lost        // no holder of a run ever reported its end
	EventParked    = "parked"    // the definition cannot be used
	EventPaused    = "paused"    // the job paused itself after a failed run
)

// NoHook stands in the place of a hook's name and says that there is no hook, even if the host has one for all jobs. A hook
// job with this name can only be named together with its owner.
const NoHook = "none"

// Hooks name the job that runs once for each event: by its name, or by owner/name. Empty: the hook that the host has
// for all jobs, if any.
type Hooks struct {
	Failed    string `json:"failed,omitempty"`
	Recovered string `json:"recovered,omitempty"`
	Missed    string `json:"missed,omitempty"`
	Late      string `json:"late,omitempty"`
	Lost      string `json:"lost,omitempty"` // default: Failed
	Parked    string `json:"parked,omitempty"`
	Paused    string `json:"paused,omitempty"`
}

// For returns the hook that follows an event.
func (h *Hooks) For(event string) (name string) {
	for e, hook := range h.All() {
		if e == event {
			name = *hook
		}
	}
	if event == EventLost {
		return cmp.Or(name, h.Failed)
	}
	return name
}

// Of adds this owner to the names of hooks that have no owner.
func (h Hooks) Of(owner string) Hooks {
	for _, hook := range h.All() {
		if owner != "" && *hook != "" && *hook != NoHook && !strings.Contains(*hook, "/") {
			*hook = owner + "/" + *hook
		}
	}
	return h
}

// All yields each event with its hook.
func (h *Hooks) All() iter.Seq2[string, *string] {
	return func(yield func(string, *string) bool) {
		_ = yield(EventFailed, &h.Failed) && yield(EventRecovered, &h.Recovered) && yield(EventMissed, &h.Missed) && yield(EventLate, &h.Late) &&
			yield(EventLost, &h.Lost) && yield(EventParked, &h.Parked) && yield(EventPaused, &h.Paused)
	}
}

// Jobs yields the events that have a hook, each with the name of the job.
func (h *Hooks) Jobs() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for event, hook := range h.All() {
			if *hook != "" && *hook != NoHook && !yield(event, *hook) {
				return
			}
		}
	}
}

// names appends the names, without owners, of the jobs that are hooks.
func (h *Hooks) names(list []string) []string {
	for _, name := range h.Jobs() {
		list = append(list, plainName(name))
	}
	return list
}

// CheckHook refuses a text that cannot be the name of a job.
func CheckHook(name string) error {
	if owner, plain, ok := strings.Cut(name, "/"); ok {
		return cmp.Or(checkName(owner), checkName(plain))
	}
	return optionalName(name)
}

// Event is the information about an event that a hook gets. Its fields, except the first two, are the arguments of
// the hook's run. The run has all of these arguments: one that does not apply is empty.
type Event struct {
	Hook  string `json:"-"`
	Cause string `json:"-"` // unique among the events of this kind

	Kind         string    `json:"event"`
	At           time.Time `json:"-"`
	Job          string    `json:"job"`
	Owner        string    `json:"owner"`
	RunID        string    `json:"run_id"`
	ScheduledFor time.Time `json:"-"`        // if there are several nominal times, the first
	Count        int       `json:"count"`    // of nominal times
	Error        string    `json:"error"`    // or the reason; only its beginning
	Attempts     int       `json:"attempts"` // of the run's steps
	Streak       int       `json:"streak"`   // failed runs in a row

	// For a trigger that was silent, instead of a job:
	Trigger string    `json:"trigger"` // its name
	Since   time.Time `json:"-"`       // its last pass before the silence
	Seconds int64     `json:"seconds"` // of the silence
}

// eventErrorSize bounds the error in the arguments of a hook's run, in bytes. The run that failed has the full error.
const eventErrorSize = 2000

// args returns the arguments of the hook's run.
func (e *Event) args() (json.RawMessage, error) {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(occurrenceTime)
	}
	told := *e
	if len(told.Error) > eventErrorSize {
		told.Error = strings.ToValidUTF8(told.Error[:eventErrorSize], "") + " …"
	}
	return json.Marshal(struct {
		Event
		At           string `json:"at"`
		ScheduledFor string `json:"scheduled_for"`
		Since        string `json:"since"`
	}{told, at(e.At), at(e.ScheduledFor), at(e.Since)})
}

// Unheard is an event whose hook could not be run. The job that caused the event continues.
type Unheard struct {
	Job   string `json:"job"` // owner/name; empty: the event is about the trigger
	Event string `json:"event"`
	Hook  string `json:"hook"`
	Error string `json:"error"`
}

// raise makes a run of a hook for each event of the batch, unless noHooks says why not. The runs wait, and the
// decisions for their jobs queue them. A problem with a hook is reported, and does not delay the batch.
//
// A hook is read without a lock, like definitions: a hook that is disabled at this moment may run once more.
func (b *Batch) raise(ctx context.Context, w *writer, noHooks string) error {
	if len(w.events) == 0 {
		return nil
	}
	unheard := func(e *Event, why string) {
		b.Unheard = append(b.Unheard, Unheard{FullName(e.Owner, e.Job), e.Kind, e.Hook, why})
	}
	if noHooks != "" {
		for i := range w.events {
			unheard(&w.events[i], noHooks)
		}
		return nil
	}
	hooks, err := w.s.readHooks(ctx, w.tx, w.events)
	if err != nil {
		return err
	}
	for i := range w.events {
		e := &w.events[i]
		switch j, ok := hooks[e.HookName()]; {
		case !ok:
			unheard(e, "there is no such job")
		case j.fault != "":
			unheard(e, "its row cannot be read: "+j.fault)
		case j.Disabled:
			unheard(e, "the job is disabled")
		default:
			args, err := e.args()
			if err != nil {
				return fmt.Errorf("encode the arguments of a hook: %w", err)
			}
			w.make(Run{JobID: j.ID, Owner: j.Owner, Job: j.Name, Occurrence: OccurrenceHook(e.Kind, e.Cause),
				State: Waiting, Queue: j.Queue, Priority: j.Priority, ReadyAt: w.now, Args: string(args)})
		}
	}
	return nil
}

// Raise makes the run of a hook for an event that comes from no decision about a job. The key of the run ensures that
// there is only one, however many passes raise the event. If the database refuses the run, Raise returns the event as
// unheard, as it does if a hook cannot run.
//
// Crash windows: before COMMIT there is no run, and the next pass raises the event again, since only the record of
// this pass ends the silence. After COMMIT, the run exists.
func (s *Store) Raise(ctx context.Context, e Event) (unheard []Unheard, err error) {
	err = s.db.InTx(ctx, func(tx *engine.Tx) error {
		var b Batch
		w := newWriter(s, tx, e.At, 0)
		w.events = append(w.events, e)
		if err := b.raise(ctx, w, ""); err != nil {
			return err
		}
		unheard = b.Unheard
		return w.write(ctx)
	})
	if err != nil && s.Refused(ctx, err) {
		return []Unheard{{Event: e.Kind, Hook: e.Hook, Error: s.kept("", err.Error())}}, nil
	}
	return unheard, err
}

// HookName is the full name of the event's hook. A hook named without an owner has the owner of the job.
func (e *Event) HookName() string {
	if e.Owner == "" || strings.Contains(e.Hook, "/") {
		return e.Hook
	}
	return e.Owner + "/" + e.Hook
}

// readHooks reads the jobs that are the hooks of the events, by full name.
func (s *Store) readHooks(ctx context.Context, tx *engine.Tx, events []Event) (map[string]Job, error) {
	names := make([]string, len(events))
	for i := range events {
		names[i] = plainName(events[i].Hook)
	}
	hooks := map[string]Job{}
	if names = legible(names); len(names) == 0 { // MySQL and MariaDB have no empty list
		return hooks, nil
	}
	var j Job
	rd := engine.Reads(&j.ID, &j.Owner, &j.Name, &j.Queue, &j.Priority, not{&j.Disabled})
	err := tx.Query(ctx, "hooks", engine.Args{"ids": names}, rd.Each(func(fault string) {
		j.fault = fault
		hooks[j.FullName()] = j
		j = Job{}
	}))
	return hooks, err
}

// hooks finds the jobs that a job names as hooks, which may be anywhere in the same file, and
// writes their names in one form.
func (a *applier) hooks(j *Job) {
	for event, hook := range j.On.All() {
		name, err := a.known.hook(j, *hook)
		if err != nil {
			a.refuse(&FieldError{"job " + j.FullName(), "on." + event, err.Error()})
		} else {
			*hook = name
		}
	}
}

// hook returns the one form of the name of a job that j names as a hook.
func (k *knownJobs) hook(j *Job, name string) (string, error) {
	if name == "" || name == NoHook {
		return name, nil
	}
	other, err := k.find(name, j.Owner)
	if err != nil {
		return "", err
	}
	if name = j.calls(other); name == NoHook { // the name of a job
		name = other.FullName()
	}
	return name, nil
}
