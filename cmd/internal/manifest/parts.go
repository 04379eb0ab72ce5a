package manifest

import (
	"runtime"
	"slices"
	"sync"

	"github.com/dbjobs/dbjobs/store"
)

// manyJobs is the number from which on the jobs of a file are read on all processors.
const manyJobs = 500

// readInParts reads many jobs on all processors, and reports whether it did. If anything is wrong with a job,
// it leaves everything as it was. The caller then reads the jobs one after the other: that finds the problems
// in their order, and stops if there are too many.
func (f *file) readInParts(jobs []pair) bool {
	workers := runtime.GOMAXPROCS(0)
	if len(jobs) < manyJobs || workers == 1 || len(f.problems) > 0 {
		return false
	}
	for _, p := range jobs {
		if _, twice := f.defined[join("jobs", p.key.Value)]; twice {
			return false
		}
	}
	var parts []*file
	var work sync.WaitGroup
	for some := range slices.Chunk(jobs, (len(jobs)+workers-1)/workers) {
		part, read := *f, *f.decoder
		read.problems, read.references, read.places = nil, nil, nil
		read.values, read.bytes = 0, 0
		part.rules = nil
		part.decoder, part.m, part.job = &read, &Manifest{Definitions: store.Definitions{Jobs: make([]store.Job, 0, len(some))}}, nil
		parts = append(parts, &part)
		work.Go(func() {
			for _, p := range some {
				if part.readJob(p); len(part.problems) > 0 {
					return
				}
			}
		})
	}
	work.Wait()
	values, bytes := f.values, f.bytes
	for _, part := range parts {
		values, bytes = values+part.values, bytes+part.bytes
		if len(part.problems) > 0 {
			return false
		}
	}
	if f.tooMuch(values, bytes) {
		return false
	}
	f.values, f.bytes = values, bytes
	f.m.Jobs = slices.Grow(f.m.Jobs, len(jobs))
	for _, part := range parts {
		f.references = append(f.references, part.references...)
		f.m.Jobs = append(f.m.Jobs, part.m.Jobs...)
		f.m.Renames = append(f.m.Renames, part.m.Renames...)
		f.m.Chosen = append(f.m.Chosen, part.m.Chosen...)
		f.m.rulePlaces = append(f.m.rulePlaces, part.m.rulePlaces...)
		f.m.Zoneless = append(f.m.Zoneless, part.m.Zoneless...)
		f.m.Swallowed = append(f.m.Swallowed, part.m.Swallowed...)
	}
	for _, p := range jobs {
		f.once(p.key, join("jobs", p.key.Value))
	}
	return true
}
