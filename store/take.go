package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Refusals are runs that could not be delivered. They were ended for that reason; where the database refused even
// that, they are passed over. Where no answer came to a COMMIT, nobody knows whether they were delivered.
type Refusals struct {
	mu     sync.Mutex
	known  map[string]bool
	ended  []EndedRun
	left   []Parked
	unsure []*Task
}

// Take returns the news since the last call: the runs that were ended, and the jobs whose runs stay as they are.
func (f *Refusals) Take() (ended []EndedRun, left []Parked) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ended, left, f.ended, f.left = f.ended, f.left, nil, nil
	return ended, left
}

// Unsure returns the deliveries since the last call of which nobody knows whether they took place. Recall takes them back.
func (f *Refusals) Unsure() (tasks []*Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	tasks, f.unsure = f.unsure, nil
	return tasks
}

func (f *Refusals) doubt(tasks []Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range tasks {
		f.unsure = append(f.unsure, &tasks[i])
	}
}

func (f *Refusals) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[id]
}

func (f *Refusals) add(ended []EndedRun, left ...Parked) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.left = append(f.ended, ended...), append(f.left, left...)
}

func (f *Refusals) pass(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[string]bool{}
	}
	f.known[id] = true
}

type attemptRow struct {
	RunID    string `json:"run_id"`
	Number   int    `json:"number"`
	Step     int    `json:"step"`
	StepName string `json:"step_name"`
	Attempt  int    `json:"attempt"`
	Fence    int    `json:"fence"`
	Holder   string `json:"holder"`
}

// Take delivers up to limit queued runs of a queue, by priority, then by age. Each run gets a new fence and a lease,
// and its attempt is recorded as running.
//
// A run that cannot be read, or whose job or steps cannot be read, ends as failed with the reason. Where the database
// refuses to deliver the chosen runs, the list is divided into halves until the run that causes the refusal stands
// alone. That run ends in the same way, and the others are delivered.
//
// Some runs may be executed only once, or end with their next loss. Such a run is not taken ahead, to wait in this
// process: the list ends before it.
//
// Crash window: after COMMIT, and before the answer has arrived, the runs are delivered to nobody. Nothing has been executed, since no
// run executes before COMMIT has succeeded. A process that lives, and gets no answer, takes them back: see Refusals.Unsure. If the
// process is dead, their leases end, and the next pass delivers them again, or ends them as lost.
func (s *Store) Take(ctx context.Context, queue string, limit int, h Holder) ([]Task, error) {
	if h.Refused == nil {
		h.Refused = &Refusals{}
	}
	// Reads more candidates than wanted, without locks: those that another process has locked meanwhile are passed
	// over. If other processes have all of them, there may be more candidates behind them.
	for window, held := limit+min(3*limit, 64)+16, 0; ; {
		var candidates []string
		err := s.db.Query(ctx, "queued_ids", engine.Args{"now": s.now(), "queue": queue, "limit": window, "login": h.Login, "owners": s.owners(),
			"within_ms": h.Within.Milliseconds(), "timed": h.Timed, "until": h.Until, "holder": h.Name, "ids": h.Joined}, engine.Column(&candidates))
		if err != nil || len(candidates) == 0 {
			return nil, err
		}
		found := len(candidates)
		t := taking{s: s, h: h, refusals: mostRefusals, waits: 4, places: limit - h.Ahead}
		tasks, err := t.among(ctx, slices.DeleteFunc(candidates, h.Refused.has), limit)
		if len(tasks) > 0 || t.stopped { // the taken runs must be executed, whatever happened to the others; an error that lasts comes again
			return tasks, nil
		}
		if err == nil && t.held != nil {
			if held++; held < holdUps { // most likely other processes that take runs hold the locks, and they end soon
				continue
			}
			err = s.db.NameHolders(ctx, t.held)
		}
		if err != nil || found < window {
			return nil, err
		}
		window *= 4
	}
}

// holdUps is how often a take starts again if every run that it tries waits for a lock until its time is over. After
// that, it is an error.
const holdUps = 3

// taking is one call of Take. Where the database refuses a list of runs, it continues with the halves of the list.
type taking struct {
	s        *Store
	h        Holder
	refusals int
	taken    bool  // at least one run was taken
	waits    int   // timed-out waits for locks that are still allowed
	held     error // the error of the last timed-out wait
	places   int   // for runs that begin at once
	stopped  bool  // at a run that is not taken ahead
}

func (t *taking) among(ctx context.Context, candidates []string, limit int) ([]Task, error) {
	if len(candidates) == 0 || limit <= 0 || t.stopped {
		return nil, nil
	}
	tasks, err := t.once(ctx, candidates, limit)
	switch {
	case err == nil:
		t.taken = t.taken || len(tasks) > 0
		t.places -= len(tasks)
		return tasks, nil
	case t.s.Locked(err) && !t.s.db.Engine().OneWriter && ctx.Err() == nil:
		return t.oneByOne(ctx, candidates, limit, err)
	case !t.s.Refused(ctx, err):
		return nil, err
	}
	if t.refusals--; t.refusals < 0 && !t.taken { // the fault is not that of a single run
		return nil, err
	}
	if len(candidates) == 1 {
		return nil, t.end(ctx, candidates[0], err)
	}
	half := len(candidates) / 2
	tasks, err = t.among(ctx, candidates[:half], limit)
	if err != nil {
		return tasks, err
	}
	more, err := t.among(ctx, candidates[half:], limit-len(tasks))
	return append(tasks, more...), err
}

