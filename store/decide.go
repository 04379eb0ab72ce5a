package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Batch is the result of deciding for a page.
type Batch struct {
	Now       time.Time // when the runs were made: see lastEnd
	Decided   int
	Made      int            // runs
	Meetings  []Run          // those of them that follow several runs
	Gaps      map[string]int // by reason
	Parked    []Parked
	Moved     int
	Ends      int         // for jobs that run after several jobs: those jobs are decided for next
	Woken     int         // runs, counted in Moved too, of other jobs whose turn in a group has come: their jobs are decided for next
	Ended     []EndedRun  // runs that the decision has ended: cancelled, never recovered, or tried until the next occurrence
	Retention []Retention // of jobs that have newly settled runs
	Passed    []PassedOver
	// Refused are jobs for which no decision could be written. They are parked; where the database refused even that,
	// they are left as they are. The parked ones are listed in Parked, the others in Stuck.
	Refused []int64
	Stuck   []Parked
	Unheard []Unheard // events whose hooks could not be run
	Waits   int       // waits for locks that timed out

	Settlements map[string]*Settlement // of runs that were made, by their ids
}

// newBatch is the result of a decision at an instant, before anything is decided.
func newBatch(now time.Time) Batch {
	return Batch{Now: now, Gaps: map[string]int{}, Settlements: map[string]*Settlement{}}
}

// join adds the result of another part of a page.
func (b *Batch) join(o Batch) {
	if o.Now.After(b.Now) {
		b.Now = o.Now
	}
	b.Decided, b.Moved, b.Woken, b.Ends = b.Decided+o.Decided, b.Moved+o.Moved, b.Woken+o.Woken, b.Ends+o.Ends
	b.Made, b.Meetings = b.Made+o.Made, append(b.Meetings, o.Meetings...)
	b.Parked, b.Ended = append(b.Parked, o.Parked...), append(b.Ended, o.Ended...)
	b.Retention, b.Passed, b.Refused = append(b.Retention, o.Retention...), append(b.Passed, o.Passed...), append(b.Refused, o.Refused...)
	b.Stuck, b.Unheard = append(b.Stuck, o.Stuck...), append(b.Unheard, o.Unheard...)
	for reason, n := range o.Gaps {
		b.Gaps[reason] += n
	}
	maps.Copy(b.Settlements, o.Settlements)
}

// EndedRun is a run that a decision has ended.
type EndedRun struct {
	Run Run
	Job string // owner/name
}

// Decider has the functions that make the decisions of a batch.
type Decider struct {
	// Job decides for one job.
	Job func(now time.Time, c *Snapshot) Decision
	// Groups gets the jobs of groups together. It lets the runs start that the groups' caps admit, and returns the
	// ids of waiting runs of other jobs that are to ask for their group again.
	Groups func([]GroupDecision) []string
}

// Decide makes the decisions for a page and writes them, in one transaction. It locks the plans of the page's jobs,
// and passes over the jobs that another session decides for. It reads what the decisions need, asks for each
// decision, and writes everything that follows from them. The number of round trips does not depend on the size of
// the page. The instant of the decisions is the instant at which the page was read.
//
// If a decision would change a run that another session has locked, its job is passed over too. Some locks cannot be
// seen beforehand, such as a lock on the gap of an index into which a row is to be inserted. Such a lock shows as a
// statement that waits: then the page is divided, until the job that has to wait stands alone. The page is divided in
// the same way where the database refuses what one of the jobs needs (a trigger, a constraint, a number that is
// full), or where a decision ends in a panic: that job is parked with the reason, and decided for again after a
// while. It is divided, too, where its jobs have more runs to make than one transaction may have, as after a long time
// without a pass, or more open runs, as for the pause of a tag: a pass that ends between two parts has done those before.
//
// Crash windows: before COMMIT nothing has happened. After COMMIT, and before the answer has arrived, everything has
// happened: the next pass finds the plans advanced and the runs made. It makes no run twice, since (job, occurrence)
// is unique and the version of the plan has changed.
func (s *Store) Decide(ctx context.Context, p *Page, with Decider) (Batch, error) {
	waits := max(1, min(maxWaits, p.Waits))
	d := deciding{s: s, Decider: with, waits: waits, refusals: mostRefusals}
	b, err := d.decide(ctx, p)
	b.Waits = waits - d.waits
	return b, err
}

const (
	maxWaits = 8 // waits for locks that one page may have: then the rest of the page is passed over
	parts    = 8 // the number of parts into which a page is divided
	// mostRefusals is how many transactions of a page may be refused before any of it is decided. Beyond that, the
	// fault is not that of a single job, but for example a missing right, and the pass ends with the error.
	mostRefusals = 40
	// fewConflicts is how often a page is tried that other sessions change meanwhile. If one job is refused each
	// time, dividing the page finds it sooner.
	fewConflicts = 6
	// mostRuns is how many runs the decisions of several jobs may make in one transaction, and how many they may read, to change all
	// of them: they are in memory until it ends, some megabytes. A single job may have more, and may make more, by its missed_limit.
	mostRuns = 5000
)

