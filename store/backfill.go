package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Interval is a range of data, (Start, End]. A zero Start means that the start is unknown.
type Interval struct {
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end"`
}

// BackfillInput holds the facts from which a backfill is chosen.
type BackfillInput struct {
	Now     time.Time
	Job     JobStatus
	Rules   []Rule     // as they are now
	Covered []Interval // of the job's runs that touch the range, without overlaps, oldest first
	// KeptSince is the instant before which no run for a nominal time is on record any more; zero: none was deleted, or the
	// backfill does not depend on it.
	KeptSince time.Time
}

// Backfill requests a run for each interval that choose returns. The ends of these intervals are nominal times. The
// runs wait in order behind the job's open runs. Backfills of a job take turns, and a nominal time has only one such
// run, unless again is set. The reads for choose and the writes are one transaction. choose may be called more than
// once.
func (s *Store) Backfill(ctx context.Context, name string, within Interval, again bool, who Author, choose func(BackfillInput) ([]Interval, error)) ([]Run, error) {
	var made []Run
	err := s.change(ctx, who, func(a *applier) error {
		if err := a.takeTurns(ctx); err != nil {
			return err
		}
		if _, err := a.jobToRun(ctx, name); err != nil {
			return err
		}
		f, err := s.backfillInput(ctx, a.tx, a.now, name, within, again)
		if err != nil {
			return err
		}
		chosen, err := choose(f)
		if err != nil || len(chosen) == 0 {
			made = nil
			return err
		}
		made, err = a.fill(ctx, &f.Job.Job, chosen, again)
		return err
	})
	return made, err
}

// BackfillInput reads the facts from which Backfill with the same arguments would choose now.
func (s *Store) BackfillInput(ctx context.Context, name string, within Interval, again bool) (f BackfillInput, err error) {
	err = s.db.InSnapshot(ctx, func(tx *engine.Tx) error {
		var now time.Time
		if err := tx.Row(ctx, "read_now", engine.Args{"now": s.now()}, engine.At(&now)); err != nil {
			return err
		}
		f, err = s.backfillInput(ctx, tx, now, name, within, again)
		return err
	})
	return f, err
}

func (s *Store) backfillInput(ctx context.Context, tx *engine.Tx, now time.Time, name string, within Interval, again bool) (f BackfillInput, err error) {
	f.Now = now
	if f.Job, err = s.findJob(ctx, tx, name); err != nil {
		return f, err
	}
	if f.Rules, err = s.rulesOf(ctx, tx, f.Job.ID); err != nil || again {
		return f, err
	}
	if f.Covered, err = s.covered(ctx, tx, f.Job.ID, within); err != nil {
		return f, err
	}
	f.KeptSince, err = keptSince(ctx, tx, &f.Job)
	return f, err
}

// keptSince finds the first nominal time of which a run is on record, if runs of the job have been deleted. The runs of backfills do
// not count: they may be for times long before others of which nothing is kept.
func keptSince(ctx context.Context, q engine.Runner, v *JobStatus) (since time.Time, err error) {
	var job, first int64
	err = q.Query(ctx, "oldest_kept", engine.Args{"ids": []int64{v.ID}}, engine.Reads(&job, engine.Nullable(&first), engine.At(&since)).Each(func(string) {}))
	switch kept := first > 0 || v.RunsMade == 0; {
	case err != nil || kept && first <= 1:
		return time.Time{}, err
	case since.IsZero():
		return v.DecidedThrough.Add(time.Microsecond), nil
	}
	return since, nil
}

// fill writes the requests.
func (a *applier) fill(ctx context.Context, j *Job, chosen []Interval, again bool) ([]Run, error) {
	w := newWriter(a.s, a.tx, a.now, len(chosen))
	mark := ""
	if again {
		mark = NewRunID(a.now, 0)
	}
	for _, n := range chosen {
		w.make(Run{Owner: j.Owner, Job: j.Name, JobID: j.ID, Occurrence: fillOccurrence(n.End, mark), State: Waiting, Queue: j.Queue, Priority: j.Priority,
			ScheduledFor: n.End, IntervalStart: n.Start, IntervalEnd: n.End, ReadyAt: a.now, CreatedAt: a.now, Step: 1})
	}
	if err := bulk(ctx, w, "insert_runs", w.runs, nil); err != nil {
		return nil, err
	}
	return w.made, a.record("job", j.FullName(), "backfill", j.ID, nil, struct {
		From  time.Time `json:"from"`
		To    time.Time `json:"to"`
		Runs  int       `json:"runs"`
		Again bool      `json:"again,omitempty"`
	}{chosen[0].End, chosen[len(chosen)-1].End, len(chosen), again})
}

