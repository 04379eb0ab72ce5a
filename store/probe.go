package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Probe has the facts about the database that one statement reads before a pass begins.
type Probe struct {
	Now    time.Time
	Schema Schema
	Login  string // the name under which the database knows this program; empty on SQLite
	Frozen bool
	// FrozenUntil is the end of the freeze; the end of time where nobody has set one.
	FrozenUntil time.Time
	// Thawed is when the last freeze that is over has ended; zero: there was none. Nothing is late because of a time before that.
	Thawed      time.Time
	Queued      bool      // a run of the queue may be taken now
	QueuedSince time.Time // since when the first of these runs is ready, but not before Thawed; zero: it cannot be read
	Parked      int       // parked jobs, without removed and disabled ones
	Failing     int       // failing jobs: see JobStatus.Failing
	Expired     bool      // there is history to delete
	Warning     string    // a problem of the database's settings; set in the first pass of a day only
	Others      bool      // there are jobs of other logins; their own ticks decide their nominal times
	NextWake    time.Time // when the next decision is needed; not after Now: one is needed now
	DueSince    time.Time // since when the first decision that is needed now is needed, but not before Thawed; zero: none is, or it is unknown
	LateSince   time.Time // like DueSince, without jobs that are parked and stay due until the repair: passes do decide for them
	Need        [needs]bool
	Calendar    bool // a calendar was edited: SeeCalendars finds its schedules
	since       time.Time
	lastTick    time.Time
	lastBegan   time.Time // when the pass on record began that began last and has not failed; a long pass may have ended after it
	lastChecked time.Time // when the pass began that came last to Check and Older
	passes      int64     // of the stretch that lastTick ended
}

const day = 24 * time.Hour

// FromThaw is the instant from which something is late that waits since another one: in a freeze no pass decides or takes
// anything. A zero instant stays zero.
func (p *Probe) FromThaw(since time.Time) time.Time {
	if !since.IsZero() && p.Thawed.After(since) {
		return p.Thawed
	}
	return since
}

// Anything reports whether a pass has something to decide, to take or to delete.
func (p *Probe) Anything() bool {
	for _, n := range p.Need {
		if n {
			return true
		}
	}
	return p.Queued || p.Expired || p.Calendar
}

// Undecided reports whether a pass has something to decide beside what is due since NextWake, such as an edit.
func (p *Probe) Undecided() bool {
	without := *p
	without.Queued, without.Expired = false, false
	if !p.NextWake.IsZero() && !p.NextWake.After(p.Now) {
		without.Need[RunWakes], without.Need[Due] = false, false
	}
	return without.Anything()
}

// regular is how many passes without a silence show that a trigger comes at least every five minutes.
const regular = 10

// SilentSince is the last pass of the trigger on record, if that is longer ago than allowed although the trigger came regularly
// before; otherwise it is zero. An hourly trigger never counts as silent, nor does one that comes by alarms. came is that of Gap.
func (p *Probe) SilentSince(allowed, came time.Duration) time.Time {
	if allowed <= 0 || p.passes < regular || p.Gap(came) <= max(allowed, silence) {
		return time.Time{}
	}
	return p.lastTick
}

// Gap is for how long the trigger did not come since its last pass on record. came is the longest such time that a process knows
// that has tried since, whatever is on record; zero: nobody knows.
func (p *Probe) Gap(came time.Duration) time.Duration {
	gap := p.Now.Sub(p.lastTick)
	if came > 0 {
		gap = min(gap, came)
	}
	return gap
}

// unrecorded is how long no pass may be on record, however seldom the trigger comes. It is more than the time between two passes of a
// daily one.
const unrecorded = 2 * day

// UnrecordedSince is the last pass on record, if passes have probably come since then that could not be recorded: it is longer ago
// than allowed although the trigger came regularly before, or longer than unrecorded. Otherwise it is zero.
func (p *Probe) UnrecordedSince(allowed time.Duration) time.Time {
	if since := p.SilentSince(allowed, 0); !since.IsZero() || p.lastTick.IsZero() || p.Now.Sub(p.lastTick) <= unrecorded {
		return since
	}
	return p.lastTick
}

