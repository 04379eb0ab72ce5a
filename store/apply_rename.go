package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Rename says that a definition had another name. It is done once: if nothing has the old name, there is nothing to do. If
// the definitions have both names, there is nothing to do either where both are there, or where another definition was
// renamed so before, and is gone: what has the old name by now is the definition of that name. If they have only the new one,
// the same holds for what does not belong to their manifest. Nothing belongs to definitions without one.
type Rename struct {
	Kind     string // job, schedule
	From, To string // names without an owner
}

// RenamesInTurn returns the renames in the order in which they are done: one that frees a name comes before the one
// that takes it, wherever they stand in the file.
func (d Definitions) RenamesInTurn() []Rename {
	frees := make(map[Rename][]Rename, len(d.Renames)) // by kind and name
	for _, r := range d.Renames {
		name := Rename{Kind: r.Kind, To: r.From}
		frees[name] = append(frees[name], r)
	}
	list := make([]Rename, 0, len(d.Renames))
	seen := make(map[Rename]bool, len(d.Renames))
	var add func(r Rename)
	add = func(r Rename) {
		if seen[r] {
			return
		}
		seen[r] = true
		for _, first := range frees[Rename{Kind: r.Kind, To: r.To}] {
			add(first)
		}
		list = append(list, r)
	}
	for _, r := range d.Renames {
		add(r)
	}
	return list
}

// renames gives definitions their new names, before any other name is looked up.
func (a *applier) renames(ctx context.Context, d Definitions) error {
	if len(d.Renames) == 0 {
		return nil
	}
	todo := a.s.renamer(ctx, a.tx, d, a.login, a.o.Manifest)
	var jobs, shared []Rename
	for _, r := range d.RenamesInTurn() {
		if r.Kind == KindSchedule {
			shared = append(shared, r)
		} else {
			jobs = append(jobs, r)
		}
	}
	if err := a.renamesOfSchedules(ctx, shared, todo); err != nil {
		return err
	}
	return a.renamesOfJobs(ctx, jobs, todo)
}

// namesOf returns the old and the new names, as they may be sent to every engine.
func namesOf(list []Rename) []string {
	var names []string
	for _, r := range list {
		names = append(names, r.From, r.To)
	}
	return legible(names)
}

func (a *applier) renamesOfSchedules(ctx context.Context, list []Rename, todo *renamer) error {
	there, err := a.s.schedulesNamed(ctx, a.tx, namesOf(list))
	if err != nil {
		return err
	}
	for _, r := range list {
		was, old := there[r.From]
		if !old {
			continue
		}
		_, taken := there[r.To]
		due, err := todo.due(r, was.ID, was.Manifest, taken)
		if err != nil {
			return err
		}
		if !due {
			continue
		}
		if err := a.mayTake("schedule "+r.From, was.Manifest); err != nil {
			return err
		}
		is := was
		is.Name = r.To
		if err := a.renameSchedule(ctx, was, is); err != nil {
			return err
		}
		delete(there, r.From)
		there[r.To] = is
	}
	return nil
}

func (a *applier) renamesOfJobs(ctx context.Context, list []Rename, todo *renamer) error {
	there := newKnownJobs()
	if err := a.s.jobsNamed(ctx, a.tx, namesOf(list), there.add); err != nil {
		return err
	}
	var going []*Job
	names := map[int64]string{}
	for _, r := range list {
		owner, ok := todo.owners[named{r.Kind, r.To}]
		if !ok {
			return fmt.Errorf("rename job %s: %w", r.To, ErrNotFound)
		}
		from, to := FullName(owner, r.From), FullName(owner, r.To)
		old := there.byName[from]
		if old == nil {
			continue
		}
		due, err := todo.due(r, old.ID, old.Manifest, there.byName[to] != nil)
		if err != nil {
			return err
		}
		if !due {
			continue
		}
		if err := a.mayTake("job "+from, old.Manifest); err != nil {
			return err
		}
		delete(there.byName, from)
		there.byName[to] = old
		going, names[old.ID] = append(going, old), r.To
	}
	was, err := a.allDefinitions(ctx, going)
	if err != nil || len(was) == 0 {
		return err
	}
	moves := make([]move, len(was))
	for i := range was {
		moves[i] = move{was[i], was[i]}
		moves[i].is.Name = names[was[i].ID]
	}
	manifest := a.o.Manifest
	defer func() { a.o.Manifest = manifest }()
	return a.renameJobs(ctx, moves)
}

