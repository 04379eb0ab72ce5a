package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// knownJobs are jobs of which only id, owner, name and manifest are read: the jobs that the definitions name, the
// jobs after which those run, and the jobs that the manifest owns.
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

// find looks a job up by owner/name, or by a name that only one owner has. The given owner comes first.
func (k *knownJobs) find(name, owner string) (*Job, error) {
	if j := k.byName[name]; j != nil {
		return j, nil
	}
	if j := k.byName[FullName(owner, name)]; j != nil {
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
		return nil, &severalError{name, names}
	}
}

// severalError says that a name without an owner means several jobs.
type severalError struct {
	name string
	jobs []string
}

func (e *severalError) Error() string {
	return fmt.Sprintf("job %q: %v: %s; name one of these", e.name, ErrSeveral, strings.Join(e.jobs, ", "))
}

func (e *severalError) Unwrap() error { return ErrSeveral }

// plainName returns the name of a job without its owner.
func plainName(name string) string {
	if _, plain, ok := strings.Cut(name, "/"); ok {
		return plain
	}
	return name
}

// legible returns, each once, the names that may be sent to every engine. A job that has another name is refused with
// it.
func legible(names []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return checkName(name) != nil })
	slices.Sort(names)
	return slices.Compact(names)
}

// known calls take for each job that a statement reads.
func (s *Store) known(ctx context.Context, q engine.Runner, statement string, args engine.Args, take func(*Job)) error {
	var j Job
	var manifest sql.NullString // a manifest that is no valid text is not that of the file
	return q.Query(ctx, statement, args, engine.Scan(func() {
		j.Manifest = manifest.String
		take(new(j))
	}, &j.ID, &j.Owner, &j.Name, &manifest))
}

// jobsNamed calls take for each job that has one of these names, of whichever owner.
func (s *Store) jobsNamed(ctx context.Context, q engine.Runner, names []string, take func(*Job)) error {
	for part := range slices.Chunk(names, page) {
		if err := s.known(ctx, q, "jobs_named", engine.Args{"ids": part}, take); err != nil {
			return err
		}
	}
	return nil
}

// find reads which of the jobs exist, and the jobs to which they refer.
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
	if err := a.s.jobsNamed(ctx, a.tx, legible(names), a.knows); err != nil {
		return err
	}
	if a.dry.on {
		for _, j := range a.dry.moved {
			a.known.add(&Job{ID: j.ID, Owner: j.Owner, Name: j.Name, Manifest: j.Manifest})
		}
	}
	return a.findPredecessors(ctx, jobs)
}

// knows adds a job that was read, by its current name.
func (a *applier) knows(j *Job) {
	a.dry.job(j)
	a.known.add(j)
}

// findOwned reads the jobs that the manifest owns.
func (a *applier) findOwned(ctx context.Context) error {
	if a.o.Manifest == "" || a.o.CreateOnly {
		return nil
	}
	return a.s.known(ctx, a.tx, "jobs_owned", engine.Args{"manifest": a.o.Manifest}, func(j *Job) {
		a.dry.job(j)
		a.known.owned = append(a.known.owned, j)
	})
}

// definitions reads the full definitions of known jobs, in their order.
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
	if err := a.readKnown(ctx, ids, func(id int64) *Job { return &list[place[id]] }); err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(j Job) bool { return j.ID == 0 }) // deleted by plain SQL just now
	jobs := make([]*Job, len(list))
	for i := range list {
		jobs[i] = &list[i]
	}
	err := a.s.complete(ctx, a.tx, jobs, "known_links")
	for _, j := range jobs {
		a.dry.job(j)
	}
	return list, err
}

// allDefinitions is definitions for any number of jobs.
func (a *applier) allDefinitions(ctx context.Context, known []*Job) ([]Job, error) {
	all := make([]Job, 0, len(known))
	for part := range slices.Chunk(known, batchSize) {
		list, err := a.definitions(ctx, part)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// byIDs returns jobs of which only the id is known.
func byIDs(ids []int64) []*Job {
	list := make([]*Job, len(ids))
	for i, id := range ids {
		list[i] = &Job{ID: id}
	}
	return list
}

// readKnown reads the rows of jobs into their places.
func (a *applier) readKnown(ctx context.Context, ids []int64, at func(id int64) *Job) error {
	var j Job
	var input borrowed
	unknown := map[int64]string{}
	err := a.tx.Query(ctx, "known_jobs", engine.Args{"ids": ids}, engine.Reads(append(scanBeside(&j), &input)...).Each(func(fault string) {
		j.fault = fault
		if kind := a.kinds.get(input); kind == nil {
			unknown[j.ID] = string(input)
		} else {
			j.as(kind)
		}
		*at(j.ID) = j
		j = Job{}
	}))
	if err != nil {
		return err
	}
	return a.kinds.read(ctx, a.tx, unknown, at, func(int64, string) {})
}
