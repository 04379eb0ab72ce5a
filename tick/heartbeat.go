package tick

import (
	"context"
	"log/slog"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// beat sends heartbeats for the runs that this pass holds, until all of them have ended. Between heartbeats it looks for runs
// that somebody wants cancelled, or that this pass no longer holds, and stops them. A heartbeat is due by the
// clock, however long the looks take, because a database that answers slowly must not let the leases end.
func (p *pass) beat(ctx context.Context) {
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.beating.Go(func() {
		every := time.NewTicker(look)
		defer every.Stop()
		due := time.NewTimer(heartbeat)
		defer due.Stop()
		failed := 0       // heartbeats in a row
		arms := wakeBeats // the look with which an alarm is to be set
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			p.mu.Lock()
			ids, asked := make([]string, 0, len(p.running)), make([]delivery, 0, len(p.running))
			for h := range p.running {
				ids, asked = append(ids, h.run), append(asked, h)
			}
			p.mu.Unlock()
			if n == arms && p.t.Alarm != nil && !p.armMidway(ctx, n == wakeBeats) {
				arms += int(heartbeat / look)
			}
			select {
			case <-due.C:
				last, err := p.extend(ctx, ids, asked, failed)
				if failed++; err == nil {
					failed = 0
				}
				next := heartbeat
				if !last {
					next = 0 // with the next look
				}
				due.Reset(next)
			default:
				p.lookForStops(ctx, ids, asked)
			}
		}
	})
}

// extend sends one heartbeat, and reports whether the leases of all runs last beyond the next one. If not, because there was no
// answer, or because another session has had the row of a run locked for long, the next look tries again: the leases last for
// some more of them. failed is how many heartbeats before it had no answer. While the database is away, not each of them is worth
// a warning, which cron would mail.
func (p *pass) extend(ctx context.Context, ids []string, asked []delivery, failed int) (last bool, err error) {
	within, cancel := context.WithTimeout(ctx, heartbeat/2)
	defer cancel()
	began := p.t.Now()
	signs, err := p.t.Store.Heartbeat(within, ids, p.holder)
	if ctx.Err() != nil { // the last run has ended meanwhile
		return false, ctx.Err()
	}
	if err != nil {
		level := slog.LevelDebug
		if failed%int(heartbeat/look) == 0 {
			level = slog.LevelWarn
		}
		p.log.Log(ctx, level, "heartbeat", "error", err)
		return false, err
	}
	p.heed(asked, signs, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	last = true
	for _, h := range asked {
		one, sign := p.running[h], signs[h.run]
		switch {
		case one == nil || sign.Fence != h.fence: // it has ended, or is no longer held
		case sign.Extended:
			one.leased = began.Add(lease)
		case !one.leased.After(began.Add(heartbeat + 2*look)): // two heartbeats in a row have passed over it
			last = false
		}
	}
	return last, nil
}

// lookForStops stops the runs that somebody wants cancelled, and those that this pass no longer holds: after a failover, another
// process may execute them at the same time. If the database does not answer, the next look tries again.
func (p *pass) lookForStops(ctx context.Context, ids []string, asked []delivery) {
	within, cancel := context.WithTimeout(ctx, heartbeat/2)
	defer cancel()
	signs, err := p.t.Store.Held(within, ids, p.holder)
	if err != nil {
		p.log.Debug("looking for runs to be stopped", "error", err)
		return
	}
	if gone := p.heed(asked, signs, false); len(gone) > 0 {
		ids = make([]string, len(gone))
		for i, h := range gone {
			ids[i] = h.run
		}
		_, _ = p.extend(ctx, ids, gone, 1) // not answered: the next look asks again
	}
}

// heed stops the runs that somebody wants cancelled, and those that two answers in a row did not have, if the second one is that of
// a heartbeat: any other may come from a server that is behind, and of several servers that take writes, one may be behind for a
// moment. It returns the runs that only a heartbeat can tell.
func (p *pass) heed(asked []delivery, signs map[string]store.Sign, beat bool) (doubtful []delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range asked {
		one, here := p.running[h]
		if !here { // the run has ended in the meantime
			continue
		}
		sign, held := signs[h.run]
		held = held && sign.Fence == h.fence
		switch {
		case held && sign.Cancel:
			one.stop(errCancelled)
		case !held && one.missed && beat:
			one.stop(store.ErrOutdated)
		case !held && one.missed:
			doubtful = append(doubtful, h)
		}
		one.missed = !held
	}
	return doubtful
}
