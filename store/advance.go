package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// writer collects the decisions of a batch and writes them in bulk.
type writer struct {
	s        *Store
	tx       *engine.Tx
	now      time.Time // of the decisions
	created  time.Time // of the runs that they make: see lastEnd
	seq      int
	made     []Run
	runs     []runRow
	queued   []queuedRow
	moves    []moveRow
	gaps     []gapRow
	plans    []planRow
	due      []dueRow
	parks    []parkRow
	buried   []buryRow
	cancel   []string
	pauses   []changeRow
	done     []doneOf
	removed  []int64 // jobs that plain SQL has removed, and that still have schedules
	rules    []ruleRow
	starts   []startRow
	events   []Event
	replan   []int64
	unseen   map[string][]int64 // jobs that were planned with other days than their schedules know, by calendar
	ends     endRows
	after    map[int64]int    // jobs that run after others, one of which is new: the number of those others
	owners   []int64          // jobs that were given to another owner
	planned  map[int64]string // the jobs' plan_input as it was read
	instants map[time.Time]string
}

// newWriter has room for one run and one plan for each job, since most decisions make no more.
func newWriter(s *Store, tx *engine.Tx, now time.Time, jobs int) *writer {
	return &writer{s: s, tx: tx, now: now, created: now, planned: map[int64]string{}, after: map[int64]int{}, instants: map[time.Time]string{},
		made: make([]Run, 0, jobs), queued: make([]queuedRow, 0, jobs), due: make([]dueRow, 0, jobs)}
}

// The rows of the documents. The names of their fields are those of the columns.
type (
	runRow struct {
		ID            string `json:"id"`
		JobID         int64  `json:"job_id"`
		Number        int64  `json:"number,omitempty"`
		Occurrence    string `json:"occurrence"`
		State         string `json:"state"`
		HeldBy        string `json:"held_by,omitempty"`
		Queue         string `json:"queue"`
		Priority      int    `json:"priority,omitempty"`
		ScheduledFor  string `json:"scheduled_for,omitempty"`
		IntervalStart string `json:"interval_start,omitempty"`
		IntervalEnd   string `json:"interval_end,omitempty"` // where it is not the nominal time
		Args          string `json:"args,omitempty"`
		ReadyAt       string `json:"ready_at,omitempty"` // where it is not created_at
	}
	// queuedRow is a run that is queued from the instant of the decision.
	queuedRow struct {
		ID            string `json:"id"`
		JobID         int64  `json:"job_id"`
		Number        int64  `json:"number,omitempty"`
		Occurrence    string `json:"occurrence"`
		Queue         string `json:"queue"`
		Priority      int    `json:"priority,omitempty"`
		ScheduledFor  string `json:"scheduled_for,omitempty"`
		IntervalStart string `json:"interval_start,omitempty"`
	}
	moveRow struct {
		ID         string `json:"id"`
		Fence      int    `json:"fence"`
		Was        string `json:"was"`
		Lease      string `json:"lease,omitempty"`
		State      string `json:"state"`
		HeldBy     string `json:"held_by,omitempty"`
		Queue      string `json:"queue"`
		Priority   int    `json:"priority"`
		ReadyAt    string `json:"ready_at"`
		Number     int64  `json:"number,omitempty"`
		Losses     int    `json:"losses"`
		FinishedAt string `json:"finished_at,omitempty"`
		SettledAt  string `json:"settled_at,omitempty"`
		ExpiresAt  string `json:"expires_at,omitempty"`
		Error      string `json:"error,omitempty"`
	}
	gapRow struct {
		JobID      int64  `json:"job_id"`
		ScheduleID int64  `json:"schedule_id"`
		FromAt     string `json:"from_at"`
		ThroughAt  string `json:"through_at"`
		Reason     string `json:"reason"`
		Rule       string `json:"rule"`
	}
	planRow struct {
		JobID            int64  `json:"job_id"`
		Version          int64  `json:"version"`
		NextRun          string `json:"next_run,omitempty"`
		DecidedThrough   string `json:"decided_through,omitempty"`
		Parked           string `json:"parked,omitempty"`
		LastScheduledFor string `json:"last_scheduled_for,omitempty"`
		LastRunID        string `json:"last_run_id,omitempty"`
		LastState        string `json:"last_state,omitempty"`
		LastFinishedAt   string `json:"last_finished_at,omitempty"`
		LastSuccessAt    string `json:"last_success_at,omitempty"`
		LastError        string `json:"last_error,omitempty"`
		Streak           int    `json:"streak"`
		Cycles           int64  `json:"cycles"`
		RunsMade         int64  `json:"runs_made"`
		StartupIDs       string `json:"startup_ids,omitempty"`
		RepeatFrom       string `json:"repeat_from,omitempty"`
		Skips            string `json:"skips,omitempty"`
	}
	// dueRow is a plan of which nothing changed but that it has gone on: see goneOn.
	dueRow struct {
		JobID            int64  `json:"job_id"`
		Version          int64  `json:"version"`
		NextRun          string `json:"next_run,omitempty"`
		LastScheduledFor string `json:"last_scheduled_for,omitempty"`
	}
	parkRow struct {
		JobID   int64  `json:"job_id"`
		Parked  string `json:"parked"`
		NextRun string `json:"next_run"`
	}
	buryRow struct {
		ID        string `json:"id"`
		State     string `json:"state"`
		Was       string `json:"was"`
		Lease     string `json:"lease,omitempty"` // that was read; a run whose lease cannot be read has none
		ExpiresAt string `json:"expires_at"`
		Error     string `json:"error,omitempty"`
	}
	changeRow struct {
		SubjectID int64  `json:"subject_id"`
		Subject   string `json:"subject"`
		Action    string `json:"action"`
		Reason    string `json:"reason"`
	}
	// startRow is a not_before that was found from the start schedule.
	startRow struct {
		ID        int64  `json:"id"`
		NotBefore string `json:"not_before"`
	}
	ruleRow struct {
		JobID      int64  `json:"job_id"`
		ScheduleID int64  `json:"schedule_id"`
		Input      string `json:"input"`
		Rule       string `json:"rule"`
		Ends       string `json:"ends"`
		Since      string `json:"since"`
		ChangedAt  string `json:"changed_at,omitempty"` // empty: the row of the schedule is gone
		bare       bool
	}
)