// deciding has the state of the decisions for one page.
type deciding struct {
	s *Store
	Decider
	waits, refusals int  // how many are left
	decided         bool // at least one job of the page has a decision
	hooked          bool // the last decisions had runs of hooks to write
}

// decide decides for a page, or a part of one: as a whole if that is possible, otherwise for parts of it.
func (d *deciding) decide(ctx context.Context, p *Page) (Batch, error) {
	if d.waits <= 0 {
		return passedOver(p), nil
	}
	b, err := d.once(ctx, p)
	var many manyRunsError
	switch alone := len(p.jobs) == 1; {
	case err == nil:
		d.decided = d.decided || b.Decided > 0
		return b, nil
	case ctx.Err() != nil:
		return b, err
	case errors.As(err, &many):
		return d.divide(ctx, many.sorted(p), false)
	case d.s.Locked(err) && !d.s.db.Engine().OneWriter:
		if d.waits--; alone {
			return passedOver(p), nil
		}
	case d.s.Refused(ctx, err):
		if d.refusals--; d.refusals < 0 && !d.decided {
			return b, err
		}
		if alone {
			return d.refused(ctx, p, err)
		}
	default:
		return b, err
	}
	return d.divide(ctx, p, true)
}

// refused parks the one job of a page, because the database refused the decision. If a hook may be the reason, it first
// decides again: a hook must not hold up a job.
func (d *deciding) refused(ctx context.Context, p *Page, why error) (Batch, error) {
	if !d.hooked || p.noHooks != "" {
		return d.park(ctx, p, why)
	}
	again := *p
	if again.hooksRefused++; again.hooksRefused > 1 { // it was not a single incident
		again.noHooks = d.s.kept("", why.Error())
	}
	return d.decide(ctx, &again)
}

// divide decides for the parts of a page. They are shuffled where others hold up some: where there are more waits than a page
// may have, it is not always the same jobs that are passed over.
func (d *deciding) divide(ctx context.Context, p *Page, shuffled bool) (Batch, error) {
	all := newBatch(p.now)
	size := (len(p.jobs) + parts - 1) / parts
	order := rand.Perm((len(p.jobs) + size - 1) / size)
	if !shuffled {
		slices.Sort(order)
	}
	for _, i := range order {
		part := *p
		part.jobs, part.due = p.jobs[i*size:min(len(p.jobs), (i+1)*size)], p.due[i*size:min(len(p.due), (i+1)*size)]
		b, err := d.decide(ctx, &part)
		all.join(b)
		if err != nil { // what is done stays done
			return all, err
		}
	}
	return all, nil
}

// once decides for a page, or a part of one, in one transaction.
func (d *deciding) once(ctx context.Context, p *Page) (b Batch, err error) {
	conflicts := fewConflicts
	if len(p.jobs) == 1 {
		conflicts = engine.Attempts
	}
	err = d.s.db.RetryFor(ctx, 1, conflicts, func() error {
		return d.s.db.TryTx(ctx, func(tx *engine.Tx) (err error) {
			defer func() {
				if r := recover(); r != nil {
					err = fmt.Errorf("%w: %v; please report this\n%s", errPanicked, r, debug.Stack())
				}
			}()
			b = newBatch(p.now)
			return d.inTx(ctx, tx, p, &b)
		})
	})
	if err != nil { // nothing of it is written, or it is unknown whether it is
		return Batch{}, err
	}
	return b, nil
}

func (d *deciding) inTx(ctx context.Context, tx *engine.Tx, p *Page, b *Batch) error {
	s := d.s
	snapshots, err := s.readSnapshots(ctx, tx, p)
	if err != nil {
		return err
	}
	free := free{}
	for len(snapshots) > 0 {
		made, err := d.all(p.now, snapshots)
		if err != nil {
			return err
		}
		taken, err := s.lockMoved(ctx, tx, &made, free)
		if err != nil {
			return err
		}
		if len(taken) == 0 {
			w := newWriter(s, tx, p.now, len(snapshots))
			if w.created, err = s.lastEnd(ctx, tx, snapshots, p.now); err != nil {
				return err
			}
			b.Now = w.created
			err = d.write(ctx, w, made, p.noHooks, b)
			b.passOver(p, snapshots, "")
			return err
		}
		b.passOver(&Page{need: p.need, jobs: taken, due: p.dueOf(taken)}, nil, lockedRun)
		snapshots = slices.DeleteFunc(snapshots, func(c Snapshot) bool { return slices.Contains(taken, c.Plan.JobID) })
	}
	b.passOver(p, nil, "")
	return nil
}

// decisions are the decisions for the snapshots of a page, which are made together.
type decisions struct {
	members []GroupDecision
	wake    []string // runs of other jobs that are to ask for their group again
}