// oneByOne takes the runs one by one, where a write of one of them would have to wait. So that run does not hold up
// the others.
func (t *taking) oneByOne(ctx context.Context, candidates []string, limit int, held error) (tasks []Task, err error) {
	if t.held = held; len(candidates) == 1 {
		t.waits--
		return nil, nil
	}
	for i := 0; i < len(candidates) && len(tasks) < limit && t.waits > 0; i++ {
		one, err := t.among(ctx, candidates[i:i+1], 1)
		if tasks = append(tasks, one...); err != nil {
			return tasks, err
		}
	}
	return tasks, nil
}

// once takes runs in one transaction.
func (t *taking) once(ctx context.Context, candidates []string, limit int) (tasks []Task, err error) {
	s := t.s
	var ended []EndedRun
	conflicts := fewConflicts
	if len(candidates) == 1 {
		conflicts = engine.Attempts
	}
	err = s.db.RetryFor(ctx, 1, conflicts, func() error {
		return s.db.TryTx(ctx, func(tx *engine.Tx) error {
			tasks, ended, t.stopped = tasks[:0], ended[:0], false
			free := candidates
			if s.db.Has("reserve_queued") {
				free = nil
				if err := tx.Query(ctx, "reserve_queued", engine.Args{"ids": candidates, "limit": limit}, engine.Column(&free)); err != nil || len(free) == 0 {
					return err
				}
			}
			var k Task
			var tried int
			tasks = slices.Grow(tasks, min(len(free), limit))
			rd := engine.Reads(append(scanRun(&k.Run), counter[int]{&tried}, engine.Nullable(&k.last), engine.At(&k.Now))...)
			err := tx.Query(ctx, "lock_queued", engine.Args{"now": s.now(), "ids": free, "limit": limit}, rd.Each(func(fault string) {
				k.Run.Fault = fault
				k.Run.Attempts = max(k.Run.Attempts, tried) // for a run that somebody put back into the queue by hand
				tasks = append(tasks, k)
				k, tried = Task{}, 0
			}))
			if err != nil || len(tasks) == 0 {
				return err
			}
			tasks, ended, err = t.deliver(ctx, tx, tasks)
			return err
		})
	})
	if err != nil {
		if t.stopped = false; errors.Is(err, ErrInDoubt) { // a part of the list may end before another run
			t.h.Refused.doubt(tasks)
		}
		return nil, err
	}
	t.h.Refused.add(ended)
	return tasks, nil
}

// deliver marks the locked runs as running and reads their jobs and steps. It ends the runs that cannot be read.
func (t *taking) deliver(ctx context.Context, tx *engine.Tx, all []Task) (tasks []Task, ended []EndedRun, err error) {
	s, h := t.s, t.h
	if err := s.readTasks(ctx, tx, all); err != nil {
		return nil, nil, err
	}
	taken, rows := make([]string, 0, len(all)), make([]attemptRow, 0, len(all))
	var why []endRow
	var moved []movedStep
	tasks = all[:0] // in place: a task is large
	for i := range all {
		k := &all[i]
		r := &k.Run
		at := k.place()
		if r.Fault != "" {
			r.State, r.Error = Failed, s.kept(k.Job.Owner, r.Fault)
			why = append(why, endRow{r.ID, r.Error})
			ended = append(ended, EndedRun{*r, k.name()})
			continue
		}
		if len(tasks) >= t.places && r.Losses+1 >= max(k.Job.MaxDeliveries, 1) {
			t.stopped = true // and at all runs behind it, since the order is kept
			break
		}
		if k.was = *r; at != r.Step {
			r.Step = at
			moved = append(moved, movedStep{r.ID, at, k.last})
		}
		r.State, r.Holder = Running, h.Name
		if r.StartedAt.IsZero() {
			r.StartedAt = k.Now
		}
		r.Fence, r.Attempt, r.Attempts = r.Fence+1, r.Attempt+1, r.Attempts+1
		taken = append(taken, r.ID)
		rows = append(rows, attemptRow{r.ID, r.Attempts, r.Step, k.stepName(r.Step), r.Attempt, r.Fence, h.Name})
		tasks = append(tasks, *k)
	}
	if err := s.endQueued(ctx, tx, why); err != nil || len(tasks) == 0 {
		return nil, ended, err
	}
	if err := bulkWith(ctx, tx, "move_steps", engine.Args{}, moved, nil); err != nil {
		return nil, nil, err
	}
	n, err := tx.Exec(ctx, "take", engine.Args{"now": s.now(), "lease_ms": h.Lease.Milliseconds(), "holder": h.Name, "ids": taken})
	if err != nil {
		return nil, nil, err
	}
	if n != int64(len(tasks)) { // the guard where there are no locks
		return nil, nil, fmt.Errorf("take runs: %w", engine.ErrConflict)
	}
	return tasks, ended, bulkWith(ctx, tx, "begin_attempts", engine.Args{"now": s.now()}, rows, nil)
}

