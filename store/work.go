package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Task is a run that was handed out, with what is needed to execute it.
type Task struct {
	Run Run       // as it is after the hand-out
	Job Job       // with its steps
	Now time.Time // of the hand-out, by the database's clock
}

// StepAt is the step at a position counted from 1; nil beyond the last.
func (t *Task) StepAt(position int) *Step {
	if position < 1 || position > len(t.Job.Steps) {
		return nil
	}
	return &t.Job.Steps[position-1]
}

// Holder is who takes runs: unique for each start of a process, or a heartbeat might keep alive what a predecessor
// of the same name has lost.
type Holder struct {
	Name  string
	Lease time.Duration
	Login string // takes the runs of this owner's jobs only; empty: of all

	// Within is the time that is left here: a run whose timeout is longer is not taken. 0: there is no end.
	Within time.Duration
	Timed  bool // and neither is one without a timeout
	// Until leaves runs that were made after it, but for those that follow on a run of this holder; zero: none.
	Until time.Time
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

// Take hands out up to limit queued runs of a queue: by priority, then age. Each has a new fence and a lease, and its
// attempt is on record as running.
//
// Crash window: after COMMIT, and before the answer is here, the runs are handed out to nobody. Their leases end, and
// the next pass hands them out again; nothing has been executed. Nothing executes before COMMIT has succeeded.
func (s *Store) Take(ctx context.Context, queue string, limit int, h Holder) ([]Task, error) {
	// More candidates than wanted, unlocked: those that another process has locked meanwhile are passed over. Where others
	// have all of them, there may be more behind.
	for window := limit*4 + 16; ; window *= 4 {
		var candidates []string
		err := s.query(ctx, s.db, "queued_ids", args{"now": s.now(), "queue": queue, "limit": window, "login": h.Login,
			"within_ms": h.Within.Milliseconds(), "timed": h.Timed,
			"until": h.Until, "holder": h.Name}, ids(&candidates))
		if err != nil || len(candidates) == 0 {
			return nil, err
		}
		tasks, err := s.takeAmong(ctx, candidates, limit, h)
		if err != nil || len(tasks) > 0 || len(candidates) < window {
			return tasks, err
		}
	}
}

// takeAmong takes what it can of the candidates. Where to write of one would be to wait, they are taken one by one, so that
// it keeps none of the others.
func (s *Store) takeAmong(ctx context.Context, candidates []string, limit int, h Holder) (tasks []Task, err error) {
	tasks, err = s.takeTogether(ctx, candidates, limit, h)
	if err == nil || !s.Locked(err) || s.d == sqlite || len(candidates) == 1 {
		return tasks, err
	}
	const most = 4 // waits
	for waits, i := 0, 0; i < len(candidates) && len(tasks) < limit && waits < most; i++ {
		one, failed := s.takeTogether(ctx, candidates[i:i+1], 1, h)
		if failed != nil && (!s.Locked(failed) || ctx.Err() != nil) {
			return tasks, failed
		}
		if tasks = append(tasks, one...); failed != nil {
			waits++
		}
	}
	if len(tasks) > 0 {
		return tasks, nil
	}
	return nil, s.heldBy(ctx, err)
}

func (s *Store) takeTogether(ctx context.Context, candidates []string, limit int, h Holder) (tasks []Task, err error) {
	err = s.persistFor(ctx, 1, func() error {
		return s.once(ctx, func(tx *sql.Tx) error {
			tasks = tasks[:0]
			free := candidates
			if s.d.has("reserve_queued") {
				free = nil
				if err := s.query(ctx, tx, "reserve_queued", args{"ids": candidates, "limit": limit}, ids(&free)); err != nil || len(free) == 0 {
					return err
				}
			}
			err := s.query(ctx, tx, "lock_queued", args{"now": s.now(), "ids": free, "limit": limit}, func(r *sql.Rows) error {
				var t Task
				err := r.Scan(append(scanRun(&t.Run), at{&t.Now})...)
				tasks = append(tasks, t)
				return err
			})
			if err != nil || len(tasks) == 0 {
				return err
			}
			return s.handOut(ctx, tx, tasks, h)
		})
	})
	if err != nil {
		return nil, err
	}
	return tasks, nil
}

// ids scans rows of one id each.
func ids(list *[]string) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		*list = append(*list, id)
		return err
	}
}