// all decides for the snapshots. It does not change them, so it can be called again for the same snapshots. If several of them
// make too many runs, it stops with manyRunsError.
func (d *deciding) all(now time.Time, snapshots []Snapshot) (made decisions, err error) {
	var grouped []GroupDecision
	runs := 0
	made.members = make([]GroupDecision, 0, len(snapshots))
	for i := range snapshots {
		c := &snapshots[i]
		m := GroupDecision{c, d.Job(now, c)}
		if runs += len(m.Decision.Made); runs > mostRuns && len(snapshots) > 1 {
			return made, tooManyRuns(snapshots)
		}
		m.Decision.Plan.Parked = d.s.kept(c.Job.Owner, m.Decision.Plan.Parked)
		for i := range m.Decision.Events {
			m.Decision.Events[i].Error = d.s.kept(c.Job.Owner, m.Decision.Events[i].Error)
		}
		if c.Group != nil {
			grouped = append(grouped, m)
			continue
		}
		made.members = append(made.members, m)
	}
	all := grouped
	for i := range snapshots {
		if left := snapshots[i].Left; left != nil { // nothing is decided for the job in there, but others may have its place
			all = append(all, GroupDecision{Snapshot: &Snapshot{Group: left}})
		}
	}
	if len(all) > 0 {
		made.wake = d.Groups(all)
	}
	made.members = append(made.members, all[:len(grouped)]...)
	return made, nil
}

// free says for each run whose lock was requested whether the lock was free.
type free map[string]bool

// lockMoved locks the runs that the decisions change. It returns the jobs that have such a run locked by another
// session: a wait for that lock would hold up all other jobs. Of the runs to be woken, it keeps those whose lock was
// free.
func (s *Store) lockMoved(ctx context.Context, tx *engine.Tx, made *decisions, known free) (taken []int64, err error) {
	var ask []string
	want := func(id string) {
		if _, asked := known[id]; !asked {
			known[id] = false
			ask = append(ask, id)
		}
	}
	for i := range made.members {
		d := &made.members[i].Decision
		for j := range d.Updates {
			want(d.Updates[j].Run.ID)
		}
		for _, id := range d.Cancel {
			want(id)
		}
	}
	for _, id := range made.wake {
		want(id)
	}
	var id string
	if err := queryRuns(ctx, tx, "lock_runs", ask, engine.Scan(func() { known[id] = true }, &id)); err != nil {
		return nil, err
	}
	elsewhere := func(id string) bool { return !known[id] }
	for i := range made.members {
		m := &made.members[i]
		if slices.ContainsFunc(m.Decision.Updates, func(v RunUpdate) bool { return elsewhere(v.Run.ID) }) || slices.ContainsFunc(m.Decision.Cancel, elsewhere) {
			taken = append(taken, m.Snapshot.Plan.JobID)
		}
	}
	made.wake = slices.DeleteFunc(made.wake, elsewhere)
	return taken, nil
}

// write writes the decisions.
func (d *deciding) write(ctx context.Context, w *writer, made decisions, noHooks string, b *Batch) error {
	woken, err := w.s.wakeHeld(ctx, w.tx, made.wake)
	if err != nil {
		return err
	}
	b.Moved, b.Woken, b.Decided = b.Moved+int(woken), int(woken), len(made.members)
	for i := range made.members {
		c := made.members[i].Snapshot
		w.addEnds(c, &made.members[i].Decision)
		if b.add(w, c, &made.members[i].Decision); c.AfterChanged {
			w.after[c.Plan.JobID] = len(c.Job.After)
		}
	}
	d.hooked = len(w.events) > 0
	if err := b.raise(ctx, w, noHooks); err != nil {
		return err
	}
	b.Made, b.Ends = len(w.made), len(w.ends.rows)
	for i := range w.made {
		if w.made[i].Meeting() != "" {
			b.Meetings = append(b.Meetings, w.made[i])
		}
	}
	return w.write(ctx)
}

// add adds a decision to the batch and to the writer.
func (b *Batch) add(w *writer, c *Snapshot, d *Decision) {
	if d.Nothing(&c.Plan) && !c.Recalled {
		return
	}
	w.add(c, d)
	for _, g := range d.Gaps {
		b.Gaps[g.Reason]++
	}
	if d.Plan.Parked != "" && d.Plan.Parked != c.Plan.Parked { // a job that stays parked may be tried again each few minutes
		b.Parked = append(b.Parked, Parked{c.name(), d.Plan.Parked})
	}
	if d.Settlement != nil {
		b.Settlements[w.made[len(w.made)-1].ID] = d.Settlement
	}
	b.Moved += len(d.Updates)
	for _, r := range d.Updates {
		byDecision := r.From != r.Run.State
		if byDecision && (r.Run.State == Lost || r.Run.State == Failed || r.Run.State == Cancelled) {
			b.Ended = append(b.Ended, EndedRun{r.Run, c.name()})
		}
	}
	b.Retention = append(b.Retention, d.Retention...)
}
