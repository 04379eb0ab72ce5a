package main

import (
	"fmt"
	"sync"
	"time"
)

// ticks lets several ticks at the same time execute runs that are ready.
func ticks(b *bench, t *table) error {
	t.title = fmt.Sprintf("%d %s", b.ready, t.title)
	for _, engine := range b.engines {
		j, err := b.seed(engine, jobs{n: b.ready, queue: unserved})
		if err != nil {
			return err
		}
		prepare := func() error {
			if err := j.rewind(b); err != nil {
				return err
			}
			if _, err := b.dbjobs(j.database, "tick"); err != nil {
				return err
			}
			if err := j.run(b.ctx, "UPDATE "+j.table("runs")+" SET queue = 'tick'"); err != nil {
				return err
			}
			if engine == "postgres" {
				return j.run(b.ctx, "VACUUM ANALYZE dbjobs.runs")
			}
			return nil
		}
		name := func(n int) string { return fmt.Sprintf("%s: %d at once", titles[engine], n) }
		for _, n := range []int{1, 2, 4, 8} {
			t.add(&contender{name: name(n), peer: name(1), prepare: prepare, run: func() (sample, error) {
				s, err := b.together(j, n)
				if err == nil {
					err = j.executed(b)
				}
				return s, err
			}})
		}
	}
	return nil
}

// together runs n ticks at the same time. The memory is that of the largest process, the processor time that of
// all.
func (b *bench) together(j jobs, n int) (all sample, err error) {
	samples, errs := make([]sample, n), make([]error, n)
	var wait sync.WaitGroup
	began := time.Now()
	for i := range n {
		wait.Go(func() { samples[i], errs[i] = b.dbjobs(j.database, "tick") })
	}
	wait.Wait()
	all.took = time.Since(began)
	for i, s := range samples {
		if errs[i] != nil {
			return all, errs[i]
		}
		all.processor, all.peak = all.processor+s.processor, max(all.peak, s.peak)
	}
	return all, nil
}
