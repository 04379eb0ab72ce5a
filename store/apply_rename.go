package store

import (
	"context"
	"fmt"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Rename says that a definition had another name. It is done once: if nothing has the old name, there is nothing to do. If
// the definitions have both names, there is nothing to do either where both are there, or where another definition was
// renamed so before, and is gone: what has the old name by now is the definition of that name.
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
	todo := a.s.renamer(ctx, a.tx, d, a.login)
	for _, r := range d.RenamesInTurn() {
		if r.Kind == KindSchedule {
			if err := a.renameShared(ctx, r, todo); err != nil {
				return err
			}
			continue
		}
		owner, ok := todo.owners[named{r.Kind, r.To}]
		if !ok {
			return fmt.Errorf("rename job %s: %w", r.To, ErrNotFound)
		}
		if err := a.renameOne(ctx, r, owner, todo); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) renameShared(ctx context.Context, r Rename, todo *renamer) error {
	read, err := a.s.schedulesNamed(ctx, a.tx, []string{r.From, r.To})
	if err != nil {
		return err
	}
	there := make(map[string]Schedule, len(read))
	for _, c := range read {
		a.dry.schedule(&c)
		there[c.Name] = c
	}
	was, old := there[r.From]
	if !old {
		return nil
	}
	_, taken := there[r.To]
	if due, err := todo.due(r, was.ID, taken); !due {
		return err
	}
	if err := a.mayTake("schedule "+r.From, was.Manifest); err != nil {
		return err
	}
	is := was
	is.Name = r.To
	return a.renameSchedule(ctx, was, is)
}

func (a *applier) renameOne(ctx context.Context, r Rename, owner string, todo *renamer) error {
	there := newKnownJobs()
	err := a.s.jobsNamed(ctx, a.tx, legible([]string{r.From, r.To}), func(j *Job) {
		a.dry.job(j)
		there.add(j)
	})
	if err != nil {
		return err
	}
	old := there.byName[FullName(owner, r.From)]
	if old == nil {
		return nil
	}
	if due, err := todo.due(r, old.ID, there.byName[FullName(owner, r.To)] != nil); !due {
		return err
	}
	if err := a.mayTake("job "+old.FullName(), old.Manifest); err != nil {
		return err
	}
	list, err := a.definitions(ctx, []*Job{old})
	if err != nil || len(list) == 0 {
		return err
	}
	was := list[0]
	is := was
	is.Name = r.To
	hooked, err := a.hookedBy(ctx, &was)
	if err != nil {
		return err
	}
	if err := a.run(ctx, engine.Args{"id": was.ID, "name": r.To}, "rename_job"); err != nil {
		return err
	}
	if err := a.record("job", is.FullName(), "rename", was.ID, was, is); err != nil {
		return err
	}
	manifest := a.o.Manifest
	defer func() { a.o.Manifest = manifest }()
	err = a.followHook(ctx, hooked, &was, &is)
	a.dry.formerly = append(a.dry.formerly, was) // the hooks have the new name from now on
	return err
}

// renamedSchedule is a schedule whose row a dry run left as it is.
type renamedSchedule struct {
	from string
	is   Schedule
}

// job gives a job that was read the new names, which a dry run did not write.
func (d *dryRun) job(j *Job) {
	if !d.on {
		return
	}
	for i, is := range d.renamed {
		if j.ID == is.ID {
			j.Name = is.Name
		}
		for k := range j.After {
			if j.After[k].id == is.ID {
				j.After[k].Job = j.calls(is)
			}
		}
		if i >= len(d.formerly) {
			continue
		}
		was := &d.formerly[i]
		for _, hook := range j.On.All() {
			switch {
			case *hook == was.FullName():
				*hook = is.FullName()
			case *hook == was.Name && j.Owner == was.Owner:
				*hook = is.Name
			}
		}
	}
	sortAfter(j.After)
	for _, r := range d.shared {
		j.Schedules = renamedIn(j.Schedules, r.from, r.is.Name)
	}
}

// schedule does the same as job for a shared schedule.
func (d *dryRun) schedule(c *Schedule) {
	for _, r := range d.shared {
		if c.ID == r.is.ID {
			c.Name = r.is.Name
		}
	}
}
