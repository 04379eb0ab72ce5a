package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// readSnapshots locks the plans and reads the rest.
func (s *Store) readSnapshots(ctx context.Context, tx *engine.Tx, p *Page) (snapshots []Snapshot, err error) {
	whatever := 0
	if p.need != Due { // a due job has a plan; the others may have none yet
		whatever = 1
		if _, err := tx.Exec(ctx, "enlist", engine.Args{"ids": p.jobs}); err != nil {
			return nil, err
		}
	}
	snapshots = make([]Snapshot, 0, len(p.jobs))
	var l Plan
	var newest newestNumber
	rd := engine.Reads(append(scanPlan(&l), &newest)...) // made once for all rows: there may be thousands of them, with dozens of columns each
	err = tx.Query(ctx, "batch_plans", engine.Args{"ids": p.jobs, "whatever": whatever, "up_to": p.upTo}, rd.Each(func(fault string) {
		snapshots = append(snapshots, Snapshot{Plan: l, PlanFault: fault, newest: newest})
		l = Plan{}
	}))
	if err != nil || len(snapshots) == 0 {
		return nil, err
	}
	locked := make([]int64, len(snapshots))
	byJob := make(map[int64]*Snapshot, len(snapshots))
	for i := range snapshots {
		locked[i] = snapshots[i].Plan.JobID
		byJob[locked[i]] = &snapshots[i]
	}
	if err := s.recall(ctx, tx, snapshots); err != nil {
		return nil, err
	}
	err = s.readDefinitions(ctx, tx, p, locked, byJob)
	if errors.Is(err, errManyRuns) {
		err = tooManyRuns(snapshots)
	}
	return snapshots, err
}

func (s *Store) readDefinitions(ctx context.Context, tx *engine.Tx, p *Page, ids []int64, byJob map[int64]*Snapshot) error {
	if err := s.readJobs(ctx, tx, p.kinds, ids, byJob); err != nil {
		return err
	}
	if err := s.readRules(ctx, tx, p.need, ids, byJob); err != nil {
		return err
	}
	if err := s.lockGroups(ctx, tx, byJob); err != nil {
		return err
	}
	if err := s.readAfter(ctx, tx, p.need, byJob); err != nil {
		return err
	}
	if err := readPausesOf(ctx, tx, ids, byJob); err != nil {
		return err
	}
	if err := readStarted(ctx, tx, p, byJob); err != nil {
		return err
	}
	runs, err := s.readOpenRuns(ctx, tx, p, ids, byJob)
	if err != nil {
		return err
	}
	if err := s.readStepAttempts(ctx, tx, runs.again, byJob); err != nil {
		return err
	}
	if err := s.readMistakes(ctx, tx, runs.failed, byJob); err != nil {
		return err
	}
	if err := s.lockExpired(ctx, tx, p, runs.expired, byJob); err != nil {
		return err
	}
	if runs.followers { // an ended run is settled and wakes its followers, whichever need the page is for
		if err := s.readFollowers(ctx, tx, ids, byJob); err != nil {
			return err
		}
	}
	if p.need == AfterEnded {
		return s.readEnds(ctx, tx, ids, byJob)
	}
	return nil
}

// readPausesOf reads the pauses before the runs: while one holds, a decision looks at each run in the queue.
func readPausesOf(ctx context.Context, tx *engine.Tx, ids []int64, byJob map[int64]*Snapshot) error {
	var pause Pause
	of := covered{all: byJob}
	return tx.Query(ctx, "batch_pauses", engine.Args{"ids": ids, "since": since(byJob).Add(time.Microsecond)}, engine.Reads(scanPause(&pause)...).Each(func(fault string) {
		defer func() { pause = Pause{} }()
		for _, c := range of.pause(&pause) {
			c.Pauses = append(c.Pauses, pause)
			if fault != "" && pause.Scope == ScopeJob { // one pause of one job must not stop all jobs: other pauses hold by the values that can be read
				c.fault(fmt.Sprintf("pause %d", pause.ID), fault)
			}
		}
	}))
}

