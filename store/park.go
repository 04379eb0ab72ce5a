package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// Recheck is the time after which a job is tried again that could not be read, or whose decision was refused. So a
// person who repairs the row needs to do nothing else.
const Recheck = 5 * time.Minute

// park parks a job whose decision was refused, with the reason, until Recheck is over. If the database refuses even
// that, the job stays as it is, and is still reported.
func (d *deciding) park(ctx context.Context, p *Page, refusal error) (Batch, error) {
	s, job := d.s, p.jobs[0]
	c := Snapshot{Plan: Plan{JobID: job}}
	const refused = "its decision was refused: "
	b := Batch{Now: p.now, Gaps: map[string]int{}, Refused: []int64{job}}
	if err := s.db.PartialRow(ctx, "job_name", engine.Args{"id": job}, &c.Job.Owner, &c.Job.Name, engine.Nullable(&c.Plan.Parked)); err != nil && !errors.Is(err, ErrNotFound) && !s.Refused(ctx, err) {
		return b, err
	}
	why := s.kept(c.Job.Owner, refused+refusal.Error())
	err := s.db.InTx(ctx, func(tx *engine.Tx) error {
		if _, err := tx.Exec(ctx, "enlist", engine.Args{"ids": p.jobs}); err != nil {
			return err
		}
		w := newWriter(s, tx, p.now, 0)
		w.park(job, why, p.now.Add(Recheck))
		return bulk(ctx, w, "park_plans", w.parks, nil)
	})
	if err != nil {
		if !s.Refused(ctx, err) {
			return b, err
		}
		why += "; the job could not be parked: " + s.kept(c.Job.Owner, err.Error())
	}
	switch told := (Parked{c.name(), why}); {
	case err != nil:
		b.Stuck = []Parked{told}
	case !strings.HasPrefix(c.Plan.Parked, refused): // the text of the same refusal may differ each time
		b.Parked = []Parked{told}
	}
	return b, nil
}
