package store

import (
	"context"
	"errors"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Task is a run that was delivered, with everything that is needed to execute it.
type Task struct {
	Run Run       // as it is after the delivery
	Job Job       // with its steps
	Now time.Time // of the delivery, by the database's clock

	// Steps are the facts that earlier steps gave, by the names of the steps, for a step that refers to them.
	Steps map[string]StepFacts

	// Waited is how long a run that was taken ahead waited in this process until it began. Its attempt is recorded as
	// begun at the delivery, and began later by this time.
	Waited time.Duration
	was    Run    // before the delivery
	last   string // the name of the step that the run is in, by its last attempt; empty: it has begun no step, or a worker has

	// Settlement settles the run together with its end, if the run succeeds; nil: a decision settles it. Settled says
	// that this was done.
	Settlement *Settlement
	Settled    bool
}

// StepAt returns the step at a position counted from 1; nil beyond the last step.
func (t *Task) StepAt(position int) *Step {
	if position < 1 || position > len(t.Job.Steps) {
		return nil
	}
	return &t.Job.Steps[position-1]
}

// stepName is the name of the step at a position; empty beyond the last step.
func (t *Task) stepName(position int) string {
	if st := t.StepAt(position); st != nil {
		return st.Name
	}
	return ""
}

// Holder is a process that takes runs. Its name is unique for each start of a process. Otherwise a
// heartbeat might extend the leases of an earlier process with the same name, which is dead.
type Holder struct {
	Name  string
	Lease time.Duration
	Login string // it takes only runs of this owner's jobs; empty: of all jobs

	// Refused keeps the runs that the database refused to deliver, so that later calls pass over them. If it is nil,
	// each call starts without them.
	Refused *Refusals

	// Ahead is how many of the taken runs wait in this process before they begin. A run that would end if its
	// delivery does not come back is never one of them.
	Ahead int

	// Within is the time that is left to this process: a run with a longer timeout is not taken. 0: there is no
	// limit.
	Within time.Duration
	Timed  bool // a run without a timeout is not taken either
	// Until is the instant after which no run may have been made, except a run that follows a run of this holder, and
	// the runs in Joined; zero: there is no limit.
	Until time.Time
	// Joined are runs that follow several runs, and that were made by the decisions of this holder.
	Joined []string
}

// Queues returns the queues that have queued runs, in the order of their names. It goes from queue to queue along the
// index, however long the queues are. With one recursive statement, MariaDB would read all of their runs.
//
// A name may be any bytes, where somebody wrote it by hand. The runs of such a queue cannot be read, so Take ends them.
func (s *Store) Queues(ctx context.Context) (list []string, err error) {
	for name := ""; ; list = append(list, name) {
		err := s.db.Row(ctx, "next_queue", engine.Args{"after": name}, written{&name})
		if errors.Is(err, ErrNotFound) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// TooLong is a job whose run is left in a queue, because its timeout is longer than a pass may take.
type TooLong struct {
	Job     string   `json:"job"` // owner/name
	Timeout Duration `json:"timeout"`
	// Since is when the oldest of these runs became ready; zero: it cannot be read.
	Since time.Time `json:"-"`
}

// front is how many queued runs TooLong looks at.
const front = 1000

// TooLong lists jobs with a queued run whose timeout is longer than within, at most twenty of them. It looks at the
// first thousand runs of the queue.
func (s *Store) TooLong(ctx context.Context, queue string, within time.Duration) ([]TooLong, error) {
	var list []TooLong
	var j Job
	var since engine.Moment
	err := s.db.Query(ctx, "too_long", engine.Args{"queue": queue, "within_ms": within.Milliseconds(), "front": front}, engine.Reads(&j.Owner, &j.Name, ms{&j.Timeout}, &since).Each(func(fault string) {
		if fault == "" {
			list = append(list, TooLong{j.FullName(), j.Timeout, since.Time})
		}
	}))
	return list, err
}

// Sign is what a heartbeat finds out about a run that it holds.
type Sign struct {
	Fence    int
	Cancel   bool // somebody requested that the run is cancelled
	Extended bool // this heartbeat has extended its lease
}

// Heartbeat extends the leases of runs and returns the runs that are still held. A run that is missing was delivered
// again: the transaction that writes asks for it, because a proxy may send a query that stands alone to a server that is
// behind.
//
// Another session may have locked the row of a run, such as the run's own step that commits with its end, or a
// session that somebody left open. Such a run keeps its lease as it is: waiting for the lock would let the leases of
// all the other runs end. No session recovers the run while its row is locked, but the lease may be over when the lock
// ends. So its sign says that its lease was not extended, and before it is over, the holder sends heartbeats more often.
func (s *Store) Heartbeat(ctx context.Context, runs []string, h Holder) (signs map[string]Sign, err error) {
	a := engine.Args{"now": s.now(), "lease_ms": h.Lease.Milliseconds(), "ids": runs, "holder": h.Name}
	var free []string
	err = s.db.InTx(ctx, func(tx *engine.Tx) (err error) {
		free = nil
		if err := tx.Query(ctx, "lock_runs", a, engine.Column(&free)); err != nil {
			return err
		}
		if len(free) > 0 {
			if _, err := tx.Exec(ctx, "heartbeat", a.With("ids", free)); err != nil {
				return err
			}
		}
		signs, err = signsOf(ctx, tx, a)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range free {
		if sign, held := signs[id]; held {
			sign.Extended = true
			signs[id] = sign
		}
	}
	return signs, nil
}

// Held returns the runs that are held, and says for which of them somebody requested a cancellation. It writes nothing,
// so it may be called often. A server that is behind may answer: only Heartbeat knows that a run is no longer held.
func (s *Store) Held(ctx context.Context, runs []string, h Holder) (map[string]Sign, error) {
	return signsOf(ctx, s.db, engine.Args{"ids": runs, "holder": h.Name})
}

func signsOf(ctx context.Context, q engine.Runner, a engine.Args) (map[string]Sign, error) {
	signs := map[string]Sign{}
	var id string
	var g Sign
	var cancel present
	err := q.Query(ctx, "held", a, engine.Reads(&id, &g.Fence, &cancel).Each(func(string) {
		g.Cancel = bool(cancel)
		signs[id] = g
	}))
	return signs, err
}

// Executes reports whether a run is under way whose process shows by its lock that it lives: see engine.DB.Hold. On an engine that has
// only the heartbeat, it never does.
func (s *Store) Executes(ctx context.Context) (bool, error) {
	const most = 1000 // a pass may hold some hundreds
	runs, err := s.Runs(ctx, RunFilter{States: []string{Running}, Limit: most})
	asked := map[string]bool{}
	for i := range runs {
		holder := runs[i].Holder
		if !asked[holder] && s.db.Alive(holder) {
			return true, nil
		}
		asked[holder] = true
	}
	return false, err
}
