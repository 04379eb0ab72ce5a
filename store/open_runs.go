package store

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/store/engine"
)

const (
	// crowded is how many runs of a job have to wait behind others, beyond those that it may run
	// at a time, so that decisions read only some of them.
	crowded = 200
	// fewWaiting is how many of those waiting runs decisions then read. Of runs in the queue, they read none: they count them.
	fewWaiting = 20
)

// Crowds are the jobs of a pass for which many runs wait, such as hooks after a night with many failures, or the nominal
// times of an outage, or whose queue is long. Otherwise each decision would read all of them, to let one go.
type Crowds struct {
	mu   sync.Mutex // several batches are decided at the same time
	jobs map[int64]bool
}

// has reports whether a job is one of them. Before the first look at its runs, the plan tells it: how many runs were made, and how
// many have ended. A run that ended twice, because it was retried, hides one; then a decision finds out by reading all.
func (c *Crowds) has(l *Plan) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if is, known := c.jobs[l.JobID]; known {
		return is
	}
	return l.RunsMade-l.Cycles > crowded
}

func (c *Crowds) set(job int64, crowded bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs == nil {
		c.jobs = map[int64]bool{}
	}
	c.jobs[job] = crowded
}

// openRuns are the runs of a page that are not settled, during their reading.
type openRuns struct {
	s         *Store
	p         *Page
	byJob     map[int64]*Snapshot
	followers bool // other jobs run after one of the jobs
	expired   []string
	again     []int64 // jobs with a run to be tried again
	failed    map[int64]bool
	kept      int // runs, of all jobs together
}

// readOpenRuns reads the runs of the page that are not settled. Of runs in the queue that a decision only counts, it keeps
// the number: a backlog takes no memory. Of a crowded job, it leaves out some of the waiting runs, too.
func (s *Store) readOpenRuns(ctx context.Context, tx *engine.Tx, p *Page, ids []int64, byJob map[int64]*Snapshot) (*openRuns, error) {
	o := &openRuns{s: s, p: p, byJob: byJob, failed: map[int64]bool{}}
	whole := make([]int64, 0, len(ids))
	for _, id := range ids {
		read := false
		if p.Crowds.has(&byJob[id].Plan) {
			var err error
			if read, err = o.readCrowd(ctx, tx, byJob[id]); err != nil {
				return nil, err
			}
		}
		if !read {
			whole = append(whole, id)
		}
	}
	if len(whole) > 0 {
		if err := o.read(ctx, tx, "batch_runs", engine.Args{"ids": whole}, o.take); err != nil {
			return nil, err
		}
	}
	if o.tooMany() {
		return nil, errManyRuns
	}
	for _, id := range whole {
		o.noteCrowd(byJob[id])
	}
	for _, c := range byJob {
		slices.SortFunc(c.Runs, byAge)
	}
	return o, nil
}

func (o *openRuns) read(ctx context.Context, tx *engine.Tx, statement string, a engine.Args, take func(Run)) error {
	var run Run
	var followed present
	rd := engine.Reads(append(scanRun(&run), &followed)...)
	return tx.Query(ctx, statement, a, rd.Each(func(fault string) {
		run.Fault = fault
		o.followers = o.followers || bool(followed)
		take(run)
		run = Run{}
	}))
}

// take adds a run.
func (o *openRuns) take(run Run) {
	if run.State == Running && run.LeaseUntil.Before(o.p.now) {
		if run.HolderAlive = o.s.db.Alive(run.Holder); !run.HolderAlive {
			o.expired = append(o.expired, run.ID)
		}
	}
	o.failed[run.JobID] = o.failed[run.JobID] || run.State == Failed
	c := o.byJob[run.JobID]
	c.Group.note(&run)
	if !utf8.ValidString(run.ID) { // no statement finds it by this id, so nothing can end it
		c.Fault = "a run: " + run.Fault
		return
	}
	if c.Job.Rest(&run) == RestsInQueue && o.leavesQueue(c) {
		c.Queue.Add(&run)
		return
	}
	if o.kept++; o.tooMany() { // the page is divided: no decision sees them
		return
	}
	c.Runs = append(c.Runs, run)
	if run.triedAgain(o.p.now) {
		o.again = append(o.again, run.JobID)
	}
}

// tooMany reports whether the jobs of the page have more open runs than the decisions of several jobs may have in memory.
func (o *openRuns) tooMany() bool { return o.kept > mostRuns && len(o.byJob) > 1 }

// triedAgain reports whether the run waits for another try of its step, or may do so after the next decision.
func (r *Run) triedAgain(now time.Time) bool {
	return r.Begun() && (r.State == Waiting || r.State == Running && r.LeaseUntil.Before(now))
}

// Rest says how a run rests: a decision has seen the run, and has left it behind other runs or has queued it. Until one of those
// runs ends, or somebody takes it, the next decision leaves it there too.
type Rest int

// The macro @rests (store/engine/shared.go) has the same conditions.
const (
	Stirs        Rest = iota // it does not rest
	RestsInTurn              // all that counts is its place among the runs that rest
	RestsAsTime              // it is for a nominal time, so that besides, new times may give way to it
	RestsInQueue             // it is in the queue, so all that counts is that it takes up room
)

