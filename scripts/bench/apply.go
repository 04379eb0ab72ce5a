package main

import "fmt"

// apply brings in a file of new jobs, and the same file again.
func apply(b *bench, t *table) error {
	t.title = fmt.Sprintf("%s of %d jobs", t.title, b.many)
	for _, engine := range b.engines {
		title := titles[engine]
		j := jobs{n: b.many}
		t.add(&contender{name: title + ": new", prepare: func() (err error) {
			if j.database, err = b.fresh(engine); err != nil {
				return err
			}
			_, err = b.dbjobs(j.database, "migrate")
			return err
		}, run: func() (sample, error) { return b.apply(j) }},
			&contender{name: title + ": unchanged", peer: title + ": new", run: func() (sample, error) { return b.apply(j) }})
	}
	return nil
}

func (b *bench) apply(j jobs) (sample, error) {
	file, err := b.manifest(j)
	if err != nil {
		return sample{}, err
	}
	s, err := b.dbjobs(j.database, "apply", "-f", file)
	if n, e := j.int(b.ctx, "SELECT count(*) FROM "+j.table("jobs")); err == nil && n != j.n {
		err = fmt.Errorf("%d jobs, want %d: %w", n, j.n, e)
	}
	return s, err
}
