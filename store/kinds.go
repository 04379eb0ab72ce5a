package store

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/dbjobs/dbjobs/store/engine"
)

// kinds has jobs by their plan_input, the text from which they are planned. Most jobs are alike: the three dozen columns in this
// text are read once for all jobs of a kind, and of the others only what is beside it.
type kinds struct {
	sync.Mutex // several batches are decided at the same time
	jobs       map[string]*Job
}

func (k *kinds) get(input []byte) *Job {
	k.Lock()
	defer k.Unlock()
	return k.jobs[string(input)] // without a copy
}

func (k *kinds) put(input string, j *Job) {
	k.Lock()
	defer k.Unlock()
	if k.jobs == nil {
		k.jobs = map[string]*Job{}
	}
	k.jobs[input] = j
}

// read reads one job of each unknown kind in full into its place, and completes the others there. unknown has the plan_input of
// each of these jobs. full is called for each job that was read in full, with its plan_input: another session may have changed it.
func (k *kinds) read(ctx context.Context, q engine.Runner, unknown map[int64]string, at func(id int64) *Job, full func(id int64, input string)) error {
	for len(unknown) > 0 { // once, or again where a session has changed the job that was to stand for others
		first := map[string]int64{}
		for _, id := range slices.Sorted(maps.Keys(unknown)) {
			if input := unknown[id]; first[input] == 0 {
				first[input] = id
			}
		}
		for _, id := range first {
			delete(unknown, id)
			*at(id) = Job{} // stays empty unless the job is still there
		}
		var j Job
		var input string
		err := q.Query(ctx, "batch_jobs", engine.Args{"ids": slices.Sorted(maps.Values(first))}, engine.Reads(append(scanJob(&j), &input)...).Each(func(fault string) {
			j.fault = fault
			*at(j.ID) = j
			full(j.ID, input)
			k.put(input, new(j))
			j = Job{}
		}))
		if err != nil {
			return err
		}
		for id, input := range unknown {
			if kind := k.get([]byte(input)); kind != nil {
				at(id).as(kind)
				delete(unknown, id)
			}
		}
	}
	return nil
}

// as completes a job, of which only what is beside its plan_input was read, with the values of another job of the same kind.
func (j *Job) as(kind *Job) {
	all := *kind
	all.fault = engine.JoinFaults(j.fault, kind.fault)
	all.ID, all.Owner, all.Name, all.Manifest, all.CreatedAt, all.changedAt = j.ID, j.Owner, j.Name, j.Manifest, j.CreatedAt, j.changedAt
	for _, p := range unplanned {
		*p.field(&all).(*string) = *p.field(j).(*string)
	}
	*j = all
}