// Rest says how a run of the job rests. Two kinds of jobs look at the runs of all their nominal times: one that replaces
// them, and one whose next time depends on the end of the last run.
func (j *Job) Rest(r *Run) Rest {
	switch {
	case r.Number == 0 || r.Begun() || !r.CancelAt.IsZero() || r.Fault != "" || !r.Requested() && !j.timesRest():
		return Stirs
	case r.State == Queued && r.LeaseUntil.IsZero(): // otherwise it was given back
		return RestsInQueue
	case r.State != Waiting || r.HeldBy != HeldByPredecessor:
		return Stirs
	case r.Requested() || r.Fence > 0: // one of a nominal time was opened again
		return RestsInTurn
	}
	return RestsAsTime
}

func (j *Job) timesRest() bool { return j.Overlap != OverlapReplace && j.RepeatAfter == 0 }

// Queue has the runs of a job that are in the queue, and that a decision leaves there: it needs no more of them than this.
type Queue struct {
	Runs int
	Last time.Time // the newest nominal time of one of them; zero: they were requested
}

// Add counts a run.
func (q *Queue) Add(r *Run) {
	if q.Runs++; !r.Requested() && r.ScheduledFor.After(q.Last) {
		q.Last = r.ScheduledFor
	}
}

// asPlanned reports whether the job is there as it was planned, and its rows can be read.
func (c *Snapshot) asPlanned() bool {
	return !c.Stale && c.Job.ID != 0 && c.Job.Removed().IsZero() && c.Fault == "" && c.PlanFault == ""
}

// leavesQueue reports whether the decision only counts the runs that rest in the queue, whichever runs have failed.
func (o *openRuns) leavesQueue(c *Snapshot) bool { return o.holdsNone(c) && !c.Job.pausesItself() }

// holdsNone reports whether the decision leaves the runs that rest in the queue, unless a failure pauses the job. An edit of a
// schedule is another need.
func (o *openRuns) holdsNone(c *Snapshot) bool {
	edited := func(r Rule) bool { return !r.Linked || !r.LinkPlanned || r.Changed() }
	return (o.p.need == RunWakes || o.p.need == Due) && c.asPlanned() && !slices.ContainsFunc(c.Rules, edited) && !c.held(o.p.now)
}

// LeavesQueue reports whether a decision for the job as it was planned takes no run out of the queue: no pause holds them, and none
// that the decision itself makes after a failure.
func (c *Snapshot) LeavesQueue(now time.Time) bool { return !c.Job.pausesItself() && !c.held(now) }

func (c *Snapshot) held(now time.Time) bool {
	return slices.ContainsFunc(c.Pauses, func(p Pause) bool { return p.Holds(now) })
}

func (j *Job) pausesItself() bool { return j.OnError == OnErrorPause || j.PauseAfterFailures > 0 }

// mayPause reports whether the decision may pause the job because these runs have failed, or fail now.
func (o *openRuns) mayPause(c *Snapshot, runs []Run) bool {
	failed := 0
	for i := range runs {
		r := &runs[i]
		expired := r.State == Running && r.LeaseUntil.Before(o.p.now)
		if r.State == Failed || r.State == Lost || r.Fault != "" || expired || r.triedAgain(o.p.now) {
			failed++
		}
	}
	j := &c.Job
	return failed > 0 && (j.OnError == OnErrorPause || j.PauseAfterFailures > 0 && c.Plan.Streak+failed >= j.PauseAfterFailures)
}

// RestingRead is how many of the waiting runs that rest a decision has to read if only a run has woken the job: see readCrowd.
func (j *Job) RestingRead() int { return j.MaxRunning + fewWaiting }

// SeeksTimes reports whether the decision may look among all nominal times of the job for those after the beginning of a
// run: the run is tried until the next one.
func (c *Snapshot) SeeksTimes(r *Run, now time.Time) bool {
	return r.triedAgain(now) && c.UntilNext(r.Step)
}

// noteCrowd records whether a job has enough resting runs that the next decisions need to read only some of them.
func (o *openRuns) noteCrowd(c *Snapshot) {
	if o.p.Crowds == nil || len(c.Runs)+c.Queue.Runs <= crowded {
		return
	}
	waiting, queued := 0, c.Queue.Runs
	for i := range c.Runs {
		switch c.Job.Rest(&c.Runs[i]) {
		case RestsInQueue:
			queued++
		case RestsInTurn, RestsAsTime:
			waiting++
		}
	}
	o.p.Crowds.set(c.Plan.JobID, waiting > crowded+c.Job.MaxRunning || queued > crowded)
}