// Back is the instant of the probe, if the database may have been away until then for longer than a lease: no pass of the trigger
// is on record for so long, although passes came more often before. Otherwise it is zero.
func (p *Probe) Back(lease time.Duration) time.Time {
	if p.passes < regular || p.lastTick.Sub(p.since) >= time.Duration(p.passes)*lease || p.Now.Sub(p.lastTick) < lease {
		return time.Time{}
	}
	return p.Now
}

// CheckDue reports whether no pass of the trigger has come to Check and Older yet that began within this hour, or none since a silence.
func (p *Probe) CheckDue() bool { return p.Now.Sub(p.lastTick) > silence || !p.sameHour(p.lastChecked) }

// FirstOfHour reports whether this is the first pass of its trigger that begins within an hour, without those that failed.
func (p *Probe) FirstOfHour() bool { return !p.sameHour(p.lastBegan) }

func (p *Probe) sameHour(at time.Time) bool {
	return at.Truncate(time.Hour).Equal(p.Now.Truncate(time.Hour))
}

// IsNew reports whether no pass of the trigger on record can have told what is so since an instant. Of a worker, no pass is on record.
func (p *Probe) IsNew(since time.Time) bool { return since.After(p.lastBegan) }

// Probe reads the clock, the schema, and whether anything needs a decision or may be taken. The
// error wraps ErrSchema where the tables do not exist.
func (s *Store) Probe(ctx context.Context, tick, queue string) (*Probe, error) {
	p := &Probe{Schema: Schema{Latest: Latest}}
	var job, link, schedule, pause, calendar, ended present
	var least, most string // the first and the last owner
	var path string
	var next, late, wake, woken, queued, since, last, began, checked, freeze, thaw engine.Moment
	err := s.db.PartialRow(ctx, "probe", engine.Args{"now": s.now(), "name": tick, "queue": queue, "owners": s.owners()},
		engine.At(&p.Now), &p.Schema.Version, &p.Schema.Oldest, engine.Nullable(&p.Schema.Instance), &p.Schema.Owners, &p.Schema.keyless, &p.Schema.hidden, &freeze, &thaw, &next, &late, &wake, &woken,
		&job, &link, &schedule, &pause, &calendar, &ended, &queued, engine.Nullable(&least), engine.Nullable(&most), &p.Parked, &p.Failing, &p.Expired, &since, &last, &began, &checked, &p.passes, &p.Login, &path)
	if errors.Is(err, ErrNotFound) {
		c, _, err := s.schema(ctx)
		return nil, cmp.Or(err, c.Check(), Schema{}.Check()) // the row may have come in the meantime
	}
	if err != nil {
		return nil, err
	}
	// An instant that cannot be read may hide other instants behind it in the index, so it counts as due.
	due := func(m *engine.Moment) bool { return m.Unreadable || m.Set() && !m.After(p.Now) }
	for _, owner := range s.served {
		var first, theirs engine.Moment
		if err := s.db.Row(ctx, "next_of_owner", engine.Args{"now": s.now(), "owner": owner}, &first, &theirs); err != nil {
			return nil, err
		}
		earliest(&p.LateSince, theirs.Time)
		if !due(&next) && (first.Unreadable || first.Set() && (!next.Set() || first.Before(next.Time))) {
			next = first
		}
	}
	p.since, p.lastTick, p.lastBegan, p.lastChecked = since.Time, last.Time, began.Time, checked.Time
	if p.Now.Truncate(day) != p.lastBegan.Truncate(day) {
		p.Warning = s.db.Problem(path, p.Login)
	}
	p.Frozen, p.FrozenUntil, p.Thawed = freeze.Set() || freeze.Unreadable, freeze.Time, thaw.Time
	p.Queued, p.QueuedSince, p.Calendar = queued.Set() || queued.Unreadable, p.FromThaw(queued.Time), bool(calendar)
	p.Others = s.db.Engine().KnowsLogins && (least != "" && least != p.Login || most != "" && most != p.Login)
	p.Need = [needs]bool{bool(job), bool(link), bool(schedule), bool(pause), due(&wake), due(&next), bool(ended)}
	earliest(&p.NextWake, next.Time)
	earliest(&p.NextWake, wake.Time)
	if due(&next) {
		earliest(&p.DueSince, next.Time)
	}
	if due(&wake) {
		earliest(&p.DueSince, woken.Time)
		earliest(&p.LateSince, woken.Time)
	}
	earliest(&p.LateSince, late.Time)
	p.DueSince, p.LateSince = p.FromThaw(p.DueSince), p.FromThaw(p.LateSince)
	return p, p.Schema.Check()
}

