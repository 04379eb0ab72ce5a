package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// knownJobs are jobs of which only id, owner, name and manifest are read: those that the definitions name, those
// after which they run, and those that the manifest owns.
type knownJobs struct {
	byName  map[string]*Job   // by full name
	byPlain map[string][]*Job // by name, of all owners
	byID    map[int64]*Job
	owned   []*Job            // by the manifest
	after   map[int64][]int64 // the jobs after which they run
}

func newKnownJobs() knownJobs {
	return knownJobs{byName: map[string]*Job{}, byPlain: map[string][]*Job{}, byID: map[int64]*Job{}, after: map[int64][]int64{}}
}

func (k *knownJobs) add(j *Job) {
	if old := k.byID[j.ID]; old != nil {
		return
	}
	k.byID[j.ID] = j
	if k.byName[j.FullName()] == nil {
		k.byName[j.FullName()] = j
		k.byPlain[j.Name] = append(k.byPlain[j.Name], j)
	}
}

// find looks a job up by owner/name, or by a name that only one owner has (the given one first).
func (k *knownJobs) find(name, owner string) (*Job, error) {
	if j := k.byName[name]; j != nil {
		return j, nil
	}
	if j := k.byName[strings.TrimPrefix(owner+"/"+name, "/")]; j != nil {
		return j, nil
	}
	switch list := k.byPlain[name]; len(list) {
	case 1:
		return list[0], nil
	case 0:
		return nil, missing("job", name)
	default:
		names := make([]string, len(list))
		for i, j := range list {
			names[i] = j.FullName()
		}
		slices.Sort(names)
		return nil, fmt.Errorf("job %q: several owners have a job with this name: %s", name, strings.Join(names, ", "))
	}
}

// plainName is a job's name without its owner.
func plainName(name string) string {
	if _, plain, ok := strings.Cut(name, "/"); ok {
		return plain
	}
	return name
}

// legible are the names that an engine may be asked for, each once: the others are refused with the job that has them.
func legible(names []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return checkName(name) != nil })
	slices.Sort(names)
	return slices.Compact(names)
}

// known hands over the jobs of a statement.
func (s *Store) known(ctx context.Context, q engine.Runner, statement string, args engine.Args, take func(*Job)) error {
	return q.Query(ctx, statement, args, func(r *sql.Rows) error {
		j := &Job{}
		err := r.Scan(&j.ID, &j.Owner, &j.Name, engine.Nullable(&j.Manifest))
		take(j)
		return err
	})
}

// find reads which of the jobs are there, and those that they have to do with.
func (a *applier) find(ctx context.Context, jobs []Job) error {
	a.known = newKnownJobs()
	names := make([]string, 0, len(jobs))
	for i := range jobs {
		names = append(names, jobs[i].Name)
		for _, f := range jobs[i].After {
			names = append(names, plainName(f.Job))
		}
		names = jobs[i].On.names(names)
	}
	names = legible(names)
	for part := range slices.Chunk(names, page) {
		if err := a.s.known(ctx, a.tx, "jobs_named", engine.Args{"ids": part}, a.knows); err != nil {
			return err
		}
	}
	if a.dry.on {
		for _, j := range a.dry.renamed {
			a.known.add(&Job{ID: j.ID, Owner: j.Owner, Name: j.Name, Manifest: j.Manifest})
		}
	}
	return a.findPredecessors(ctx, jobs)
}

// knows adds a job that was read, by the name that it has by now.
func (a *applier) knows(j *Job) {
	a.dry.job(j)
	a.known.add(j)
}

// findOwned reads which jobs the manifest owns.
func (a *applier) findOwned(ctx context.Context) error {
	if a.o.Manifest == "" || a.o.CreateOnly {
		return nil
	}
	return a.s.known(ctx, a.tx, "jobs_owned", engine.Args{"manifest": a.o.Manifest}, func(j *Job) {
		a.dry.job(j)
		a.known.owned = append(a.known.owned, j)
	})
}

// definitions reads the whole of jobs that are known, in their order.
func (a *applier) definitions(ctx context.Context, known []*Job) ([]Job, error) {
	if len(known) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(known))
	place := make(map[int64]int, len(known))
	for i, k := range known {
		ids[i], place[k.ID] = k.ID, i
	}
	list := make([]Job, len(known))
	var j Job
	var input borrowed
	err := a.tx.Query(ctx, "batch_jobs", engine.Args{"ids": ids}, engine.Reads(append(scanJob(&j), &input)...).Each(func(fault string) error {
		j.fault = fault
		list[place[j.ID]] = j
		j = Job{}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(j Job) bool { return j.ID == 0 }) // deleted by plain SQL just now
	jobs := make([]*Job, len(list))
	for i := range list {
		jobs[i] = &list[i]
	}
	err = a.s.complete(ctx, a.tx, jobs)
	for _, j := range jobs {
		a.dry.job(j)
	}
	return list, err
}
