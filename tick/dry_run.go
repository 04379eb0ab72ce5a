package tick

import (
	"cmp"
	"context"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// dryRun lists the jobs that need a decision, reports a freeze and queued runs, and changes nothing.
func (p *pass) dryRun(ctx context.Context) error {
	if until := p.probe.FrozenUntil; until.Before(store.Last) {
		p.report.FrozenUntil = until
	}
	p.report.Queued, p.report.QueuedSince = p.probe.Queued, p.probe.QueuedSince
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
		for _, page := range p.pages(n, seen) {
			if err := p.list(ctx, n, page, names); err != nil {
				return err
			}
		}
	}
	return nil
}

// list adds the jobs of a need to the report, beginning at a page.
func (p *pass) list(ctx context.Context, n store.Need, page *store.Page, names map[int64]string) error {
	for {
		more, err := p.t.Store.Next(ctx, page, p.batch)
		if err != nil || !more {
			return err
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