// at returns the text of an instant. A batch has few instants: its own, and the minutes at which jobs are due.
func (w *writer) at(t time.Time) string {
	text, ok := w.instants[t]
	if !ok {
		text = w.s.db.Engine().Instant(t)
		w.instants[t] = text
	}
	return text
}

// make adds a new run, and gives it an id.
func (w *writer) make(r Run) {
	at := w.at
	r.ID = NewRunID(w.created, w.seq)
	w.seq++
	w.made = append(w.made, r)
	if r.State == Queued && r.HeldBy == "" && r.Args == "" && r.IntervalEnd.Equal(r.ScheduledFor) && r.ReadyAt.Equal(w.created) {
		w.queued = append(w.queued, queuedRow{r.ID, r.JobID, r.Number, r.Occurrence, r.Queue, r.Priority, at(r.ScheduledFor), at(r.IntervalStart)})
		return
	}
	w.runs = append(w.runs, runRow{r.ID, r.JobID, r.Number, r.Occurrence, r.State, r.HeldBy, r.Queue, r.Priority,
		at(r.ScheduledFor), at(r.IntervalStart), at(unless(r.IntervalEnd, r.ScheduledFor)), r.Args, at(unless(r.ReadyAt, w.created))})
}

func (w *writer) add(c *Snapshot, d *Decision) {
	at := w.at
	for _, r := range d.Made {
		if r.JobID == c.Job.ID {
			r.Owner, r.Job = c.Job.Owner, c.Job.Name
		}
		w.make(r)
	}
	w.events = append(w.events, d.Events...)
	for _, m := range d.Updates {
		r := m.Run
		if r.Fault != "" { // a value that cannot be read is not written back
			w.buried = append(w.buried, buryRow{r.ID, r.State, m.From, at(m.LeaseRead), at(m.ExpiresAt), clip(r.Error)})
			continue
		}
		w.moves = append(w.moves, moveRow{r.ID, r.Fence, m.From, at(m.LeaseRead), r.State, r.HeldBy, r.Queue, r.Priority, at(r.ReadyAt), r.Number, r.Losses,
			at(r.FinishedAt), at(r.SettledAt), at(m.ExpiresAt), r.Error})
	}
	for _, g := range d.Gaps {
		w.gaps = append(w.gaps, gapRow{g.JobID, g.ScheduleID, at(g.From), at(g.Through), g.Reason, g.Rule})
	}
	w.cancel = append(w.cancel, d.Cancel...)
	if d.Pause != "" {
		w.pauses = append(w.pauses, changeRow{SubjectID: d.Plan.JobID, Subject: c.Job.FullName(), Reason: d.Pause})
	}
	if d.Remove != "" {
		w.done = append(w.done, doneOf{c, c.Job.FullName(), d.Remove})
	}
	p := d.Plan
	if d.Park {
		w.park(p.JobID, p.Parked, p.NextRun)
		return
	}
	if !d.Replan && !c.Recalled && w.goneOn(&c.Plan, &p) {
		w.due = append(w.due, dueRow{p.JobID, p.Version, at(p.NextRun), at(p.LastScheduledFor)})
		return
	}
	p.Parked = clip(p.Parked)
	w.plans = append(w.plans, planRow{p.JobID, p.Version, at(p.NextRun), at(p.DecidedThrough), p.Parked, at(p.LastScheduledFor), p.LastRunID, p.LastState,
		at(p.LastFinishedAt), at(p.LastSuccessAt), p.LastError, p.Streak, p.Cycles, p.RunsMade, p.StartupIDs, at(p.RepeatFrom), p.Skips})
	if d.Replan {
		w.replan = append(w.replan, p.JobID)
		w.planned[p.JobID] = c.input
		if w.s.db.Engine().KnowsLogins && c.Job.ID != 0 && c.Job.Owner != c.Plan.owner {
			w.owners = append(w.owners, p.JobID)
		}
		if w.leaves(c) {
			return
		}
		if !d.Start.IsZero() {
			w.starts = append(w.starts, startRow{p.JobID, at(d.Start)})
		}
		since := at(cmp.Or(p.DecidedThrough, w.now))
		for _, r := range d.Rules {
			w.rules = append(w.rules, ruleRow{p.JobID, r.ScheduleID, r.Input, r.Text, r.Ends, since, at(r.ChangedAt), r.bare})
			w.otherDays(p.JobID, &r)
		}
	}
}

