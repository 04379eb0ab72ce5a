package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dbjobs/dbjobs/store/engine"
)

// renamer knows which renames of definitions are still to be done.
type renamer struct {
	owners   map[named]string // of what the definitions have; a schedule has none
	manifest string           // that has the definitions
	past     func() (pastRenames, error)
}

// named is a job or a schedule by its plain name.
type named struct{ kind, name string }

// renamer reads what it needs to know when it is asked. A job without an owner has the given one.
func (s *Store) renamer(ctx context.Context, q engine.Runner, d Definitions, owner, manifest string) *renamer {
	r := &renamer{owners: make(map[named]string, len(d.Schedules)+len(d.Jobs)), manifest: manifest}
	for i := range d.Schedules {
		r.owners[named{KindSchedule, d.Schedules[i].Name}] = ""
	}
	for i := range d.Jobs {
		r.owners[named{KindJob, d.Jobs[i].Name}] = cmp.Or(d.Jobs[i].Owner, owner)
	}
	r.past = sync.OnceValues(func() (pastRenames, error) {
		var names []string
		for _, of := range d.Renames {
			names = append(names, FullName(r.owners[named{of.Kind, of.To}], of.To))
		}
		return readPastRenames(ctx, q, names)
	})
	return r
}

// due reports whether a rename is to be done, where the definition with this id has the old name, and belongs to this manifest.
// taken: another one has the new name. If both names are there, the definitions need both. Where the rename was done before, the
// old name may have passed to a definition that is not meant: one that the definitions have, too, or that somebody else has made.
// What has no manifest may be of anybody, also for definitions without one.
func (r *renamer) due(of Rename, id int64, manifest string, taken bool) (bool, error) {
	owner := r.owners[named{of.Kind, of.To}]
	from, to := FullName(owner, of.From), FullName(owner, of.To)
	switch _, stays := r.owners[named{of.Kind, of.From}]; {
	case taken && stays:
		return false, nil
	case taken:
		return false, &FieldError{of.Kind + " " + to, "renamed_from", fmt.Sprintf("%s %s and %s are both there; remove one of them, or this key", of.Kind, from, to)}
	case !stays && manifest != "" && manifest == r.manifest:
		return true, nil
	}
	past, err := r.past()
	another := func(was int64) bool { return was != id }
	return err == nil && !slices.ContainsFunc(past[Rename{of.Kind, of.From, to}], another), err
}

// pastRenames are the renames that the change log has, with the ids of what they renamed. The new name of a job is its full
// name.
type pastRenames map[Rename][]int64

// readPastRenames reads which definitions got these names. An apply refuses what cannot be a name.
func readPastRenames(ctx context.Context, q engine.Runner, names []string) (pastRenames, error) {
	names = slices.DeleteFunc(names, func(name string) bool { return shortLine(name, 2*maxName+1) != nil })
	past := pastRenames{}
	for part := range slices.Chunk(names, page) {
		var r Rename
		var id int64
		var was struct{ Name string }
		err := q.Query(ctx, "past_renames", engine.Args{"ids": part}, engine.Reads(&r.Kind, &id, &r.To, jsonInto{&was}).Each(func(string) {
			r.From = was.Name
			past[r] = append(past[r], id)
			r, id, was.Name = Rename{}, 0, ""
		}))
		if err != nil {
			return nil, err
		}
	}
	return past, nil
}