// Queues are those from which something may be taken now, in order of their names: from queue to queue along the index,
// whatever their lengths. As one recursive statement, MariaDB would read them whole.
func (s *Store) Queues(ctx context.Context) (list []string, err error) {
	for name := ""; ; list = append(list, name) {
		err := s.row(ctx, s.db, "next_queue", args{"after": name}, &name)
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
}

// TooLong lists jobs with a queued run whose timeout is longer than within: twenty at most.
func (s *Store) TooLong(ctx context.Context, queue string, within time.Duration) ([]TooLong, error) {
	var list []TooLong
	err := s.query(ctx, s.db, "too_long", args{"queue": queue, "within_ms": within.Milliseconds()}, func(r *sql.Rows) error {
		var l TooLong
		var owner, name string
		err := r.Scan(&owner, &name, ms{&l.Timeout})
		l.Job = (&Job{Owner: owner, Name: name}).FullName()
		list = append(list, l)
		return err
	})
	return list, err
}

// handOut marks the locked runs as running and reads what they are to do.
func (s *Store) handOut(ctx context.Context, tx *sql.Tx, tasks []Task, h Holder) error {
	taken, jobs := make([]string, len(tasks)), make([]int64, len(tasks))
	for i := range tasks {
		taken[i], jobs[i] = tasks[i].Run.ID, tasks[i].Run.JobID
	}
	n, err := s.exec(ctx, tx, "take", args{"now": s.now(), "lease_ms": h.Lease.Milliseconds(), "holder": h.Name, "ids": taken})
	if err != nil {
		return err
	}
	if n != int64(len(tasks)) { // the guard where locks are not to be had
		return fmt.Errorf("take runs: %w", errConflict)
	}
	byID := map[int64]Job{}
	if err := s.query(ctx, tx, "batch_jobs", args{"ids": jobs}, func(r *sql.Rows) error {
		var j Job
		var input string
		err := r.Scan(append(scanJob(&j), &input)...)
		byID[j.ID] = j
		return err
	}); err != nil {
		return err
	}
	if err := s.readSteps(ctx, tx, "batch_steps", args{"ids": jobs}, byID); err != nil {
		return err
	}
	rows := make([]attemptRow, 0, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		r := &t.Run
		t.Job = byID[r.JobID]
		r.Owner, r.Job = t.Job.Owner, t.Job.Name
		r.State, r.Holder = Running, h.Name
		if r.StartedAt.IsZero() {
			r.StartedAt = t.Now
		}
		r.Fence, r.Attempt, r.Attempts = r.Fence+1, r.Attempt+1, r.Attempts+1
		name := ""
		if st := t.StepAt(r.Step); st != nil {
			name = st.Name
		}
		rows = append(rows, attemptRow{r.ID, r.Attempts, r.Step, name, r.Attempt, r.Fence, h.Name})
	}
	text, err := doc(rows)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, tx, "begin_attempts", args{"rows": text, "now": s.now()})
	return err
}

func (s *Store) readSteps(ctx context.Context, q querier, statement string, a args, byID map[int64]Job) error {
	return s.query(ctx, q, statement, a, func(r *sql.Rows) error {
		var id int64
		var st Step
		if err := r.Scan(scanStep(&id, &st)...); err != nil {
			return err
		}
		if j, ok := byID[id]; ok {
			j.Steps = append(j.Steps, st)
			byID[id] = j
		}
		return nil
	})
}

// Sign is what a heartbeat finds out about a run that it holds.
type Sign struct {
	Fence  int
	Cancel bool // somebody wants it cancelled
}

// Heartbeat extends the leases of runs and returns those that are still held; one that is missing was handed out again.
//
// One whose row somebody has locked, such as its own step that commits with its end, or a session that was left open, keeps
// its lease as it is: to wait for it would let the leases of all the others end. Nobody recovers it meanwhile.
func (s *Store) Heartbeat(ctx context.Context, runs []string, h Holder) (map[string]Sign, error) {
	a := args{"now": s.now(), "lease_ms": h.Lease.Milliseconds(), "ids": runs, "holder": h.Name}
	err := s.tx(ctx, func(tx *sql.Tx) error {
		var free []string
		if err := s.query(ctx, tx, "lock_runs", a, ids(&free)); err != nil || len(free) == 0 {
			return err
		}
		_, err := s.exec(ctx, tx, "heartbeat", with(a, "ids", free))
		return err
	})
	if err != nil {
		return nil, err
	}
	signs := map[string]Sign{}
	err = s.query(ctx, s.db, "held", a, func(r *sql.Rows) error {
		var id string
		var g Sign
		var cancel time.Time
		err := r.Scan(&id, &g.Fence, at{&cancel})
		g.Cancel = !cancel.IsZero()
		signs[id] = g
		return err
	})
	return signs, err
}

// JobDB is a pool of connections for the SQL of jobs, apart from the store's own. Without a Wrap, it has the store's; its
// Login is the store's.
func (s *Store) JobDB(o Options) (*sql.DB, error) {
	o.forJobs, o.Login, o.secrets = true, s.login, s.secrets
	c, err := s.d.connector(s.url, o)
	if err != nil {
		return nil, s.hide(err)
	}
	c = connecting(s.d, c)
	if o.Wrap == nil {
		o.Wrap = s.around
	}
	if o.Wrap != nil {
		c = o.Wrap(c)
	}
	db := sql.OpenDB(c)
	db.SetMaxIdleConns(0) // thrown away after the run: whatever a statement did to its session goes with it
	return db, nil
}

// Interrupt tells how a statement is stopped on a server whose driver would leave it running when its context ends:
// the query for the connection's number, and the statement (with %d) that stops what it executes, sent from another
// connection. Empty where the driver stops statements itself.
func (s *Store) Interrupt() (connection, stop string) { return s.d.connection, s.d.stop }

// Instant is an instant in UTC as the engine's columns of instants take it from a text: with microseconds, and in the form
// of RFC 3339, but for MySQL and MariaDB, whose DATETIME refuses the T with a zone.
func (s *Store) Instant(t time.Time) string { return s.d.instantText(t.Truncate(time.Microsecond)) }

// Isolation is the level of the store's own transactions.
func (s *Store) Isolation() sql.IsolationLevel { return s.d.isolation }
