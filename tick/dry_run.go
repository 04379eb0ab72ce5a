package tick

import (
	"cmp"
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// dryRun lists the jobs that need a decision, and changes nothing.
func (p *pass) dryRun(ctx context.Context) error {
	names := map[int64]string{}
	jobs, err := p.t.Store.Jobs(ctx, store.JobFilter{})
	if err != nil {
		return err
	}
	for i := range jobs {
		names[jobs[i].ID] = jobs[i].FullName()
	}
	for _, n := range p.needed() {
		seen, err := p.t.Store.Unmarked(ctx, n)
		if err != nil {
			return err
		}
		page := store.NewPage(n, p.probe.Now, seen)
		for {
			more, err := p.t.Store.Next(ctx, page, p.batch)
			if err != nil {
				return err
			}
			if !more {
				break
			}
			page.Each(func(job int64, due time.Time) {
				c := Coming{Job: names[job], Need: n.String(), Due: due}
				if c.Job == "" {
					var unknown error
					c.Job, unknown = p.t.Store.JobName(ctx, job)
					c.Need, err = "job removed", cmp.Or(err, unknown)
				}
				p.report.Due = append(p.report.Due, c)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