// move is a job with its old name, and with its new one.
type move struct{ was, is Job }

// renameJobs writes the new names of jobs, one after the other: one may take the name that another one gives up. The jobs
// that name them as hooks are read and written together.
func (a *applier) renameJobs(ctx context.Context, moves []move) error {
	hooks := make(map[string]*Job, len(moves))
	moved := make(map[int64]*Job, len(moves))
	for i := range moves {
		hooks[moves[i].was.FullName()], moved[moves[i].is.ID] = &moves[i].is, &moves[i].is
	}
	hooked, err := a.hookedBy(ctx, hooks)
	if err != nil {
		return err
	}
	for i := range moves {
		m := &moves[i]
		if err := a.run(ctx, engine.Args{"id": m.is.ID, "name": m.is.Name}, "rename_job"); err != nil {
			return err
		}
		if err := a.record(KindJob, m.is.FullName(), "rename", m.is.ID, m.was, m.is); err != nil {
			return err
		}
	}
	for i := range hooked { // they were read with the old names, and are looked up by name
		hooked[i].follow(moved)
		hooked[i].followHooks(hooks)
	}
	if a.dry.on {
		a.dry.moved = moved
	}
	err = a.rewriteEach(ctx, hooked)
	if a.dry.on {
		a.dry.hooks = hooks // they have the new names from now on
	}
	return err
}

// hookedBy reads and locks the jobs that name one of these jobs, by full names, as a hook.
func (a *applier) hookedBy(ctx context.Context, hooks map[string]*Job) ([]Job, error) {
	var ids []int64
	err := a.eachHooked(ctx, nil, func(j *Job) {
		for _, hook := range j.On.All() {
			if j.hook(*hook, hooks) != nil {
				ids = append(ids, j.ID)
				return
			}
		}
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	slices.Sort(ids)
	if !a.dry.on {
		if err := a.lock(ctx, "lock_jobs", ids...); err != nil {
			return nil, err
		}
	}
	return a.allDefinitions(ctx, byIDs(ids))
}

// hook returns the job, of some that are given by full name, that the job names by this text as a hook; nil: none of them.
func (j *Job) hook(name string, jobs map[string]*Job) *Job {
	switch {
	case name == "" || name == NoHook:
		return nil
	case strings.Contains(name, "/"):
		return jobs[name]
	}
	return jobs[FullName(j.Owner, name)]
}

// follow gives the job, and those after which it runs, the names of the jobs that have other names now, by id.
func (j *Job) follow(moved map[int64]*Job) {
	if is := moved[j.ID]; is != nil {
		j.Name = is.Name
	}
	for i := range j.After {
		if is := moved[j.After[i].id]; is != nil {
			j.After[i].Job = j.calls(is)
		}
	}
	sortAfter(j.After)
}

// followHooks gives the hooks of the job the names that they have now. hooks has the jobs by their former full names.
func (j *Job) followHooks(hooks map[string]*Job) {
	for _, hook := range j.On.All() {
		if is := j.hook(*hook, hooks); is != nil {
			if *hook = j.calls(is); *hook == NoHook { // the name of a job
				*hook = is.FullName()
			}
		}
	}
}

// job gives a job that was read the new names, which a dry run did not write.
func (d *dryRun) job(j *Job) {
	if !d.on {
		return
	}
	j.follow(d.moved)
	j.followHooks(d.hooks)
	for _, name := range j.Schedules {
		if is, renamed := d.shared[name]; renamed {
			j.Schedules = renamedIn(j.Schedules, name, is.Name)
		}
	}
}

// schedule does the same as job for a shared schedule.
func (d *dryRun) schedule(c *Schedule) {
	if is, renamed := d.shared[c.Name]; renamed && is.ID == c.ID {
		c.Name = is.Name
	}
}
