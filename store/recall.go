package store

import (
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// recall makes deleted plans again, from the runs and gaps on record, so that no nominal time is decided twice.
func (s *Store) recall(ctx context.Context, tx *engine.Tx, cases []Snapshot) error {
	var ids []int64
	fresh := map[int64]*Plan{}
	for i := range cases {
		if l := &cases[i].Plan; cases[i].PlanFault == "" && l.Version == 0 && l.DecidedThrough.IsZero() {
			ids = append(ids, l.JobID)
			fresh[l.JobID] = l
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var job, number int64
	var scheduled, through time.Time
	err := tx.Query(ctx, "recall", engine.Args{"ids": ids}, engine.Reads(&job, counter[int64]{&number}, engine.At(&scheduled), engine.At(&through)).Each(func(fault string) error {
		defer func() { number, scheduled, through = 0, time.Time{}, time.Time{} }()
		l := fresh[job]
		if fault != "" {
			for i := range cases {
				if cases[i].Plan.JobID == job {
					cases[i].fault("its record", fault)
				}
			}
			return nil
		}
		l.RunsMade, l.Cycles, l.LastScheduledFor, l.DecidedThrough = number, number, scheduled, scheduled
		if through.After(scheduled) {
			l.DecidedThrough = through
		}
		return nil
	}))
	for i := range cases {
		c := &cases[i]
		c.Recalled = fresh[c.Plan.JobID] != nil && (c.Plan.RunsMade > 0 || !c.Plan.DecidedThrough.IsZero())
	}
	return err
}
