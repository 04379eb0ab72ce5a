package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// RunDetail is a run with its attempts, or the newest of them, and with what holds it.
type RunDetail struct {
	Run
	Tries  []Attempt `json:"tries"`
	Group  string    `json:"group,omitempty"`  // that holds it
	Paused *Pause    `json:"paused,omitempty"` // that holds it
	Behind []string  `json:"behind,omitempty"` // the labels of the first runs under way of its job or group, for which it waits
}

// Label is the name of the run for people: JOB#NUMBER, or JOB#ID as long as the run has no number, and if its job was removed: another
// job may get the name, and then JOB#NUMBER is a run of that one.
func (r *Run) Label() string {
	if r.Number > 0 && !r.removed {
		return fmt.Sprintf("%s#%d", r.FullJob(), r.Number)
	}
	return r.FullJob() + "#" + r.ID
}

// Run finds a run: by its label, JOB#NUMBER or JOB#ID; by its id alone; or by the name of a job, which means its
// latest run. A UUID may be cut to its first characters, at least four, if no other run has the same beginning. No two
// runs of a job ever get the same number. Of its attempts, the newest mostTries are read.
func (s *Store) Run(ctx context.Context, name string) (RunDetail, error) {
	return s.RunWithTries(ctx, name, mostTries)
}

// mostTries bounds the attempts of a run that are read with their output: a run that is tried every second has tens of thousands of
// them after a day.
const mostTries = 1000

// RunWithTries finds a run like Run, with a number of its newest attempts at most.
func (s *Store) RunWithTries(ctx context.Context, name string, most int) (RunDetail, error) {
	found, err := s.findRun(ctx, name)
	if err != nil {
		return RunDetail{}, err
	}
	d := RunDetail{Run: found, Tries: []Attempt{}} // JSON prints a list, also of a run that no process has taken
	if err := s.readTries(ctx, &d, most); err != nil || d.HeldBy == "" {
		return d, err
	}
	err = s.addHolders(ctx, &d)
	return d, err
}

func (s *Store) readTries(ctx context.Context, d *RunDetail, most int) error {
	if most <= 0 {
		return nil
	}
	var a Attempt
	rd := engine.Reads(append(scanAttempt(&a), engine.Nullable(&a.Output))...)
	err := s.db.Query(ctx, "attempts", engine.Args{"id": engine.ID(d.ID), "limit": most}, rd.Each(func(fault string) {
		a.Fault = fault
		d.Tries = append(d.Tries, a)
		a = Attempt{}
	}))
	slices.Reverse(d.Tries)
	return err
}

// mostHolders is how many runs are named for which another waits.
const mostHolders = 5

// addHolders finds what holds a run: the pause, or the runs for whose end it waits.
func (s *Store) addHolders(ctx context.Context, d *RunDetail) error {
	j, err := s.Job(ctx, d.FullJob())
	if errors.Is(err, ErrNotFound) || err == nil && j.ID != d.JobID { // it was removed, and perhaps made again
		return nil
	} else if err != nil {
		return err
	}
	a := engine.Args{"job": int64(0), "group": "", "limit": mostHolders + 1}
	switch d.HeldBy {
	case HeldByPause:
		if d.Paused = j.Paused; d.Paused == nil && len(j.SchedulePauses) > 0 {
			d.Paused = &j.SchedulePauses[0]
		}
		return nil
	case HeldByGroup:
		d.Group = j.Group
		a["group"] = j.Group
	default:
		a["job"] = j.ID
	}
	runs, err := s.listRuns(ctx, s.db, "runs_holding", a)
	d.Behind = labels(slices.DeleteFunc(runs, func(r Run) bool { return r.ID == d.ID })) // it has begun before
	return err
}

// labels returns the labels of the first runs of a list.
func labels(runs []Run) (names []string) {
	for i := range runs[:min(len(runs), mostHolders)] {
		names = append(names, runs[i].Label())
	}
	return names
}

// FullGroup reports whether a group has no room for a further run, with the labels of the first runs under way. A group that is
// missing has no room, and no run.
func (s *Store) FullGroup(ctx context.Context, name string) (full bool, behind []string, err error) {
	all, err := s.groups(ctx, s.db)
	most := all[name].MaxRunning
	if err != nil || most == 0 {
		return err == nil, nil, err
	}
	runs, err := s.listRuns(ctx, s.db, "runs_holding", engine.Args{"job": int64(0), "group": name, "limit": most})
	if len(runs) < most {
		return false, nil, err
	}
	return true, labels(runs), err
}