// earliest moves an instant back to another one, which may be zero: there is none.
func earliest(of *time.Time, t time.Time) {
	if !t.IsZero() && (of.IsZero() || t.Before(*of)) {
		*of = t
	}
}

// NextAfter is when the first decision after an instant is needed; zero: no such time is known. What stays due hides it from
// NextWake.
func (s *Store) NextAfter(ctx context.Context, after time.Time) (first time.Time, err error) {
	for _, owner := range s.owners() {
		var next engine.Moment // a row that cannot be read is due already
		if err := s.db.Row(ctx, "next_after", engine.Args{"owner": engine.Null(owner), "after": after}, &next); err != nil {
			return first, err
		}
		if next.Set() && (first.IsZero() || next.Before(first)) {
			first = next.Time
		}
	}
	return first, nil
}

// NewestDue is since when the last decision that is needed by an instant is needed; zero: no such time is known. What was due
// before hides it from DueSince.
func (s *Store) NewestDue(ctx context.Context, upTo time.Time) (newest time.Time, err error) {
	for _, owner := range s.owners() {
		var due engine.Moment // a row that cannot be read may hide others
		if err := s.db.Row(ctx, "newest_due", engine.Args{"now": s.now(), "owner": engine.Null(owner), "up_to": upTo}, &due); err != nil {
			return newest, err
		}
		if due.After(newest) {
			newest = due.Time
		}
	}
	return newest, nil
}

// CountPaused counts the jobs that a pause holds now.
func (s *Store) CountPaused(ctx context.Context) (n int, err error) {
	err = s.db.Row(ctx, "count_paused", engine.Args{"now": s.now()}, &n)
	return n, err
}

// Parked is a job that is not planned until its definition is repaired, or until a host has what the job needs.
type Parked struct {
	Job   string `json:"job"` // owner/name
	Error string `json:"error"`
}

// Failing is a job whose last runs have failed, or were lost, and which has not succeeded since.
type Failing struct {
	Job      string `json:"job"`      // owner/name
	Failures int    `json:"failures"` // in a row
	Error    string `json:"error,omitempty"`
}

// Trouble is how many jobs are parked or failing, and the first of them. Jobs that somebody has paused or disabled do not count.
type Trouble struct {
	ParkedJobs, FailingJobs int
	Parked                  []Parked
	Failing                 []Failing
}

// Trouble reads the jobs that are parked or failing, and names at most limit of each. It finds some only where Probe does.
func (s *Store) Trouble(ctx context.Context, limit int) (t Trouble, err error) {
	var j Job
	var stuck bool
	var text string
	var streak, jobs int
	err = s.db.Query(ctx, "troubled", engine.Args{"now": s.now(), "limit": limit}, engine.Reads(&j.Owner, &j.Name, &stuck, engine.Nullable(&text), &streak, &jobs).Each(func(string) {
		if stuck {
			t.ParkedJobs, t.Parked = jobs, append(t.Parked, Parked{j.FullName(), text})
		} else {
			t.FailingJobs, t.Failing = jobs, append(t.Failing, Failing{j.FullName(), streak, text})
		}
	}))
	return t, err
}

// Unserved are the jobs of one owner that have been due for a while and that this login cannot run.
// It seems that no tick logs in as their owner.
type Unserved struct {
	Owner string    `json:"owner"`
	Jobs  int       `json:"jobs"`
	Since time.Time `json:"since"` // since when the first of them has been due
}

