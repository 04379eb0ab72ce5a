package tick

import (
	"context"

	"github.com/dbjobs/dbjobs/store"
)

// states names jobs that are parked or failing, and reads the figures that need another statement.
func (p *pass) states(ctx context.Context) (err error) {
	r := &p.report
	trouble, err := p.trouble(ctx)
	if err != nil {
		return err
	}
	if r.Failing = trouble.Failing; len(trouble.Parked) == r.ParkedJobs { // the list has all: a job that this pass parked may be repaired by now
		r.Parked = nil
	}
	r.addParked(trouble.Parked)
	p.addUnkept()
	if !r.Frozen { // in a freeze, the ticks of their logins do nothing either
		if r.Unserved, err = p.t.Store.Unserved(ctx, p.probe); err != nil {
			return err
		}
	}
	if p.t.Gauges {
		if r.Paused, err = p.t.Store.CountPaused(ctx); err != nil {
			return err
		}
		if r.OldestQueued, err = p.t.Store.OldestQueued(ctx); err != nil {
			return err
		}
		r.OldestQueued = p.probe.FromThaw(r.OldestQueued)
	}
	r.States = true // all of them are read
	return nil
}

// trouble reads which jobs are parked or failing, and counts them. The numbers of the probe are not those of the report: it counts
// jobs that somebody has paused, too.
func (p *pass) trouble(ctx context.Context) (t store.Trouble, err error) {
	if !p.troubled {
		return t, nil
	}
	if t, err = p.t.Store.Trouble(ctx, named); err == nil {
		p.report.ParkedJobs, p.report.FailingJobs = t.ParkedJobs, t.FailingJobs
	}
	return t, err
}

// found notes the facts of a probe: whether jobs are parked or failing, and when something needs a
// decision next. The wake time is the same instant by the host's clock.
func (p *pass) found(probe *store.Probe) {
	p.troubled = probe.Parked+probe.Failing > 0
	p.report.next(probe, p.t.Now())
}
