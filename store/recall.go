package store

import (
	"context"
	"math"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// newestNumber is the number of the newest run of a job; 0: it has none. One that cannot be read counts as the highest, so that
// recall reads it, and names it.
type newestNumber int64

func (n *newestNumber) Scan(src any) error {
	if (counter[int64]{(*int64)(n)}).Scan(src) != nil {
		*n = math.MaxInt64
	}
	return nil
}

// recall makes deleted plans again, from the runs and gaps on record, so that no nominal time is decided twice. It also brings
// plans that are older than the runs up to these, as they are where somebody has brought back an older copy of the table.
func (s *Store) recall(ctx context.Context, tx *engine.Tx, snapshots []Snapshot) error {
	var ids []int64
	asked := map[int64]*Snapshot{}
	for i := range snapshots {
		c := &snapshots[i]
		if fresh := c.Plan.Version == 0 && c.Plan.DecidedThrough.IsZero(); c.PlanFault == "" && (fresh || int64(c.newest) > c.Plan.RunsMade) {
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