// unservedAfter is how long the jobs of other owners may be due before the pass reports them: until
// then, the ticks of their owners may still be about to begin.
const unservedAfter = 5 * time.Minute

// Unserved counts the jobs of other owners for which no tick decides. It asks the database only
// where the probe has found jobs of other owners. In a freeze no tick decides, so nobody is missed just after it.
func (s *Store) Unserved(ctx context.Context, p *Probe) (list []Unserved, err error) {
	before := p.Now.Add(-unservedAfter)
	if !p.Others || p.Thawed.After(before) {
		return nil, nil
	}
	var u Unserved
	var since engine.Moment
	rd := engine.Reads(&u.Owner, &u.Jobs, &since)
	err = s.db.Query(ctx, "unserved", engine.Args{"login": p.Login, "since": before}, rd.Each(func(string) {
		if u.Since = since.Time; !slices.Contains(s.served, u.Owner) {
			list = append(list, u)
		}
	}))
	return list, err
}

// OldestQueued is the instant since which the oldest queued run of any queue is ready; zero: no run
// is queued.
func (s *Store) OldestQueued(ctx context.Context) (t time.Time, err error) {
	var first engine.Moment // a run whose instant cannot be read ends when it is taken
	err = s.db.Row(ctx, "oldest_queued", engine.Args{}, &first)
	return first.Time, err
}

// silence is the longest time between two ticks of one stretch.
const silence = 5 * time.Minute

// TickFacts are the facts about a pass that are recorded.
type TickFacts struct {
	Name, Holder, Version    string
	Decided, Started, Failed int
	Error                    string
	Took                     time.Duration
	Came                     time.Duration // see Probe.Gap
	Alarm                    bool          // the pass sets an alarm for the next one
	Checked                  bool          // the pass came to Check and Older
}

// RecordTick extends the stretch of ticks that the probe found, or begins one after a silence, or where the row of the
// stretch is gone. Where the last tick of the stretch lies in the future, its clock was ahead: the stretch then begins there,
// which AheadOf finds until ForgetAhead deletes it. It is the newest one until then, so that it is extended after a silence, too.
func (s *Store) RecordTick(ctx context.Context, p *Probe, f TickFacts) error {
	a := engine.Args{"now": s.now(), "name": f.Name, "holder": f.Holder, "version": f.Version, "decided": f.Decided, "started": f.Started,
		"failed": f.Failed, "error": engine.Null(s.kept("", f.Error)), "since": p.since,
		"began": p.Now, "checked": time.Time{}, "took_ms": f.Took.Milliseconds(), "regular": 1, "later_ms": skewed.Milliseconds()}
	if f.Error != "" { // it has told nothing else
		a["began"] = p.lastBegan
	}
	if f.Checked {
		a["checked"] = p.Now
	}
	if f.Alarm { // it comes when something is due, so its next pass is expected then, and no sooner
		a["regular"] = 0
	}
	if !p.since.IsZero() && (p.Gap(f.Came) <= silence || p.since.After(p.Now)) {
		if n, err := s.db.Exec(ctx, "record_tick", a); err != nil || n > 0 {
			return err
		}
	}
	_, err := s.db.Exec(ctx, "record_first_tick", a)
	if errors.Is(err, ErrExists) { // another tick of this name began the stretch in the same instant
		err = s.recordBeside(ctx, f.Name, a)
	}
	if err != nil {
		return fmt.Errorf("record the pass: %w", err)
	}
	return nil
}

// recordBeside extends the stretch that another tick has begun since the probe.
func (s *Store) recordBeside(ctx context.Context, name string, a engine.Args) error {
	p, err := s.Probe(ctx, name, "")
	if err != nil {
		return err
	}
	a["since"] = p.since
	if n, err := s.db.Exec(ctx, "record_tick", a); err != nil || n > 0 {
		return err
	}
	return errors.New("the row that another tick has begun is gone")
}
