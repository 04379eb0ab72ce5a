package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Ended reports whether the run has reached its final state.
func (r *Run) Ended() bool {
	return r.State == Succeeded || r.State == Failed || r.State == Cancelled || r.State == Lost
}

// openRun chooses the run that the name of a job means, to be cancelled: its only open run. If several are open, somebody has to
// say which: the latest only waits for the one that hangs. If none is open, it is the latest run.
func (s *Store) openRun(ctx context.Context, job string) (Run, error) {
	j, err := s.jobOnRecord(ctx, job)
	if err != nil {
		return Run{}, err
	}
	open, err := s.listRuns(ctx, s.db, "runs_unended", engine.Args{"job": j.ID, "limit": mostHolders + 1})
	if err != nil {
		return Run{}, err
	}
	switch len(open) {
	case 0:
		return s.latestRun(ctx, job)
	case 1:
		return open[0], nil
	}
	names := make([]string, 0, len(open))
	for i := range open[:min(len(open), mostHolders)] {
		names = append(names, fmt.Sprintf("%s (%s)", open[i].Label(), open[i].State))
	}
	if len(open) > mostHolders {
		names = append(names, "...")
	}
	return Run{}, &FieldError{"run " + job, "name", fmt.Sprintf("several runs of the job are open: %s; name one of them, or cancel all with `dbjobs job abort %s --run-only`",
		strings.Join(names, ", "), Argument(job))}
}

// CancelRun requests the end of a run. If the run has not been delivered, the next decision for its job
// cancels it. If it is running, its holder stops it; a pass checks for requests every 1.5 seconds, and a worker in SQL when it
// extends its lease. A second request changes nothing. If the run has ended, the error is a *FieldError. The run is returned as the request
// leaves it.
func (s *Store) CancelRun(ctx context.Context, id string, who Author) (Run, error) {
	found, err := s.runNamed(ctx, id, s.openRun)
	if err != nil {
		return Run{}, err
	}
	var r Run
	err = s.change(ctx, who, func(a *applier) error {
		n, err := a.tx.Exec(ctx, "request_cancel", engine.Args{"now": s.now(), "ids": []string{found.ID}, "by": a.o.By})
		if err != nil {
			return err
		}
		if r, err = a.runNow(ctx, found.ID); err != nil {
			return err
		}
		switch {
		case r.Ended():
			return &FieldError{"run " + r.Label(), "state", "has ended: " + r.State}
		case n == 0:
			return nil
		}
		return a.record("job", r.FullJob(), "cancel", r.JobID, nil, runsChanged{Runs: []string{r.ID}})
	})
	return r, err
}

// runsChanged is the entry of the change log about a change of runs.
type runsChanged struct {
	Runs []string `json:"runs,omitempty"`
}

// AbortJob cancels all runs of a job that have not ended, as CancelRun does, and disables the job. With runOnly it
// does not disable the job. It returns the ids of these runs, also of those whose end was requested before.
func (s *Store) AbortJob(ctx context.Context, name string, runOnly bool, who Author) ([]string, error) {
	var asked []string
	err := s.change(ctx, who, func(a *applier) error {
		asked = nil
		v, err := s.findJob(ctx, a.tx, name)
		if err != nil {
			return err
		}
		if err := s.lockPlans(ctx, a.tx, v.Job); err != nil {
			return err
		}
		if err := a.tx.Query(ctx, "cancellable", engine.Args{"job": v.ID}, engine.Column(&asked)); err != nil {
			return err
		}
		if _, err := execRuns(ctx, a.tx, "request_cancel", engine.Args{"now": s.now(), "by": a.o.By}, asked); err != nil {
			return err
		}
		if runOnly {
			return a.record("job", v.FullName(), "cancel", v.ID, nil, runsChanged{asked})
		}
		if v, err = a.lockFound(ctx, v); err != nil {
			return err
		}
		return a.enable(ctx, v.Job, false, "abort")
	})
	return asked, err
}

// lockPlans locks the plan of the job, and the plans of the jobs that it runs after: decisions for those jobs make
// runs of it. So no decision for any of them is made until the transaction ends: the statements that follow see
// earlier decisions, and later decisions see the effect of the statements. As in a decision, these locks come before
// those of the runs, in the order of the jobs. If a job has no plan yet, it is inserted first: otherwise there
// would be no lock against the first decision, which inserts it. A login inserts no plan of a job that it does not
// see: row security refuses the plan of another owner's job.
func (s *Store) lockPlans(ctx context.Context, tx *engine.Tx, j Job) error {
	list := []int64{j.ID}
	seen := []int64{j.ID}
	for _, f := range j.After {
		if list = append(list, f.id); !f.out {
			seen = append(seen, f.id)
		}
	}
	if _, err := tx.Exec(ctx, "enlist", engine.Args{"ids": seen}); err != nil {
		return err
	}
	return tx.Query(ctx, "lock_plans", engine.Args{"ids": list}, func(*sql.Rows) error { return nil })
}

// EnableJob enables or disables a job. Nominal times that fall due while the job is disabled become a gap. If the job
// is in that state already, the error is a *FieldError.
func (s *Store) EnableJob(ctx context.Context, name string, enabled bool, who Author) error {
	action := map[bool]string{true: "enable", false: "disable"}[enabled]
	return s.change(ctx, who, func(a *applier) error {
		v, err := a.lockJob(ctx, name)
		if err != nil {
			return err
		}
		if v.Disabled != enabled {
			return &FieldError{"job " + v.FullName(), "state", fmt.Sprintf("is %sd already", action)}
		}
		return a.enable(ctx, v.Job, enabled, action)
	})
}

// enable enables or disables a locked job: the change log has its whole definition.
func (a *applier) enable(ctx context.Context, j Job, enabled bool, action string) error {
	n, err := a.tx.Exec(ctx, "enable_job", engine.Args{"now": a.s.now(), "id": j.ID, "enabled": enabled})
	if err == nil && n == 0 { // it was removed just now
		err = engine.ErrConflict
	}
	if err != nil {
		return err
	}
	was := j
	j.Disabled = !enabled
	return a.record("job", j.FullName(), action, j.ID, was, j)
}

// FullJob returns the full name of the run's job.
func (r *Run) FullJob() string { return FullName(r.Owner, r.Job) }