// covered returns the parts of a range that lie in the intervals of the job's runs.
func (s *Store) covered(ctx context.Context, q engine.Runner, job int64, within Interval) ([]Interval, error) {
	var list []Interval
	var n Interval
	err := q.Query(ctx, "intervals", engine.Args{"now": s.now(), "job": job, "from": within.Start, "to": within.End}, engine.Reads(engine.At(&n.Start), engine.At(&n.End)).Each(func(fault string) {
		if fault != "" { // the interval of this run is unknown
			n = Interval{}
			return
		}
		if n.Start.IsZero() { // the first run of all covers its own time
			n.Start = n.End.Add(-time.Microsecond)
		}
		list = append(list, n)
	}))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(x, y Interval) int { return x.Start.Compare(y.Start) })
	var joined []Interval
	for _, n := range list {
		if last := len(joined) - 1; last >= 0 && !n.Start.After(joined[last].End) {
			if n.End.After(joined[last].End) {
				joined[last].End = n.End
			}
			continue
		}
		joined = append(joined, n)
	}
	return joined, nil
}

// Rules returns the rules of a job as they are now.
func (s *Store) Rules(ctx context.Context, job int64) ([]Rule, error) {
	return s.rulesOf(ctx, s.db, job)
}

// RulesOfJobs returns the rules of several jobs as they are now, by the ids of the jobs. A job whose rules cannot be
// read has none in rules, and has the reason in faults.
func (s *Store) RulesOfJobs(ctx context.Context, ids []int64) (rules map[int64][]Rule, faults map[int64]string, err error) {
	return s.rulesOfJobs(ctx, ids, (*Snapshot).standing)
}

// RulesToDecide returns what RulesOfJobs does, together with the rules that a job no longer has, and of which its next decision
// still has to say what becomes of their times.
func (s *Store) RulesToDecide(ctx context.Context, ids []int64) (rules map[int64][]Rule, faults map[int64]string, err error) {
	return s.rulesOfJobs(ctx, ids, (*Snapshot).withDays)
}

func (s *Store) rulesOfJobs(ctx context.Context, ids []int64, of func(*Snapshot) []Rule) (rules map[int64][]Rule, faults map[int64]string, err error) {
	rules, faults = map[int64][]Rule{}, map[int64]string{}
	for part := range slices.Chunk(ids, page) {
		byJob := make(map[int64]*Snapshot, len(part))
		for _, id := range part {
			byJob[id] = &Snapshot{}
		}
		if err := s.readRules(ctx, s.db, JobChanged, part, byJob); err != nil {
			return nil, nil, fmt.Errorf("read the rules: %w", err)
		}
		for id, c := range byJob {
			if c.Fault != "" {
				faults[id] = c.Fault
				continue
			}
			rules[id] = of(c)
		}
	}
	return rules, faults, nil
}

func (s *Store) rulesOf(ctx context.Context, q engine.Runner, job int64) ([]Rule, error) {
	var c Snapshot
	if err := s.readRules(ctx, q, JobChanged, []int64{job}, map[int64]*Snapshot{job: &c}); err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	if c.Fault != "" {
		return nil, &FieldError{fmt.Sprintf("job with the id %d", job), "rules", c.Fault}
	}
	return c.standing(), nil
}

// standing returns the rules as they are now, without those that the job no longer has.
func (c *Snapshot) standing() []Rule {
	return slices.DeleteFunc(c.withDays(), func(r Rule) bool { return !r.Linked })
}

// withDays returns the rules, including calendar days that SQL has edited and no pass has seen.
func (c *Snapshot) withDays() []Rule {
	for i := range c.Rules {
		if r := &c.Rules[i]; r.Calendar != nil && r.Calendar.stale {
			r.withDays()
		}
	}
	return c.Rules
}
