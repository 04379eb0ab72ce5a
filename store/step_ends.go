package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Ending is an end that is recorded together with other ends.
type Ending struct {
	Task *Task
	End  StepEnd
	Err  error // the outcome: nil, ErrAlone, or why the end could not be recorded
}

// ErrAlone says that an end was not recorded with the others. The caller records it by EndStep, whose error says why.
var ErrAlone = errors.New("this end is to be recorded by itself")

// Finishes reports whether the end is also the end of the run, whatever its row says, and nothing else has to be written with
// it. Such ends can be recorded together.
func (e *StepEnd) Finishes() bool {
	return e.NextStep <= 0 && !e.Retry && !e.Redeliver && e.Pause == "" && !e.InDoubt && e.Final != Lost
}

// Size is about how many bytes the end adds to a write, besides a few hundred. It bounds how many ends one list has.
func (e *StepEnd) Size() int {
	return min(len(e.Output), MostOutput) + min(len(e.Result), mostResult) + len(e.Error) + len(e.RunError) + len(e.Detail) + len(e.Hint)
}

type endingRow struct {
	ID       string `json:"id"`
	Fence    int    `json:"fence"`
	Holder   string `json:"holder"`
	Number   int    `json:"number"`
	Final    string `json:"final"`
	RunError string `json:"run_error,omitempty"`
	State    string `json:"state"`
	Rows     *int64 `json:"rows_affected,omitempty"`
	Error    string `json:"error,omitempty"`
	Code     string `json:"code,omitempty"`
	Line     int    `json:"line,omitempty"`
	Severity string `json:"severity,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Hint     string `json:"hint,omitempty"`
	Output   string `json:"output,omitempty"`
	Result   any    `json:"result,omitempty"`
	Waited   int64  `json:"waited_ms,omitempty"`
	Recorded int    `json:"recorded,omitempty"` // 1: the attempt has to have succeeded already

	// For an end that settles its run.
	JobID   int64 `json:"job_id,omitempty"`
	Version int64 `json:"version,omitempty"`
	Keep    int64 `json:"keep_ms,omitempty"`
}

// EndSteps records ends that finish their runs, all in one transaction, each only with the fence of its own delivery.
// Err of each one has its outcome. If another session has locked the row of a run, that end is left to EndStep, and
// does not hold up the others. An outdated end is left to EndStep too. Where the database refuses the write, the list
// is divided into halves until the end that causes the refusal stands alone. paused reports whether everything is
// paused.
//
// Crash window: as with EndStep, for all runs of the list.
func (s *Store) EndSteps(ctx context.Context, list []*Ending) (paused bool) {
	// Sorted by id, so that two processes that write at once lock the rows in the same order.
	list = slices.SortedFunc(slices.Values(list), func(a, b *Ending) int { return cmp.Compare(a.Task.Run.ID, b.Task.Run.ID) })
	rows := make([]endingRow, len(list))
	for i, e := range list {
		rows[i] = s.endingRow(e.Task, &e.End)
	}
	var free ended
	waits := 1
	if s.Engine().OneWriter { // it waits for the lock of the file, like any other writer
		waits = engine.Attempts
	}
	err := s.db.RetryFor(ctx, waits, fewConflicts, func() (err error) {
		free, paused, err = s.finishRuns(ctx, rows)
		return err
	})
	switch {
	case err == nil:
		for i, e := range list {
			settled, written := free[delivered{e.Task.Run.ID, e.Task.Run.Fence}]
			if e.Err = nil; !written {
				e.Err = ErrAlone
				continue
			}
			e.Task.Settled = settled
			e.Task.Run.State, e.Task.Run.Error = e.End.Final, rows[i].RunError
		}
	case s.Refused(ctx, err) && len(list) > 1:
		half := len(list) / 2
		first, second := s.EndSteps(ctx, list[:half]), s.EndSteps(ctx, list[half:])
		paused = first || second
	case s.Refused(ctx, err), s.Locked(err), errors.Is(err, engine.ErrConflict):
		for _, e := range list {
			e.Err = ErrAlone
		}
	default:
		for _, e := range list {
			e.Err = err
		}
	}
	return paused
}

// endingRow returns what is recorded of an end, whichever statement records it.
func (s *Store) endingRow(t *Task, end *StepEnd) endingRow {
	run, owner := &t.Run, t.Job.Owner
	row := endingRow{ID: run.ID, Fence: run.Fence, Holder: run.Holder, Number: run.Attempts, Final: end.Final, RunError: s.kept(owner, cmp.Or(end.RunError, end.Error)),
		State: end.State, Rows: end.Rows, Error: s.kept(owner, end.Error), Code: clip(end.Code), Line: max(end.Line, 0), Severity: clip(end.Severity),
		Detail: s.kept(owner, end.Detail), Hint: s.kept(owner, end.Hint), Output: s.told(owner, end.Output), Result: s.result(owner, end.Result), Waited: t.Waited.Milliseconds()}
	if end.Recorded {
		row.Recorded = 1
	}
	if with := t.Settlement; with != nil && end.Final == Succeeded {
		row.JobID, row.Version, row.Keep = with.JobID, with.Version, with.Keep.Milliseconds()
	}
	return row
}

// delivered is one delivery of a run. A list may hold two deliveries of the same run.
type delivered struct {
	run   string
	fence int
}

// ended are deliveries whose ends may be written, or are written. The value says whether the end settles the run.
type ended map[delivered]bool

// finishRuns writes the rows that it may write, and returns them: by one statement, or, where the engine has no such
// statement, in one transaction.
func (s *Store) finishRuns(ctx context.Context, rows []endingRow) (free ended, paused bool, err error) {
	if len(rows) == 1 && s.db.Has("finish_attempt") {
		return s.finishRun(ctx, &rows[0])
	}
	if s.db.Has("finish_attempts") {
		text, err := doc(rows)
		if err != nil {
			return nil, false, err
		}
		free = ended{}
		var one delivered
		var settled bool
		err = s.db.Write(ctx, "finish_attempts", engine.Args{"rows": text, "limit": len(rows), "now": s.now()}, engine.Scan(func() { free[one] = settled },
			&one.run, &one.fence, &paused, &settled))
		return free, paused, err
	}
	err = s.db.TryTx(ctx, func(tx *engine.Tx) error {
		if free, err = s.lockEnding(ctx, tx, rows, &paused); err != nil || len(free) == 0 {
			return err
		}
		var mine []endingRow
		for _, r := range rows {
			if _, locked := free[delivered{r.ID, r.Fence}]; locked {
				mine = append(mine, r)
			}
		}
		settling, err := s.lockSettling(ctx, tx, mine, free)
		if err != nil {
			return err
		}
		text, err := doc(mine)
		if err != nil {
			return err
		}
		n, err := tx.Exec(ctx, "finish_runs", engine.Args{"rows": text, "now": s.now()})
		if err != nil {
			return err
		}
		if n != int64(len(mine)) { // the guard where there are no locks
			return fmt.Errorf("end runs: %w", engine.ErrConflict)
		}
		if _, err = tx.Exec(ctx, "end_attempts", engine.Args{"rows": text, "now": s.now()}); err != nil {
			return err
		}
		return bulkWith(ctx, tx, "settle_plans", engine.Args{"now": s.now()}, settling, func(n int64) error {
			if n != int64(len(settling)) {
				return fmt.Errorf("settle runs: %w", engine.ErrConflict)
			}
			return nil
		})
	})
	return free, paused, err
}

// args are the values of the row for a statement that records this end alone.
func (r *endingRow) args(now any) engine.Args {
	a := engine.Args{"now": now, "id": engine.ID(r.ID), "fence": r.Fence, "holder": r.Holder, "number": r.Number, "final": engine.Null(r.Final), "run_error": engine.Null(r.RunError),
		"state": r.State, "rows": nil, "error": engine.Null(r.Error), "code": engine.Null(r.Code), "line": positive(int64(r.Line)),
		"severity": engine.Null(r.Severity), "detail": engine.Null(r.Detail), "hint": engine.Null(r.Hint), "output": engine.Null(r.Output),
		"result": r.Result, "waited_ms": r.Waited, "recorded": positive(int64(r.Recorded)), "job": positive(r.JobID), "version": r.Version, "keep_ms": r.Keep}
	if r.Rows != nil {
		a["rows"] = *r.Rows
	}
	return a
}

// finishRun is finishRuns for one row.
func (s *Store) finishRun(ctx context.Context, r *endingRow) (free ended, paused bool, err error) {
	free = ended{}
	var settled bool
	err = s.db.Write(ctx, "finish_attempt", r.args(s.now()), engine.Scan(func() { free[delivered{r.ID, r.Fence}] = settled }, &paused, &settled))
	return free, paused, err
}

// lockEnding locks the runs of deliveries that this holder still has, and skips those that other sessions have
// locked. It returns the locked ones.
func (s *Store) lockEnding(ctx context.Context, tx *engine.Tx, rows any, paused *bool) (ended, error) {
	text, err := doc(rows)
	if err != nil {
		return nil, err
	}
	if paused == nil {
		paused = new(bool)
	}
	free := ended{}
	var one delivered
	return free, tx.Query(ctx, "lock_ending", engine.Args{"rows": text, "now": s.now()}, engine.Scan(func() { free[one] = false }, &one.run, &one.fence, paused))
}
