package tick

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/decide"
)

// begin asks the database what there is to do. It refuses a database other than the one that the
// settings name, and a clock that is too far off.
func (t *Tick) begin(ctx context.Context) (*pass, error) {
	p := t.newPass(ctx)
	if err := store.CheckTrigger(t.Name, t.StartupID, t.Queues); err != nil {
		return p, err
	}
	probe, err := p.ask(ctx)
	if probe == nil {
		p.report.mended = errors.Is(err, store.ErrSchema) && p.isInstalled(ctx)
		return p, err
	}
	p.holder.Login = probe.Login
	p.probe = probe
	p.decider = &decide.Pass{Login: probe.Login, Served: t.Store.Served(), StartupID: t.StartupID, Began: probe.Now, Heartbeat: heartbeat, Late: t.Late, On: t.On.Of(probe.Login)}
	p.report.StartedAt, p.report.Frozen, p.report.Warning = probe.Now, probe.Frozen, probe.Warning
	p.log.Debug("connected", "database", p.report.Database, "clock", probe.Now, "frozen", probe.Frozen, "something to do", probe.Anything())
	p.found(probe)
	p.came = t.apart(p.began, p.report.skew)
	if since := probe.SilentSince(t.Late, p.came); t.Alarm == nil && !since.IsZero() {
		p.report.SilentSince, p.report.SilentUntil = since, probe.Now
		p.unraised = p.decider.On.Late != "" && p.decider.On.Late != store.NoHook
	}
	p.report.OldestDue, p.report.DueAt = probe.LateSince, probe.Now
	if err := p.isMeant(probe); err != nil {
		return p, err
	}
	p.report.meant = true
	if err := p.hasTheTime(probe); err != nil {
		p.report.mended = true
		return p, err
	}
	p.report.mayWake = true
	if t.DryRun {
		return p, p.dryRun(ctx)
	}
	return p, nil
}

// apart is the longest time without a pass since the one on record, as far as a process knows that begins a pass now; zero: it does
// not know. The host's clock is ahead of the database's by skew, which counts: the clock of a machine that is paused stands still.
func (t *Tick) apart(now time.Time, skew time.Duration) time.Duration {
	gap := elapsed(t.tried, now) - (skew - t.skew)
	if t.tried.IsZero() || gap <= 0 {
		return 0
	}
	return max(gap, t.untold)
}

// newPass returns a pass that has not asked the database yet.
func (t *Tick) newPass(ctx context.Context) *pass {
	now := t.Now()
	p := &pass{t: t, log: t.Log, deadlines: deadlines{t: t, began: now, ends: now.Add(t.Budget)}, holder: store.Holder{Name: t.Holder, Lease: lease}}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.batch = t.Batch; p.batch <= 0 {
		p.batch = decideSize
	}
	p.passed, p.waits = map[store.Need][]store.PassedOver{}, maxWaits
	p.report = Report{Name: t.Name, Database: t.Store.Where(), DryRun: t.DryRun}
	p.holder.Refused = &store.Refusals{}
	p.settlements = map[string]*store.Settlement{}
	p.foreseen.Store(mostForeseen)
	p.without, p.failed = map[int64]bool{}, map[store.Need]error{}
	p.early.Store(t.early)
	p.came = t.apart(now, t.skew)
	p.init(t.Concurrency)
	p.closes(ctx)
	return p
}

// ask sends the probe, and makes the store serve the owners as which this host may log in. It returns nil if there is no answer:
// that is no error for a later pass of RunFor that the budget has ended.
func (p *pass) ask(ctx context.Context) (*store.Probe, error) {
	t := p.t
	within, cancel := p.budget(ctx)
	defer cancel()
	t.Store.Serve(t.Owners)
	probe, err := t.Store.Probe(within, t.Name, OwnQueue)
	if err == nil {
		t.Store.Separate(probe.Schema.Owners, probe.Login)
	}
	switch {
	case err == nil && probe.Schema.Owners:
		t.Store.Serve(slices.DeleteFunc(slices.Clone(t.Owners), func(owner string) bool { return owner == probe.Login }))
		return probe, nil
	case err == nil: // anybody can write the owner of a job, so jobs run only under the own login of this host
		t.Store.Serve(nil)
		return probe, nil
	case t.whole > 0: // an earlier pass of this trigger has done its part
		err = p.cutShort(ctx, within, err)
	case errors.Is(err, store.ErrNoAnswer):
		err = fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		err = fmt.Errorf("%w: no answer within the budget: %w", store.ErrUnreachable, err)
	}
	return nil, err
}

// isInstalled reports whether the tables of dbjobs are there, though their schema does not fit.
func (p *pass) isInstalled(ctx context.Context) bool {
	within, cancel := p.budget(ctx)
	defer cancel()
	schema, err := p.t.Store.Schema(within)
	return err == nil && schema.Version > 0
}

// isMeant refuses a database other than the one that the settings name.
func (p *pass) isMeant(probe *store.Probe) error {
	t := p.t
	if probe.Schema.Instance != t.Instance {
		return fmt.Errorf("this database is the instance %q, but the tick is for %q; nothing was done; correct DBJOBS_INSTANCE, or, if this is the right database, its name: `dbjobs migrate --instance NAME` or --no-instance",
			probe.Schema.Instance, t.Instance)
	}
	return nil
}

// hasTheTime refuses a clock that is too far off. A later pass may find it right.
func (p *pass) hasTheTime(probe *store.Probe) error {
	t := p.t
	if skew := probe.Now.Sub(p.began).Abs(); t.MaxClockSkew > 0 && skew > t.MaxClockSkew {
		return fmt.Errorf("the database's clock (%s) and this host's (%s) differ by %s; nothing was done; correct the clock that is wrong, or set --max-clock-skew",
			probe.Now.Format(time.RFC3339), p.began.UTC().Format(time.RFC3339), skew.Round(time.Second))
	}
	return nil
}
