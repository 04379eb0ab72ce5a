package store

import (
	"context"
	"fmt"

	"github.com/dbjobs/dbjobs/store/engine"
)

// JobName has the texts by which a command can name a job, alone or together with others.
type JobName struct {
	Owner, Name, Queue string
	Tags               []string
}

// JobNames reads only the names of all jobs: for the completion of a command line.
func (s *Store) JobNames(ctx context.Context) ([]JobName, error) {
	var out []JobName
	err := eachJobName(ctx, s.db, func(n JobName) { out = append(out, n) })
	return out, err
}

// eachJobName calls f for each job that is not removed.
func eachJobName(ctx context.Context, q engine.Runner, f func(JobName)) error {
	var v JobName
	rd := engine.Reads(&v.Owner, &v.Name, &v.Queue, tags{&v.Tags})
	return q.Query(ctx, "job_names", engine.Args{}, rd.Each(func(string) {
		f(v)
		v = JobName{}
	}))
}

// placeName is the name of a step that is given none, by its position, counted from 1.
func placeName(position int) string { return fmt.Sprintf("step %d", position) }