var (
	runPrefix = lazyregexp.New(`^[0-9a-f-]{4,36}$`)
	runText   = lazyregexp.New(`^[!-~]{1,36}$`) // of a text with other letters, MySQL would compare each run's id
	runNumber = lazyregexp.New(`^[1-9][0-9]{0,17}$`)
)

// findRun tries the name as an id first, since the program itself asks for ids.
func (s *Store) findRun(ctx context.Context, name string) (Run, error) {
	return s.runNamed(ctx, name, s.latestRun)
}

// runNamed finds a run like findRun, but for the name of a job, for which ofJob chooses.
func (s *Store) runNamed(ctx context.Context, name string, ofJob func(context.Context, string) (Run, error)) (Run, error) {
	r, err := s.runByID(ctx, name)
	if !errors.Is(err, ErrNotFound) || len(name) == len(anyID) && runPrefix.MatchString(name) {
		return r, err
	}
	if i := strings.LastIndexByte(name, '#'); i > 0 {
		if rest := name[i+1:]; runNumber.MatchString(rest) {
			r, err = s.runByNumber(ctx, name[:i], rest)
		} else {
			r, err = s.runByID(ctx, rest)
		}
		if !errors.Is(err, ErrNotFound) {
			return r, err
		}
	}
	if r, err = ofJob(ctx, name); errors.Is(err, ErrNotFound) {
		err = missingRun(name)
	}
	return r, err
}

// runByID finds a run by its id. Where the engine has a text, SQL may have given the run an id that is no UUID.
func (s *Store) runByID(ctx context.Context, id string) (Run, error) {
	if s.db.Engine().TextIDs && runText.MatchString(id) {
		if r, err := s.runBetween(ctx, id, id, id); !errors.Is(err, ErrNotFound) {
			return r, err
		}
	}
	low, high, ok := prefixRange(strings.ToLower(id))
	if !ok {
		return Run{}, ErrNotFound
	}
	return s.runBetween(ctx, id, low, high)
}

func (s *Store) runBetween(ctx context.Context, name, low, high string) (Run, error) {
	return s.oneRun(ctx, s.db, name, "run_by_prefix", engine.Args{"low": engine.ID(low), "high": engine.ID(high)})
}

// runNow reads a run as the transaction sees it.
func (a *applier) runNow(ctx context.Context, id string) (Run, error) {
	return a.s.oneRun(ctx, a.tx, id, "run_by_prefix", engine.Args{"low": engine.ID(id), "high": engine.ID(id)})
}

func (s *Store) runByNumber(ctx context.Context, job, number string) (Run, error) {
	j, err := s.jobOnRecord(ctx, job)
	if err != nil {
		return Run{}, err
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return Run{}, err
	}
	return s.oneRun(ctx, s.db, job+"#"+number, "run_by_number", engine.Args{"job": j.ID, "number": n})
}

func (s *Store) latestRun(ctx context.Context, job string) (Run, error) {
	j, err := s.jobOnRecord(ctx, job)
	if err != nil {
		return Run{}, err
	}
	r, err := s.oneRun(ctx, s.db, job, "run_undecided", engine.Args{"job": j.ID})
	if errors.Is(err, ErrNotFound) {
		r, err = s.oneRun(ctx, s.db, job, "run_latest", engine.Args{"job": j.ID})
	}
	return r, err
}

// oneRun reads the run that a statement finds.
func (s *Store) oneRun(ctx context.Context, q engine.Runner, name, statement string, a engine.Args) (Run, error) {
	found, err := s.listRuns(ctx, q, statement, a)
	switch {
	case err != nil:
		return Run{}, err
	case len(found) == 0:
		return Run{}, missingRun(name)
	case len(found) > 1:
		return Run{}, &FieldError{"run " + name, "id", fmt.Sprintf("there are several such runs (%s, %s, ...); give more characters of the id", found[0].ID, found[1].ID)}
	}
	return found[0], nil
}

// anyID is the shape of an id.
const anyID = "00000000-0000-0000-0000-000000000000"

// prefixRange returns the lowest and the highest UUID that begin with id.
func prefixRange(id string) (low, high string, ok bool) {
	if !runPrefix.MatchString(id) {
		return "", "", false
	}
	for i := range len(id) {
		if (anyID[i] == '-') != (id[i] == '-') {
			return "", "", false
		}
	}
	rest := anyID[len(id):]
	return id + rest, id + strings.ReplaceAll(rest, "0", "f"), true
}
