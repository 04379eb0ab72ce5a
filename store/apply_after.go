package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/engine"
)

// sortAfter sorts the jobs after which a job runs into the order in which they are read.
func sortAfter(list []After) {
	slices.SortFunc(list, func(x, y After) int { return cmp.Or(cmp.Compare(x.Job, y.Job), cmp.Compare(x.id, y.id)) })
}

// after finds the jobs after which a job runs. They may be anywhere in the same file.
func (a *applier) after(j *Job) error {
	refuse := func(problem string) error { return &FieldError{"job " + j.FullName(), "after", problem} }
	j.After = slices.Clone(j.After)
	ids := make([]int64, 0, len(j.After))
	for i := range j.After {
		f := &j.After[i]
		other, err := a.known.find(f.Job, j.Owner)
		if err != nil { // a job that is done keeps its followers
			done, gone := a.done.jobs.find(f.Job, j.Owner)
			if gone != nil {
				return refuse(err.Error())
			}
			other = done
		}
		if f.Job, f.id = j.calls(other), other.ID; other.ID == j.ID {
			return refuse(errItself.Error())
		}
		if slices.Contains(ids, f.id) {
			return refuse("names job " + f.Job + " twice")
		}
		ids = append(ids, f.id)
	}
	sortAfter(j.After)
	a.known.after[j.ID] = ids
	return nil
}

// circles refuses a job that runs after itself by way of other jobs. It is called when it is known for all jobs of
// the file after which jobs they run. Each job is visited once.
func (a *applier) circles(edits []*edit) error {
	edited := make(map[int64]*Job, len(edits))
	for i := range edits {
		edited[edits[i].job.ID] = &edits[i].job
	}
	seen, open := map[int64]bool{}, map[int64]bool{} // open: on the way to the job
	var way []int64
	var follow func(id int64) error
	follow = func(id int64) error {
		if seen[id] {
			if open[id] {
				return a.circle(way[slices.Index(way, id):], edited)
			}
			return nil
		}
		seen[id], open[id], way = true, true, append(way, id)
		for _, next := range a.known.after[id] {
			if err := follow(next); err != nil {
				return err
			}
		}
		open[id], way = false, way[:len(way)-1]
		return nil
	}
	for i := range edits {
		if err := follow(edits[i].job.ID); err != nil {
			return err
		}
	}
	return nil
}

// circle refuses a circle that contains a job which is being written. Any other circle was made by plain SQL: a pass
// reports it.
func (a *applier) circle(ids []int64, edited map[int64]*Job) error {
	at := slices.IndexFunc(ids, func(id int64) bool { return edited[id] != nil })
	if at < 0 {
		return nil
	}
	ids = append(slices.Concat(ids[at:], ids[:at]), ids[at])
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = a.known.byID[id].Name
	}
	return &FieldError{"job " + edited[ids[0]].FullName(), "after",
		"the jobs run after each other in a circle: " + strings.Join(names, " after ")}
}

// findPredecessors reads the jobs after which the jobs run, the jobs after which those run, and so on: none of them
// may close a circle.
func (a *applier) findPredecessors(ctx context.Context, jobs []Job) error {
	var ids []int64
	for i := range jobs {
		for _, f := range jobs[i].After {
			for _, k := range a.known.byPlain[plainName(f.Job)] {
				ids = append(ids, k.ID)
			}
		}
	}
	slices.Sort(ids)
	for part := range slices.Chunk(slices.Compact(ids), page) {
		var job int64
		var k Job
		err := a.tx.Query(ctx, "predecessors", engine.Args{"ids": part}, engine.Reads(&job, &k.ID, &k.Owner, &k.Name).Each(func(string) {
			if a.known.byID[k.ID] == nil { // looked up by id, since no definition has its name
				a.known.byID[k.ID] = &Job{ID: k.ID, Owner: k.Owner, Name: k.Name}
			}
			if list := a.known.after[job]; !slices.Contains(list, k.ID) {
				a.known.after[job] = append(list, k.ID)
			}
			k = Job{}
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

// follow writes the jobs after which a job runs.
func (w *edits) follow(j, old *Job) {
	if slices.Equal(old.After, j.After) {
		return
	}
	if len(old.After) > 0 {
		w.unfollowing = append(w.unfollowing, j.ID)
	}
	e := w.a.s.Engine()
	for _, f := range j.After {
		b := e.AppendField(e.AppendField(nil, "job_id", j.ID), "after_job_id", f.id)
		w.following = append(w.following, engine.EndRow(e.AppendField(b, "on_end", f.On)))
	}
}