// goneOn reports whether the only change of a plan is that one run was made of what was due until now, as it is for
// most due jobs. The rest of such a plan need not be written.
func (w *writer) goneOn(before, after *Plan) bool {
	same := *after
	same.NextRun, same.LastScheduledFor, same.DecidedThrough, same.RunsMade = before.NextRun, before.LastScheduledFor, before.DecidedThrough, before.RunsMade
	return same == *before && after.DecidedThrough.Equal(w.now) && after.RunsMade == before.RunsMade+1
}

// park writes only two values of a plan: why the job is parked, and when it is tried again.
func (w *writer) park(job int64, why string, again time.Time) {
	w.parks = append(w.parks, parkRow{job, clip(why), w.at(again)})
}

// write executes one statement for each kind of row that the batch has.
func (w *writer) write(ctx context.Context) error {
	if err := bulkWith(ctx, w.tx, "insert_runs", engine.Args{"now": w.created}, w.runs, nil); err != nil {
		return err
	}
	if err := bulkWith(ctx, w.tx, "insert_queued", engine.Args{"now": w.created}, w.queued, nil); err != nil {
		return err
	}
	guard := func(what string, want int) func(int64) error {
		return func(n int64) error {
			if n != int64(want) {
				return fmt.Errorf("%s: %w", what, engine.ErrConflict)
			}
			return nil
		}
	}
	if err := bulk(ctx, w, "update_runs", w.moves, guard("runs", len(w.moves))); err != nil {
		return err
	}
	if err := bulk(ctx, w, "bury_runs", w.buried, guard("runs", len(w.buried))); err != nil {
		return err
	}
	if err := w.loseAttempts(ctx); err != nil {
		return err
	}
	if err := bulk(ctx, w, "extend_gaps", w.gaps, nil); err != nil {
		return err
	}
	if err := bulk(ctx, w, "insert_gaps", w.gaps, nil); err != nil {
		return err
	}
	for _, write := range []func(context.Context) error{w.writeRules, w.writeEnds, w.writeAfter, w.writeStops, w.writeDone} {
		if err := write(ctx); err != nil {
			return err
		}
	}
	if err := bulk(ctx, w, "park_plans", w.parks, nil); err != nil {
		return err
	}
	// This guard keeps decisions right where an engine has no lock: every plan still has the version that was read.
	if err := bulk(ctx, w, "advance", w.plans, guard("plans", len(w.plans))); err != nil {
		return err
	}
	return bulk(ctx, w, "advance_due", w.due, guard("plans", len(w.due)))
}