// readStarted finds the jobs that have a run for the start that the tick reports, although their plans do not know this start: a plan
// forgets the oldest ones. In most passes all plans know it, and nothing is read.
func readStarted(ctx context.Context, tx *engine.Tx, p *Page, byJob map[int64]*Snapshot) error {
	var ids []int64
	for id, c := range byJob {
		if p.StartupID != "" && c.Job.OnStartup && !c.Plan.KnowsStartup(p.StartupID) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var id int64
	return tx.Query(ctx, "batch_started", engine.Args{"ids": ids, "occurrence": OccurrenceStart(p.StartupID)}, engine.Scan(func() { byJob[id].Started = true }, &id))
}

// lastEnd returns the last instant at which a run of the snapshots has ended, or now if that is later. A process may stand still
// between the read of a page and its decisions. Runs that follow from an end are created at its instant, so that they stay
// behind those that other processes have made from earlier ends. An end counts up to the present: a run may say that it ended
// later, by a wrong clock or a worker in SQL, and the runs of other jobs do not wait for that. The clock is read after the runs,
// since a run can end as long as they are not read.
func (s *Store) lastEnd(ctx context.Context, tx *engine.Tx, snapshots []Snapshot, now time.Time) (last time.Time, err error) {
	last = now
	for i := range snapshots {
		for k := range snapshots[i].Runs {
			if at := snapshots[i].Runs[k].FinishedAt; at.After(last) {
				last = at
			}
		}
	}
	if last.Equal(now) {
		return now, nil
	}
	var present time.Time
	if err := tx.Row(ctx, "read_now", engine.Args{"now": s.now()}, engine.At(&present)); err != nil {
		return now, err
	}
	if last.After(present) {
		last = later(now, present)
	}
	return last, nil
}

// fault records that a value from which the decision is made cannot be read.
func (c *Snapshot) fault(what, fault string) {
	if fault != "" {
		c.Fault = engine.JoinFaults(c.Fault, what+": "+fault)
	}
}

// readStepAttempts reads the steps that have their own number of attempts.
func (s *Store) readStepAttempts(ctx context.Context, tx *engine.Tx, ids []int64, byJob map[int64]*Snapshot) error {
	if len(ids) == 0 {
		return nil
	}
	var job, last int64
	var step int
	var attempts *Attempts
	return tx.Query(ctx, "step_attempts", engine.Args{"ids": ids}, engine.Reads(&job, optional[Attempts]{&attempts}).Each(func(fault string) {
		if job != last {
			last, step = job, 0
		}
		step++
		c := byJob[job]
		if c.fault(fmt.Sprintf("step %d", step), fault); fault != "" || attempts == nil {
			return
		}
		if c.StepAttempts == nil {
			c.StepAttempts = map[int]Attempts{}
		}
		c.StepAttempts[step] = *attempts
	}))
}

// lockExpired locks the runs that are to be recovered. If another session has locked a run, its
// holder is alive and about to end it, or is frozen while doing so. Such a run is skipped: waiting
// for the lock would delay every job of the batch. A later pass recovers it.
func (s *Store) lockExpired(ctx context.Context, tx *engine.Tx, p *Page, ids []string, byJob map[int64]*Snapshot) error {
	if len(ids) == 0 {
		return nil
	}
	free := map[string]bool{}
	var id string
	if err := queryRuns(ctx, tx, "lock_runs", ids, engine.Scan(func() { free[id] = true }, &id)); err != nil {
		return err
	}
	for _, c := range byJob {
		for i := range c.Runs {
			if r := &c.Runs[i]; !free[r.ID] && slices.Contains(ids, r.ID) {
				r.HolderAlive = true
			}
		}
	}
	if err := s.readRecorded(ctx, tx, ids, byJob); err != nil || p.Back.IsZero() {
		return err
	}
	return spareLeases(ctx, tx, p, ids, byJob)
}

// spareLeases lets the leases that ended before the database was back end now: their holders could not extend them. Runs with a
// recorded success, and those that cannot be read, need no holder any more.
func spareLeases(ctx context.Context, tx *engine.Tx, p *Page, ids []string, byJob map[int64]*Snapshot) error {
	var spared []string
	for _, c := range byJob {
		for i := range c.Runs {
			r := &c.Runs[i]
			if slices.Contains(ids, r.ID) && !r.HolderAlive && r.RecordedAt.IsZero() && r.Fault == "" && r.LeaseUntil.Before(p.Back) {
				r.LeaseUntil = p.now
				spared = append(spared, r.ID)
			}
		}
	}
	_, err := execRuns(ctx, tx, "spare_leases", engine.Args{"until": p.now}, spared)
	return err
}

// readRecorded reads which of the expired runs have succeeded, but lack the record of their ends. It reads after the
// runs are locked: a committed step recorded its success under that lock.
func (s *Store) readRecorded(ctx context.Context, tx *engine.Tx, ids []string, byJob map[int64]*Snapshot) error {
	var id string
	var job int64
	var at time.Time
	return queryRuns(ctx, tx, "recorded_runs", ids, engine.Reads(&id, &job, engine.At(&at)).Each(func(string) {
		for i := range byJob[job].Runs {
			if r := &byJob[job].Runs[i]; r.ID == id && !r.HolderAlive {
				r.RecordedAt = at
			}
		}
		at = time.Time{}
	}))
}

// since is the earliest instant from which one of the jobs is to be decided for.
func since(byJob map[int64]*Snapshot) (first time.Time) {
	for _, c := range byJob {
		from := c.Plan.DecidedThrough
		if from.IsZero() {
			from = c.Job.CreatedAt
		}
		if !from.IsZero() && (first.IsZero() || from.Before(first)) {
			first = from
		}
	}
	return first
}

// readJobs reads the jobs' definitions.
func (s *Store) readJobs(ctx context.Context, tx *engine.Tx, k *kinds, ids []int64, byJob map[int64]*Snapshot) error {
	var j Job
	var input borrowed
	var planned sql.NullString
	var follows bool
	unknown := map[int64]string{}
	rd := engine.Reads(&j.ID, &j.Owner, &j.Name, must{engine.At(&j.CreatedAt)}, must{engine.At(&j.changedAt)}, &input, &planned, &follows)
	err := tx.Query(ctx, "batch_inputs", engine.Args{"ids": ids}, rd.Each(func(fault string) {
		defer func() { j = Job{} }()
		c := byJob[j.ID]
		c.Job, c.Stale, c.ChangedAt, c.follows = j, planned.Valid, j.changedAt, follows
		if c.Stale {
			c.Unseen = planned.String == ""
			c.Planned, c.leftGroup = readPlanned(planned.String), leftGroup(planned.String, string(input))
		}
		if c.Job.fault = fault; fault != "" {
			return
		}
		kind := k.get(input)
		if c.Stale || kind == nil {
			c.input = string(input)
		}
		if kind == nil {
			unknown[j.ID] = c.input
		} else {
			c.Job.as(kind)
		}
	}))
	if err != nil {
		return err
	}
	err = k.read(ctx, tx, unknown, func(id int64) *Job { return &byJob[id].Job }, func(id int64, input string) {
		c := byJob[id]
		c.Stale = c.Stale || c.input != input
		c.input = input
	})
	for _, c := range byJob {
		c.fault("its definition", c.Job.fault)
	}
	return err
}

// readRules reads the rules as they were planned. For jobs that may have changed since they were planned, it also
// reads the schedules.
func (s *Store) readRules(ctx context.Context, q engine.Runner, n Need, ids []int64, byJob map[int64]*Snapshot) error {
	var u Rule
	var job int64
	var stands bool
	rd := engine.Reads(&job, &u.ScheduleID, &u.Input, &u.Text, &u.Ends, engine.At(&u.PlannedAt), &stands)
	changed := map[int64]bool{}
	err := q.Query(ctx, "batch_rules", engine.Args{"ids": ids}, rd.Each(func(fault string) {
		u.Linked, u.LinkPlanned, u.NewInput, u.ChangedAt = stands, stands, u.Input, u.PlannedAt
		if !stands {
			changed[job] = true
		}
		c := byJob[job]
		c.fault(fmt.Sprintf("the plan's rule of schedule %d", u.ScheduleID), fault)
		c.Rules = append(c.Rules, u)
		u = Rule{}
	}))
	if err != nil {
		return err
	}
	var look []int64
	for _, id := range ids {
		// A plan has no rule if the job has no schedules, or if somebody deleted the plan's rows. A nominal time that
		// has come, or a run that wakes its job, changes no schedule: an edit of a schedule is a need of its own.
		if c := byJob[id]; n != Due && n != RunWakes || c.Stale || changed[id] || len(c.Rules) == 0 {
			look = append(look, id)
			for i := range c.Rules {
				c.Rules[i].Linked = false
			}
		}
	}
	if len(look) == 0 {
		return nil
	}
	return s.readLinks(ctx, q, look, byJob)
}

// readLinks reads the schedules of the jobs as they are defined now.
func (s *Store) readLinks(ctx context.Context, q engine.Runner, ids []int64, byJob map[int64]*Snapshot) error {
	var u Rule
	var job int64
	d := &u.Schedule
	var linked bool
	var input sql.NullString
	rd := engine.Reads(&job, &u.ScheduleID, engine.At(&u.LinkedAt), &u.LinkPlanned, &linked, engine.Nullable(&d.Name), engine.Nullable(&d.Rule), engine.Nullable(&d.Zone), engine.Nullable(&d.Nonexistent), engine.Nullable(&d.Ambiguous),
		engine.Nullable(&d.Calendar), engine.Nullable(&d.OnHoliday), &input, engine.At(&d.CreatedAt), engine.At(&u.ChangedAt))
	err := q.Query(ctx, "batch_links", engine.Args{"ids": ids}, rd.Each(func(fault string) {
		defer func() { u = Rule{} }()
		u.NewInput, u.Linked, u.Lost, u.bare = input.String, input.Valid, !input.Valid, !linked
		c := byJob[job]
		what := "its schedule"
		if d.Name != "" {
			what = "schedule " + d.Name
		}
		c.fault(what, fault)
		i := slices.IndexFunc(c.Rules, func(planned Rule) bool { return planned.ScheduleID == u.ScheduleID })
		if i < 0 {
			c.Rules = append(c.Rules, u)
			return
		}
		u.Input, u.Text, u.Ends, u.PlannedAt = c.Rules[i].Input, c.Rules[i].Text, c.Rules[i].Ends, c.Rules[i].PlannedAt
		c.Rules[i] = u
	}))
	if err == nil {
		err = s.readCalendars(ctx, q, ids, byJob)
	}
	for _, id := range ids {
		slices.SortFunc(byJob[id].Rules, func(x, y Rule) int { return cmp.Compare(x.ScheduleID, y.ScheduleID) })
	}
	return err
}