// readCrowd reads the runs of a crowded job, but only the first of the waiting runs that rest, and the number of those
// that rest in the queue. It returns false if the decision needs all runs.
//
// The decision is the same as with all runs, but may keep more of the history. It lets runs go in their order, and at most as many as may run at a
// time, so it never gets to the runs that are left out. The policies for nominal times ask only whether any run
// rests, or whether any run of a nominal time does. But if the job was changed, paused or removed, the decision may let
// more runs go, hold them, or end all waiting runs: those are other needs. If a failure may pause the job, the decision
// holds the runs in the queue, and if a run that was read does not count, another run takes its place: both need all runs.
func (o *openRuns) readCrowd(ctx context.Context, tx *engine.Tx, c *Snapshot) (bool, error) {
	if o.p.need != RunWakes || !c.asPlanned() {
		return false, nil
	}
	queue, err := o.readQueue(ctx, tx, c)
	if err != nil {
		return false, err
	}
	first, err := o.readResting(ctx, tx, c)
	if err != nil || slices.ContainsFunc(first, func(r Run) bool { return r.Fault != "" || r.ReadyAt.After(o.p.now) }) {
		return false, err
	}
	// Read after the runs that rest, so that a run whose state changes in between is not missed. One that is taken in between counts
	// twice. So a run may wait for no reason, until the taken one ends.
	const all = 1 << 30
	others, err := o.readRest(ctx, tx, c, Stirs, Stirs, all)
	if err != nil {
		return false, err
	}
	if seeks, err := o.seekTimes(ctx, tx, c, others); err != nil || seeks || o.mayPause(c, others) {
		return false, err
	}
	more := len(first) >= c.Job.RestingRead()
	o.p.Crowds.set(c.Job.ID, more || queue.Runs > crowded)
	c.Queue, c.LeftOut = queue, more
	if c.Group != nil {
		c.Group.Active += queue.Runs
	}
	for _, r := range others {
		o.take(r)
	}
	for _, r := range first {
		if !slices.ContainsFunc(others, func(other Run) bool { return other.ID == r.ID }) {
			c.Runs = append(c.Runs, r)
		}
	}
	return true, nil
}

// readResting reads the first runs that rest, and among them one of a nominal time where new times wait for it.
func (o *openRuns) readResting(ctx context.Context, tx *engine.Tx, c *Snapshot) ([]Run, error) {
	most := c.Job.RestingRead()
	first, err := o.readRest(ctx, tx, c, RestsInTurn, RestsAsTime, most)
	isTime := func(r Run) bool { return c.Job.Rest(&r) == RestsAsTime }
	if err != nil || len(first) < most || c.Job.Overlap != OverlapWait || !c.Job.timesRest() || slices.ContainsFunc(first, isTime) {
		return first, err
	}
	next, err := o.readRest(ctx, tx, c, RestsAsTime, RestsAsTime, 1)
	return append(first, next...), err
}

// readRest reads the first runs of a job that rest in one of these ways.
func (o *openRuns) readRest(ctx context.Context, tx *engine.Tx, c *Snapshot, from, to Rest, limit int) (list []Run, err error) {
	a := engine.Args{"job": c.Job.ID, "from": int(from), "to": int(to), "queue": int(Stirs), "times": c.Job.timesRest(), "limit": limit}
	if o.holdsNone(c) {
		a["queue"] = int(RestsInQueue)
	}
	err = o.read(ctx, tx, "crowd_runs", a, func(r Run) { list = append(list, r) })
	return list, err
}

// readQueue counts the runs of a job that rest in the queue, if the decision leaves them there.
func (o *openRuns) readQueue(ctx context.Context, tx *engine.Tx, c *Snapshot) (q Queue, err error) {
	if o.holdsNone(c) {
		err = tx.Row(ctx, "crowd_queue", engine.Args{"job": c.Job.ID, "queue": int(RestsInQueue), "times": c.Job.timesRest()}, &q.Runs, engine.At(&q.Last))
	}
	return q, err
}

// seekTimes reports whether the decision looks for nominal times among runs that rest, because of one of the other runs.
func (o *openRuns) seekTimes(ctx context.Context, tx *engine.Tx, c *Snapshot, others []Run) (bool, error) {
	again := func(r Run) bool { return r.triedAgain(o.p.now) }
	if !c.Job.timesRest() || !slices.ContainsFunc(others, again) {
		return false, nil
	}
	if err := o.s.readStepAttempts(ctx, tx, []int64{c.Job.ID}, o.byJob); err != nil {
		return false, err
	}
	return slices.ContainsFunc(others, func(r Run) bool { return c.SeeksTimes(&r, o.p.now) }), nil
}

// UnsettledRuns reads the runs of jobs that are not settled, as decisions do, by job and oldest first. It leaves out
// runs that cannot be read.
func (s *Store) UnsettledRuns(ctx context.Context, ids []int64) (map[int64][]Run, error) {
	open := map[int64][]Run{}
	for part := range slices.Chunk(ids, page) {
		var run Run
		var followed present
		rd := engine.Reads(append(scanRun(&run), &followed)...)
		err := s.db.Query(ctx, "batch_runs", engine.Args{"ids": part}, rd.Each(func(fault string) {
			if fault == "" {
				open[run.JobID] = append(open[run.JobID], run)
			}
			run = Run{}
		}))
		if err != nil {
			return nil, err
		}
	}
	for _, list := range open {
		slices.SortFunc(list, byAge)
	}
	return open, nil
}

// byAge is the order in which runs were made. It does not rely on ids alone: only ids that the program made contain a
// time.
func byAge(x, y Run) int { return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID)) }
