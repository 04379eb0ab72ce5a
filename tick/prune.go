package tick

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// pruning is how long a pass without a budget deletes history. A pass with a budget uses at most a quarter of it.
const pruning = 10 * time.Second

// prune deletes history that is not to be kept: that of the jobs whose runs were settled, that of some
// other jobs, and all history that is too old. Then it deletes old records. If time runs out, a later pass deletes the rest.
func (p *pass) prune(ctx context.Context) error {
	if len(p.kept) == 0 && !p.probe.Expired || over(ctx) {
		return nil
	}
	warn := func(err error) { // pruning must not fail the pass
		if err != nil && !over(ctx) {
			p.log.Warn("looking for old history", "error", err)
		}
	}
	kept, looks := p.kept, len(p.kept) > 0 // a pass that settled nothing leaves the looks to the passes that do
	if looks {
		also, err := p.t.Store.Sweep(ctx)
		warn(err)
		kept = append(kept, also...)
	}
	share := pruning
	if p.t.Budget > 0 {
		share = p.whole() / 4
	}
	began := p.t.Now()
	more := func() bool { return p.t.Now().Sub(began) < share && !over(ctx) }
	n, err := p.t.Store.Prune(ctx, latest(kept), more)
	p.report.Pruned = n
	if err == nil && looks && !over(ctx) {
		warn(p.t.Store.Forget(ctx, more))
	}
	return err
}

// keep notes which history is to be kept. What it notes grows with the jobs, and not with their runs.
func (d *decisions) keep(list ...store.Retention) {
	if d.kept = append(d.kept, list...); len(d.kept) >= max(d.keptMost, mostKept) {
		d.kept = latest(d.kept)
		d.keptMost = 2 * len(d.kept)
	}
}

// latest keeps only the last Retention of each job.
func latest(kept []store.Retention) []store.Retention {
	at := make(map[int64]int, len(kept))
	list := kept[:0:0]
	for _, k := range kept {
		i, known := at[k.JobID]
		if !known {
			i = len(list)
			at[k.JobID], list = i, append(list, k)
		}
		list[i] = k
	}
	return list
}
