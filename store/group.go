package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// GroupLoad is the state of a group as the decisions of a batch find it, under the lock of the group's own plan row.
// It is counted from the runs and stored nowhere, so it cannot drift.
type GroupLoad struct {
	Name       string
	MaxRunning int // 0: there is no such group
	Active     int // runs of all its jobs that are under way
	// Waiting are runs that wait for the group: all those of the jobs of the batch, and of other jobs the first ones, as many as
	// can be let go.
	Waiting []GroupWaiter
}

// GroupWaiter is a run that waits for its group.
type GroupWaiter struct {
	Run      string
	JobID    int64
	Priority int
	ReadyAt  time.Time
}

// GroupDecision is the decision for one job of a group, before the group admits its runs.
type GroupDecision struct {
	Snapshot *Snapshot
	Decision Decision
}

// lockGroups locks the plan rows of the groups of these jobs, and reads their caps. It locks in the order of the
// names, so two sessions that need several groups cannot deadlock. Lock order: plans, groups, runs. The runs of other
// jobs are counted here, and those of the jobs themselves where they are read, after the groups are locked: see
// GroupLoad.note. So a run of another job that ends in between counts as under way, and wakes its job. A run of these
// jobs counts as their decisions find it: if they settle it, nobody else looks at the place that it leaves.
func (s *Store) lockGroups(ctx context.Context, tx *engine.Tx, byJob map[int64]*Snapshot) error {
	caps, here := map[string]*GroupLoad{}, []int64{}
	for id, c := range byJob {
		if name := c.Job.Group; name != "" {
			if caps[name] == nil {
				caps[name] = &GroupLoad{Name: name}
			}
			c.Group = caps[name]
			here = append(here, id)
		}
	}
	if err := readLeft(ctx, tx, byJob, caps); err != nil || len(caps) == 0 {
		return err
	}
	names := slices.Sorted(maps.Keys(caps))
	if err := lockGroupPlans(ctx, tx, names); err != nil {
		return err
	}
	a, most := engine.Args{"ids": names, "here": here}, 0
	var found GroupLoad
	err := tx.Query(ctx, "group_caps", a, engine.Reads(&found.Name, &found.MaxRunning, &found.Active).Each(func(fault string) {
		if c := caps[found.Name]; c != nil && fault == "" {
			*c = found
			most = max(most, found.MaxRunning)
		}
		found = GroupLoad{}
	}))
	if err != nil {
		return err
	}
	var name string
	var h GroupWaiter
	const all = 1 << 30 // the cap of a group without a limit
	return tx.Query(ctx, "group_held", a.With("limit", min(most, all)), engine.Reads(&name, &h.Run, &h.JobID, &h.Priority, engine.At(&h.ReadyAt)).Each(func(fault string) {
		if c := caps[name]; c != nil && fault == "" { // otherwise the run's own decision ends it
			c.Waiting = append(c.Waiting, h)
		}
		h = GroupWaiter{}
	}))
}

// note notes a run of one of the jobs that decisions are made for. If the job is passed over after all, its run keeps its turn.
func (g *GroupLoad) note(r *Run) {
	switch {
	case g == nil:
	case r.UnderWay():
		g.Active++
	case r.State == Waiting && r.HeldBy == HeldByGroup && r.Fault == "":
		g.Waiting = append(g.Waiting, GroupWaiter{Run: r.ID, JobID: r.JobID, Priority: r.Priority, ReadyAt: r.ReadyAt})
	}
}

// lockGroupPlans locks the plan rows of groups, and makes those that are missing.
func lockGroupPlans(ctx context.Context, tx *engine.Tx, names []string) error {
	a := engine.Args{"ids": names}
	locked := 0
	lock := func() error {
		locked = 0
		return tx.Query(ctx, "lock_groups", a, engine.Scan(func() { locked++ }, new(string)))
	}
	if err := lock(); err != nil || locked == len(names) {
		return err
	}
	if _, err := tx.Exec(ctx, "enlist_groups", a); err != nil { // the first decision in a group
		return err
	}
	return lock()
}