// movedStep is a queued run whose step has another place now.
type movedStep struct {
	ID   string `json:"id"`
	Step int    `json:"step"`
	Name string `json:"step_name"`
}

// place is where the steps now have the step that the run is in, or was told to begin with. An edit may have moved it since: another
// step would be left out, or executed a second time. If the step is gone, the run has a fault. A step without a name is called by its place.
func (t *Task) place() int {
	r := &t.Run
	if r.Fault != "" || t.last == "" || t.last == placeName(r.Step) || t.stepName(r.Step) == t.last {
		return r.Step
	}
	n := placeOf(t.Job.Steps, t.last)
	if n == 0 {
		r.Fault = fmt.Sprintf("it was in step %q, which the job no longer has; retry it with --from-step; there are %s", t.last, stepNames(t.Job.Steps))
	}
	return n
}

// name is the full name of the job, or its id where the job is gone.
func (t *Task) name() string {
	c := Snapshot{Plan: Plan{JobID: t.Run.JobID}, Job: t.Job}
	return c.name()
}

// readTasks reads the jobs of the runs, and their steps.
func (s *Store) readTasks(ctx context.Context, tx *engine.Tx, tasks []Task) error {
	jobs := make([]int64, len(tasks))
	for i := range tasks {
		jobs[i] = tasks[i].Run.JobID
	}
	byID := map[int64]Job{}
	var j Job
	var input string
	err := tx.Query(ctx, "batch_jobs", engine.Args{"ids": jobs}, engine.Reads(append(scanJob(&j), engine.Nullable(&input))...).Each(func(fault string) {
		if j.fault = fault; fault != "" {
			j.fault = "the job's definition cannot be read: " + fault
		}
		byID[j.ID] = j
		j = Job{}
	}))
	if err != nil {
		return err
	}
	if err := s.readSteps(ctx, tx, "batch_steps", engine.Args{"ids": jobs}, byID); err != nil {
		return err
	}
	for id, j := range byID {
		if j.fault == "" {
			j.fault = j.Mistake()
			byID[id] = j
		}
	}
	for i := range tasks {
		k := &tasks[i]
		if k.Run.Fault != "" {
			k.Run.Fault = "its row cannot be read: " + k.Run.Fault
		}
		k.Job = byID[k.Run.JobID]
		k.Run.Owner, k.Run.Job = k.Job.Owner, k.Job.Name
		k.Run.Fault = engine.JoinFaults(k.Run.Fault, k.Job.fault)
	}
	return nil
}

func (s *Store) readSteps(ctx context.Context, q engine.Runner, statement string, a engine.Args, byID map[int64]Job) error {
	var id int64
	var st Step
	var position int
	return q.Query(ctx, statement, a, engine.Reads(scanStep(&id, &position, &st)...).Each(func(fault string) {
		if j, ok := byID[id]; ok {
			j.Steps = append(j.Steps, st)
			if fault != "" {
				j.fault = engine.JoinFaults(j.fault, fmt.Sprintf("step %d of the job cannot be read: %s", position, fault))
			}
			byID[id] = j
		}
		st = Step{}
	}))
}

// endRow is a queued run that ends without a delivery.
type endRow struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// endQueued ends queued runs as failed. The next decision settles them.
func (s *Store) endQueued(ctx context.Context, tx *engine.Tx, runs []endRow) error {
	return bulkWith(ctx, tx, "end_queued", engine.Args{"now": s.now()}, runs, nil)
}

// end ends the one run that the database refused to deliver. If the database refuses even that, the run is passed
// over.
func (t *taking) end(ctx context.Context, id string, refusal error) error {
	s := t.s
	t.h.Refused.pass(id)
	run := Run{ID: id, State: Failed, Error: s.kept("", "it could not be delivered: "+refusal.Error())}
	var c Snapshot
	err := s.db.Query(ctx, "run_job", engine.Args{"id": engine.ID(id)}, engine.Reads(&c.Plan.JobID, engine.Nullable(&c.Job.Owner), engine.Nullable(&c.Job.Name), &run.Occurrence).Each(
		func(string) {}))
	if err != nil && !s.Refused(ctx, err) {
		return err
	}
	err = s.db.InTx(ctx, func(tx *engine.Tx) error { return s.endQueued(ctx, tx, []endRow{{id, run.Error}}) })
	switch {
	case err == nil:
		t.h.Refused.add([]EndedRun{{run, c.name()}})
	case s.Refused(ctx, err):
		t.h.Refused.add(nil, Parked{c.name(), fmt.Sprintf("run %s stays queued: %s; its failure could not be recorded: %v", id, run.Error, err)})
	default:
		return err
	}
	return nil
}
