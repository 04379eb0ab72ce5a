package store

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// recall makes deleted plans again, from the runs and gaps on record, so that no nominal time is decided twice. For the need
// Older, it also brings plans that are older than the runs up to these.
func (s *Store) recall(ctx context.Context, tx *engine.Tx, n Need, snapshots []Snapshot) error {
	var ids []int64
	asked := map[int64]*Snapshot{}
	for i := range snapshots {
		c := &snapshots[i]
		if fresh := c.Plan.Version == 0 && c.Plan.DecidedThrough.IsZero(); c.PlanFault == "" && (fresh || n == Older) {
			ids = append(ids, c.Plan.JobID)
			asked[c.Plan.JobID] = c
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var job, number int64
	var scheduled, through time.Time
	return tx.Query(ctx, "recall", engine.Args{"ids": ids}, engine.Reads(&job, counter[int64]{&number}, engine.At(&scheduled), engine.At(&through)).Each(func(fault string) {
		defer func() { number, scheduled, through = 0, time.Time{}, time.Time{} }()
		c := asked[job]
		c.fault("its record", fault)
		if l := &c.Plan; fault == "" && (l.Version == 0 && l.DecidedThrough.IsZero() || number > l.RunsMade) {
			l.Cycles, l.RunsMade = l.Cycles+max(0, number-l.RunsMade), max(number, l.RunsMade)
			l.LastScheduledFor = later(l.LastScheduledFor, scheduled)
			l.DecidedThrough = later(l.DecidedThrough, later(scheduled, through))
			c.Recalled = l.RunsMade > 0 || !l.DecidedThrough.IsZero()
		}
	}))
}

func later(x, y time.Time) time.Time {
	if y.After(x) {
		return y
	}
	return x
}