// capChange is a new cap of a group, and the state of the runs that then ask for their places again, with the statement by which
// they do: those that wait, if the cap is raised, and those that are queued and that nobody has taken, if it is lowered.
type capChange struct{ group, state, again string }

func (c capChange) ask(ctx context.Context, tx *engine.Tx) error {
	var ids []string
	var id string
	err := tx.Query(ctx, "group_runs", engine.Args{"name": c.group, "state": c.state}, engine.Scan(func() { ids = append(ids, id) }, &id))
	if err != nil {
		return err
	}
	_, err = execRuns(ctx, tx, c.again, engine.Args{}, ids)
	return err
}

// askAgain lets the runs ask again that a decision has let wait, or has queued, while the cap of their group was changed. It comes
// after the COMMIT of the new cap. A decision that has read the old cap has the lock of the group until its own COMMIT. So once
// that lock was free, such runs are there, and later decisions read the new cap. No lock is kept meanwhile: passes must not wait
// for a large file that is applied, nor for one of the runs. The new cap stands whether this succeeds or not. If it fails, what
// still waits goes on with the next event of the group, or with the check of each hour. What is queued above a lower cap stays
// queued until somebody takes it, or until its job changes: the check looks for runs that wait.
func (s *Store) askAgain(ctx context.Context, caps []capChange) {
	if len(caps) == 0 || s.Engine().OneWriter { // one writer at a time: no decision was under way
		return
	}
	names := make([]string, 0, len(caps))
	for _, c := range caps {
		names = append(names, c.group)
	}
	slices.Sort(names)
	if err := s.db.InTx(ctx, func(tx *engine.Tx) error { return lockGroupPlans(ctx, tx, names) }); err != nil {
		return
	}
	for _, c := range caps {
		_ = s.db.InTx(ctx, func(tx *engine.Tx) error { return c.ask(ctx, tx) })
	}
}

// readLeft adds the groups from which edits have taken jobs: the runs that wait there may have a place now.
func readLeft(ctx context.Context, tx *engine.Tx, byJob map[int64]*Snapshot, caps map[string]*GroupLoad) error {
	var left []string
	for _, c := range byJob {
		if c.leftGroup != "" {
			left = append(left, c.leftGroup)
		}
	}
	if len(left) == 0 {
		return nil
	}
	var name, quoted string
	return tx.Query(ctx, "groups_quoted", engine.Args{"ids": left}, engine.Reads(&name, &quoted).Each(func(string) {
		for _, c := range byJob {
			if c.leftGroup != quoted {
				continue
			}
			if caps[name] == nil {
				caps[name] = &GroupLoad{Name: name}
			}
			c.Left = caps[name]
		}
	}))
}

// wakeHeld lets runs of jobs that are not in the batch ask for their group again: the decisions for those jobs let
// them go. It returns how many ask: with owners, the database keeps those for which runs of other owners leave no place.
func (s *Store) wakeHeld(ctx context.Context, tx *engine.Tx, runs []string) (int64, error) {
	return execRuns(ctx, tx, "wake_held", engine.Args{}, runs)
}

// errManyRuns says that the jobs of a page have more than mostRuns.
var errManyRuns = errors.New("the jobs of a page have too many runs for one transaction")

// manyRunsError is errManyRuns with the priorities of the jobs that have a group.
type manyRunsError map[int64]int

func (manyRunsError) Error() string { return errManyRuns.Error() }

// sorted returns the page in the order in which its parts are decided for: what has a high priority gets the places of its group
// before others ask for them. Otherwise the jobs stay in the order in which they are due.
func (m manyRunsError) sorted(p *Page) *Page {
	q := *p
	q.jobs = slices.Clone(p.jobs)
	slices.SortStableFunc(q.jobs, func(x, y int64) int { return cmp.Compare(m[y], m[x]) })
	q.due = p.dueOf(q.jobs)
	return &q
}

func tooManyRuns(snapshots []Snapshot) manyRunsError {
	m := manyRunsError{}
	for i := range snapshots {
		if c := &snapshots[i]; c.Group != nil {
			m[c.Plan.JobID] = c.Job.Priority
		}
	}
	return m
}
