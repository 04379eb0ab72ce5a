package store

import (
	"context"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// OverdueAfter is the default for how long the next time of a job may pass without a decision until the job counts as
// overdue. A trigger that comes each minute comes sooner.
const OverdueAfter = 2 * time.Minute

// Standing is the state of all jobs: for each kind of trouble the number of jobs, and the first of them. Neither the
// time to read it nor its size depends on how many jobs have no trouble, but for paused ones that are due before others.
type Standing struct {
	Now     time.Time // by the database's clock
	Thawed  time.Time // when the last freeze that is over has ended; zero: there was none
	Overdue Kind      // the oldest first
	Parked  Kind
	Failing Kind // the jobs with the most failures in a row first
	// Coming are the jobs whose next time is before an instant, the earliest first, without the overdue jobs. The
	// next time may have come since the last pass, or in a freeze that is over.
	Coming     []JobStatus
	ComingMore bool // there are more of them
}

// Kind is the number of jobs of a kind, and the first of them. Disabled jobs are not counted. If there are many more jobs
// than First has, one that is paused or parked may be counted as overdue.
type Kind struct {
	Count int
	First []JobStatus
}

// Standing reads the state of all jobs: at most limit jobs of each kind. Overdue are jobs whose next time passed at
// least late ago, and coming are jobs whose next time is at most within away.
func (s *Store) Standing(ctx context.Context, late, within time.Duration, limit int) (st Standing, err error) {
	if st.Now, st.Thawed, err = s.thaw(ctx, s.db); err != nil {
		return st, err
	}
	var owners []string
	if err := s.db.Query(ctx, "owners", engine.Args{}, engine.Column(&owners)); err != nil || len(owners) == 0 { // no job has a plan yet
		return st, err
	}
	a := engine.Args{"now": s.now(), "ids": owners, "overdue": st.Now.Add(-late), "until": st.Now.Add(within)}
	if err = s.db.Row(ctx, "standing", a, &st.Overdue.Count, &st.Parked.Count, &st.Failing.Count); err != nil {
		return st, err
	}
	var overdue, parked, failing, coming judged
	c := candidates{jobs: map[int64]JobStatus{}}
	for enough, most := false, 2*limit; !enough; most *= 8 {
		if err := s.readCandidates(ctx, a, &c, most); err != nil {
			return st, err
		}
		overdue = c.judge("overdue", func(v *JobStatus) bool { return v.Overdue > 0 && v.Overdue >= Duration(late) })
		parked = c.judge("parked", (*JobStatus).CountsAsParked)
		failing = c.judge("failing", (*JobStatus).Failing)
		coming = c.judge("coming", func(v *JobStatus) bool { return !v.NextRun.IsZero() && v.Parked == "" })
		enough = 8*most > mostJudged || overdue.enough(limit) && parked.enough(limit) && failing.enough(limit) && coming.enough(limit+1) // is there one more?
	}
	st.Overdue = overdue.kind(st.Overdue.Count, limit)
	st.Parked = parked.kind(st.Parked.Count, limit)
	st.Failing = failing.kind(st.Failing.Count, limit)
	frozen := c.judge("overdue", func(v *JobStatus) bool { return v.Overdue > 0 && v.Overdue < Duration(late) }) // it was due in a freeze
	st.Coming = append(frozen.jobs, coming.jobs...)
	st.ComingMore = len(st.Coming) > limit
	st.Coming = st.Coming[:min(limit, len(st.Coming))]
	if st.Thawed.After(st.Now.Add(-late)) { // nothing is late yet
		st.Overdue = Kind{}
	}
	return st, nil
}

// mostJudged bounds how many jobs of a kind Standing reads where the first ones are paused.
const mostJudged = 20_000

// candidates are the first jobs of each kind, by what their plans say. Each of them is judged again: a pass may have decided
// meanwhile, and the plan of a job that is paused or parked has a next time, too.
type candidates struct {
	ids  map[string][]int64 // by kind: the worst or the earliest first
	most int                // the limit of each kind; a kind with as many may have more
	jobs map[int64]JobStatus
}

// judged are the candidates that are of a kind.
type judged struct {
	jobs []JobStatus
	all  bool // no other job is of the kind
}

// judge returns the candidates of a kind that are of it.
func (c *candidates) judge(kind string, is func(*JobStatus) bool) (j judged) {
	for _, id := range c.ids[kind] {
		if v, ok := c.jobs[id]; ok && is(&v) {
			j.jobs = append(j.jobs, v)
		}
	}
	j.all = len(c.ids[kind]) < c.most
	return j
}

// enough reports whether to read more candidates would add nothing to the first of them.
func (j judged) enough(limit int) bool { return j.all || len(j.jobs) >= limit }

// kind returns the kind. count is how many jobs are of it by what their plans say.
func (j judged) kind(count, limit int) Kind {
	if j.all {
		count = len(j.jobs)
	}
	return Kind{count, j.jobs[:min(limit, len(j.jobs))]}
}

// readCandidates reads up to the limit of each kind. It keeps the jobs that it has read before.
func (s *Store) readCandidates(ctx context.Context, a engine.Args, c *candidates, most int) error {
	c.ids, c.most, a = map[string][]int64{}, most, a.With("limit", most)
	kind, id := "", int64(0)
	add := func() { c.ids[kind] = append(c.ids[kind], id) }
	if err := s.db.Query(ctx, "standing_jobs", a, engine.Scan(add, &kind, &id)); err != nil {
		return err
	}
	kind = "coming"
	if err := s.db.Query(ctx, "coming_jobs", a, engine.Scan(add, &id)); err != nil {
		return err
	}
	return s.addStatuses(ctx, c.jobs, c.ids)
}

// addStatuses reads the jobs that are not known yet.
func (s *Store) addStatuses(ctx context.Context, known map[int64]JobStatus, kinds map[string][]int64) error {
	var ids []int64
	for _, list := range kinds {
		for _, id := range list {
			if _, ok := known[id]; !ok {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	for part := range slices.Chunk(slices.Compact(ids), page) {
		list, err := s.statuses(ctx, s.db, part...)
		if err == nil {
			err = s.deriveAll(ctx, s.db, list)
		}
		if err != nil {
			return err
		}
		for _, v := range list {
			known[v.ID] = v
		}
	}
	return nil
}

// Silence is an interval in which a trigger did not come, although it came regularly before.
type Silence struct {
	Trigger string    `json:"trigger"`
	From    time.Time `json:"from"`           // its last pass before the silence
	Until   time.Time `json:"until,omitzero"` // its first pass after the silence; zero: it is still silent
}

// Silences returns the silences of triggers that last, and those that ended since an instant, the newest first. A trigger that came
// a few times, and then no more, is silent, unless it came as seldom before: somebody has set it up lately, or started it again.
func (s *Store) Silences(ctx context.Context, triggers []Trigger, now, since time.Time) (list []Silence, err error) {
	const most = 2500 // a week has fewer stretches, since a silence is longer than five minutes
	for _, t := range triggers {
		var stretches []Trigger // the newest first
		rd := engine.Reads(engine.At(&t.Since), engine.At(&t.LastAt), &t.Passes)
		err := s.db.Query(ctx, "stretches", engine.Args{"name": t.Name, "since": since, "limit": most}, rd.Each(func(fault string) {
			if fault != "" {
				t.Passes = 0
			}
			stretches = append(stretches, t)
		}))
		if err != nil {
			return nil, err
		}
		end := time.Time{} // when the next stretch began
		for i, v := range stretches {
			lasts := i == 0 && now.Sub(v.LastAt) > silence
			died := lasts && v.Passes > 1 && (len(stretches) > 1 && stretches[1].Passes >= regular || len(stretches) == 1 && v.Since.After(since))
			if died || v.Passes >= regular && (lasts || i > 0) {
				list = append(list, Silence{t.Name, v.LastAt, end})
			}
			end = v.Since
		}
	}
	slices.SortStableFunc(list, func(x, y Silence) int { return y.From.Compare(x.From) })
	return list, nil
}

// OpenRuns are runs that have not ended, and that wait for the same thing or execute in the same queue.
type OpenRuns struct {
	State  string    `json:"state"`             // waiting, queued or running
	HeldBy string    `json:"held_by,omitempty"` // predecessor, group or pause
	Group  string    `json:"group,omitempty"`   // the group that holds them, if any
	Begun  bool      `json:"begun"`             // they were executed before, and failed or were stopped
	Later  bool      `json:"later"`             // their time has not come yet
	Queue  string    `json:"queue"`             // the queue in which they are executed
	Runs   int       `json:"runs"`              // how many
	Since  time.Time `json:"since,omitzero"`    // when the oldest of them was made
	Ready  time.Time `json:"ready_at,omitzero"` // when the first of them may go
	Job    string    `json:"job,omitempty"`     // the job of one of them
}

// OpenRuns counts the runs that have not ended, by what they wait for, the oldest first: at most limit kinds.
func (s *Store) OpenRuns(ctx context.Context, limit int) (list []OpenRuns, err error) {
	var v OpenRuns
	var j Job
	rd := engine.Reads(&v.State, engine.Nullable(&v.HeldBy), &v.Begun, &v.Later, &v.Queue, engine.Nullable(&v.Group), &v.Runs, engine.At(&v.Since), engine.At(&v.Ready),
		engine.Nullable(&j.Owner), engine.Nullable(&j.Name))
	err = s.db.Query(ctx, "open_runs", engine.Args{"now": s.now(), "limit": limit}, rd.Each(func(string) {
		v.Job = j.FullName()
		list = append(list, v)
		v, j = OpenRuns{}, Job{}
	}))
	return list, err
}

// LongestRuns returns the runs that execute, the longest-running first.
func (s *Store) LongestRuns(ctx context.Context, limit int) ([]Run, error) {
	return s.listRuns(ctx, s.db, "runs_longest", engine.Args{"limit": limit})
}

// Figures are the numbers that a monitor collects.
type Figures struct {
	Jobs, Running, Stuck int
	StuckSince           time.Time // when the first of them was ready, lost its lease, or ended
	StuckJob             string    // its job; empty: it is gone
}

// Figures counts jobs, runs that execute, and runs that are stuck. A run is stuck if for this length it was ready and
// nobody took it, or if nobody decided for it although its wait was over, it had ended, or its lease had ended. A freeze,
// in which nobody does so, is no part of this length. It reads no settled run.
func (s *Store) Figures(ctx context.Context, stuck time.Duration) (f Figures, err error) {
	now, thaw, err := s.thaw(ctx, s.db)
	if err != nil {
		return f, err
	}
	before := now.Add(-stuck)
	a := engine.Args{"before": before, "limit": 1}
	if err = s.db.Row(ctx, "count_jobs", nil, &f.Jobs); err != nil {
		return f, err
	}
	if err = s.db.Row(ctx, "figures", a, &f.Running, &f.Stuck); err != nil || f.Stuck == 0 {
		return f, err
	}
	if thaw.After(before) {
		f.Stuck = 0
		return f, nil
	}
	var j Job
	rd := engine.Reads(engine.At(&f.StuckSince), engine.Nullable(&j.Owner), engine.Nullable(&j.Name))
	err = s.db.Query(ctx, "stuck", a, rd.Each(func(string) {
		f.StuckJob = j.FullName()
	}))
	return f, err
}

// PausedItself counts the jobs that dbjobs has paused because of their runs, and names one of them. Jobs that somebody has
// disabled, or paused as well, do not count.
func (s *Store) PausedItself(ctx context.Context) (jobs int, first string, err error) {
	var n int
	var j Job
	rd := engine.Reads(&n, engine.Nullable(&j.Owner), engine.Nullable(&j.Name))
	err = s.db.Query(ctx, "count_paused_itself", engine.Args{"now": s.now()}, rd.Each(func(string) {
		jobs, first = n, j.FullName()
	}))
	return jobs, first, err
}
