package store

import (
	"context"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// skewed is how far an instant must lie in the future to show that a clock was wrong, and not just slightly off.
const skewed = 10 * time.Minute

// Ahead counts the jobs that Replan would plan anew, and returns the instant until which they sleep. It
// asks the database only if the record of the probe's tick also lies in the future: then the clock was ahead, and has
// been corrected. It reads all plans, since no index finds what only such a clock leaves behind. Where it finds no such job, ForgetAhead
// sees to it that it asks only once.
func (s *Store) Ahead(ctx context.Context, p *Probe) (int, time.Time, error) {
	return s.AheadOf(ctx, p.Now, []Trigger{{Since: p.since, LastAt: p.lastTick}})
}

// ForgetAhead deletes the record of the probe's tick if it lies in the future, and those of other triggers that do.
func (s *Store) ForgetAhead(ctx context.Context, p *Probe) error {
	if p.since.Sub(p.Now) <= skewed {
		return nil
	}
	_, err := s.db.Exec(ctx, "drop_ticks_ahead", engine.Args{"now": s.now(), "later_ms": skewed.Milliseconds()})
	if err == nil {
		p.since = time.Time{}
	}
	return err
}

// AheadOf is Ahead for those who only look: it asks if one of these triggers has its record in the future.
func (s *Store) AheadOf(ctx context.Context, now time.Time, list []Trigger) (n int, _ time.Time, err error) {
	var until engine.Moment
	ahead := func(t Trigger) bool { return t.Since.Sub(now) > skewed || t.LastAt.Sub(now) > skewed }
	if slices.ContainsFunc(list, ahead) {
		err = s.db.Row(ctx, "count_ahead", engine.Args{"now": s.now(), "later_ms": skewed.Milliseconds()}, &n, &until)
	}
	return n, until.Time, err
}

// Replanned is what Replan did.
type Replanned struct {
	Jobs   int              `json:"jobs"`             // planned again from now
	Pauses []CorrectedPause `json:"pauses,omitempty"` // begun or ended now, and not by the wrong clock
}

// CorrectedPause is a pause as Replan leaves it, with the end that it had, if that has moved.
type CorrectedPause struct {
	Pause
	WasUntil time.Time `json:"was_until,omitzero"`
}

// replanSize bounds the jobs of one transaction of Replan.
const replanSize = 500

// Replan takes back the decisions that were made while the database's clock was ahead: those of the named job, or of
// all jobs if the name is empty. The nominal times from now on are decided again, and the gaps end now. Runs that
// executed stay on record, and while they do, their occurrences do not run twice. Open runs continue by the correct
// clock: waits and leases are over, an end wakes the job, and repeat_after counts from now. That includes a run that was
// taken or requested by the wrong clock, although no pass decided about its job then. A run that was requested for a later
// time still waits for it. A time to come that was skipped stays skipped. A pause that the wrong clock has begun or ended begins
// or ends now: one of the named job, or any pause. Its end moves if it was given as a length or a day. What was created by it,
// and a start that a job got by it, counts from now. The next pass plans the jobs.
// start resolves a start schedule: see ApplyOptions.
func (s *Store) Replan(ctx context.Context, name string, start func(rule, zone string, after time.Time) (time.Time, error), who Author) (n Replanned, err error) {
	var job int64
	if name != "" {
		j, err := s.findJob(ctx, s.db, name)
		if err != nil {
			return n, err
		}
		job = j.ID
	}
	done := map[int64]bool{}
	if err := s.change(ctx, who, func(a *applier) (err error) {
		if n.Pauses, err = a.replanPauses(ctx, job); err == nil {
			a.o.Start = start
			done, err = a.replanCreated(ctx, job)
		}
		return err
	}); err != nil {
		return Replanned{}, err
	}
	for {
		n.Jobs = len(done)
		var ids []int64
		if err := s.change(ctx, who, func(a *applier) (err error) {
			ids, err = a.replan(ctx, job, done)
			return err
		}); err != nil {
			return n, err
		}
		for _, id := range ids {
			done[id] = true
		}
		if n.Jobs = len(done); len(ids) < replanSize {
			return n, nil
		}
	}
}

// replanCreated lets the jobs and schedules that the wrong clock has created count from now: the times of repeat_after, start
// and of some rules begin with the creation. A job that got its start by that clock counts from now, too. It returns the jobs.
func (a *applier) replanCreated(ctx context.Context, job int64) (map[int64]bool, error) {
	ahead := engine.Args{"now": a.now, "job": job, "later_ms": skewed.Milliseconds()}
	starts, err := a.startsAhead(ctx, ahead)
	if err != nil {
		return nil, err
	}
	ids, err := a.recordReplan(ctx, "created_ahead", ahead, nil, starts)
	done := make(map[int64]bool, len(ids))
	for _, id := range ids {
		done[id] = true
	}
	if err != nil || len(ids) == 0 {
		return done, err
	}
	for _, id := range ids {
		start, moves := starts[id]
		if !moves {
			continue
		}
		if _, err := a.tx.Exec(ctx, "rewind_start", engine.Args{"now": a.now, "id": id, "not_before": start.is.NotBefore}); err != nil {
			return done, err
		}
	}
	return done, execAll(ctx, a.tx, ahead, "rewind_rules", "rewind_schedules", "rewind_jobs")
}

// movedStart is the instant of a job's start before and after a replan, as the change log has it.
type movedStart struct{ was, is startTime }

type startTime struct {
	NotBefore time.Time `json:"not_before,omitzero"`
}

// startsAhead resolves the starts anew that the wrong clock has resolved, by job. Where that is not possible, since plain SQL has
// written the start, the job has none for now, and the next decision parks it.
func (a *applier) startsAhead(ctx context.Context, ahead engine.Args) (map[int64]movedStart, error) {
	starts := map[int64]movedStart{}
	var j Job
	err := a.tx.Query(ctx, "starts_ahead", ahead, engine.Reads(&j.ID, &j.Start, engine.Nullable(&j.StartZone), engine.At(&j.NotBefore)).Each(func(fault string) {
		if fault == "" { // of a row that cannot be read, the job is parked
			at, failed := a.o.Start(j.Start, j.StartZone, a.now)
			if failed != nil {
				at = time.Time{}
			}
			starts[j.ID] = movedStart{startTime{j.NotBefore}, startTime{at.UTC()}}
		}
		j = Job{}
	}))
	return starts, err
}

// recordReplan reads the jobs that a statement finds, and records the change of those that are not done, with the starts that move.
func (a *applier) recordReplan(ctx context.Context, statement string, args engine.Args, done map[int64]bool, starts map[int64]movedStart) (ids []int64, err error) {
	names := map[int64]string{}
	var j Job
	err = a.tx.Query(ctx, statement, args, engine.Reads(&j.ID, engine.Nullable(&j.Owner), engine.Nullable(&j.Name)).Each(func(string) {
		ids, names[j.ID] = append(ids, j.ID), j.FullName()
		j = Job{}
	}))
	for _, id := range ids {
		var was, is any
		if start, moves := starts[id]; moves {
			was, is = start.was, start.is
		}
		if err == nil && !done[id] {
			err = a.record("job", names[id], "replan", id, was, is)
		}
	}
	return ids, err
}

// replanPauses lets the pauses that the wrong clock has begun or ended begin or end now. Otherwise, one that somebody has ended
// would go on holding its jobs, and one that has begun would hold runs, but not the times of those. A pause that this login may
// not change stays as it is.
func (a *applier) replanPauses(ctx context.Context, job int64) (out []CorrectedPause, err error) {
	ahead := engine.Args{"now": a.now, "job": job, "later_ms": skewed.Milliseconds(), "limit": maxPauses}
	list, err := readPauses(ctx, a.tx, "pauses_ahead", ahead)
	if err != nil {
		return nil, err
	}
	for i := range list {
		was := &list[i]
		is := CorrectedPause{Pause: was.rewound(a.now)}
		changed, err := a.tx.Exec(ctx, "rewind_pause", engine.Args{"now": a.now, "id": was.ID, "until_at": is.Until})
		if err != nil {
			return nil, err
		}
		if changed == 0 {
			continue
		}
		if !is.Until.Equal(was.Until) {
			is.WasUntil = was.Until
		}
		out = append(out, is)
		kind, name := Subject{was.Scope, was.Subject}.logged()
		if err := a.record(kind, name, "replan", was.SubjectID, was.times(), is.times()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rewound returns a pause that a clock that was ahead has begun or ended as it is by the correct clock. One that begins now and
// was to last for a length lasts for that. An end of today or tomorrow was of a day of the wrong clock: it moves by whole days, so
// that it keeps its time of day, and the pause lasts no shorter than it was to. An instant stays: it is the same by any clock.
func (p Pause) rewound(now time.Time) Pause {
	if early := p.Since.Sub(now); early > 0 {
		p.Since = now
		switch {
		case p.Until.IsZero():
		case p.UntilAs == UntilLength:
			p.Until = p.Until.Add(-early)
		case p.UntilAs == UntilDay:
			p.Until = p.Until.Add(-early.Truncate(24 * time.Hour))
		}
	}
	if p.ResumedAt.After(now) {
		p.ResumedAt = now
	}
	return p
}

// times are the members of a pause that Replan changes, for the change log.
func (p *Pause) times() any {
	return struct {
		Since   time.Time `json:"since"`
		Until   time.Time `json:"until,omitzero"`
		Resumed time.Time `json:"resumed_at,omitzero"`
	}{p.Since, p.Until, p.ResumedAt}
}

func (a *applier) replan(ctx context.Context, job int64, done map[int64]bool) ([]int64, error) {
	later := engine.Args{"now": a.now, "job": job, "later_ms": skewed.Milliseconds(), "limit": replanSize}
	ids, err := a.recordReplan(ctx, "lock_ahead", later, done, nil)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if err := a.restoreSkips(ctx, ids); err != nil {
		return nil, err
	}
	return ids, execAll(ctx, a.tx, later.With("ids", ids), "rewind_plans", "drop_gaps_ahead", "end_gaps_now", "rewind_waits", "rewind_open", "rewind_leases")
}

// restoreSkips puts back into the plans what somebody has skipped and the wrong clock has turned into a gap, before the gap
// goes. A gap has no author, so such a skip has that of the replan. Each of these gaps is one time.
func (a *applier) restoreSkips(ctx context.Context, ids []int64) error {
	skips := map[int64][]Skip{}
	var job int64
	var kept string
	var k Skip
	err := a.tx.Query(ctx, "skips_ahead", engine.Args{"now": a.now, "ids": ids},
		engine.Reads(&job, engine.Nullable(&kept), &k.ScheduleID, engine.Nullable(&k.Schedule), engine.At(&k.At)).Each(func(string) {
			if skips[job] == nil {
				skips[job] = readSkips(kept)
			}
			k.By, k.Reason, k.Then = a.o.By, "it was skipped before the clock was corrected", k.At
			skips[job] = append(skips[job], k)
			kept, k = "", Skip{}
		}))
	for _, id := range ids {
		list := skips[id]
		if err != nil || len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(x, y Skip) int { return x.At.Compare(y.At) })
		_, err = a.tx.Exec(ctx, "write_skips", engine.Args{"job": id, "skips": writeSkips(list)})
	}
	return err
}