// loseAttempts ends the attempts of runs whose holder did not come back.
func (w *writer) loseAttempts(ctx context.Context) error {
	var lost []string
	for _, m := range w.moves {
		if m.Was == Running && m.State != Running {
			lost = append(lost, m.ID)
		}
	}
	for _, m := range w.buried {
		if m.Was == Running {
			lost = append(lost, m.ID)
		}
	}
	_, err := execRuns(ctx, w.tx, "lose_attempts", engine.Args{"now": w.now}, lost)
	return err
}

// writeStops asks holders to cancel runs, and pauses jobs that failed. There may be many such jobs at once, if
// something that all of them need is gone.
func (w *writer) writeStops(ctx context.Context) error {
	if _, err := execRuns(ctx, w.tx, "request_cancel", engine.Args{"now": w.now, "by": "overlap: replace"}, w.cancel); err != nil {
		return err
	}
	return w.s.pauseFailing(ctx, w.tx, w.now, w.pauses)
}

// writeRules records the rules from which the plans were made, and marks the definitions from which the rules were
// read. A definition that a session is editing stays unmarked, so the next pass reads it again.
func (w *writer) writeRules(ctx context.Context) error {
	if len(w.replan) == 0 {
		return nil
	}
	ids := w.replan
	if err := w.exec(ctx, "own_plans", w.owners); err != nil {
		return err
	}
	if err := w.exec(ctx, "forget_plan_rules", ids); err != nil {
		return err
	}
	if err := w.writeRemoved(ctx); err != nil {
		return err
	}
	if err := bulk(ctx, w, "insert_plan_rules", w.rules, nil); err != nil {
		return err
	}
	if err := w.seeAgain(ctx); err != nil {
		return err
	}
	same, err := w.s.unedited(ctx, w.tx, "lock_stale_jobs", ids, w.planned)
	if err != nil {
		return err
	}
	free, err := w.links(ctx, ids)
	if err != nil {
		return err
	}
	if err := bulk(ctx, w, "write_starts", slices.DeleteFunc(w.starts, func(r startRow) bool { return !slices.Contains(same, r.ID) }), nil); err != nil {
		return err
	}
	if err := w.exec(ctx, "mark_jobs", same); err != nil {
		return err
	}
	if err := w.exec(ctx, "mark_links", free); err != nil {
		return err
	}
	return w.markOwn(ctx, ids)
}

// exec sends ids to a statement, if there are any.
func (w *writer) exec(ctx context.Context, statement string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := w.tx.Exec(ctx, statement, engine.Args{"ids": ids})
	return err
}
