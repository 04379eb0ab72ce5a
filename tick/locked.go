package tick

import (
	"context"
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// lockedLong is how long a job may wait for a decision because other sessions hold locks. After that the
// pass fails. Another pass, or a person's edit, holds locks only for seconds.
const lockedLong = 5 * time.Minute

// stepLong takes the place of lockedLong for an SQLite file, as long as a living process has a run under way: its step may write to the
// file for as long as it takes, and no other session can write meanwhile.
const stepLong = time.Hour

// writes says in the report that an SQLite file was locked for longer than the pass waits.
const writes = "a step of a job, or another process, writes to the database file; the next pass goes on"

// maxWaits is how often a pass waits for another session's lock, to find out which jobs the lock
// concerns. Each wait lasts up to a second.
const maxWaits = 16

// lockedTries is how often a pass tries again to decide for a locked job before this is an error: another
// pass may be deciding for the job.
const lockedTries = 3

// Locked is a job that the pass has skipped because another session has locked one of the job's rows.
type Locked struct {
	Job   string    `json:"job"`            // owner/name
	What  string    `json:"what"`           // what is locked, such as its plan
	Since time.Time `json:"since,omitzero"` // since when the job needs a decision
}

// stuck collects the jobs that have needed a decision for a long time, and the jobs for whose locks the
// pass has waited.
func (p *pass) stuck() (list []store.PassedOver, waited bool) {
	seen := map[int64]bool{}
	for _, n := range append(store.Needs(), store.Startup, store.Check, store.Older) {
		for _, l := range p.passed[n] {
			if !seen[l.JobID] && (l.Waited || p.long(l)) {
				seen[l.JobID] = true
				list = append(list, l)
			}
			waited = waited || l.Waited
		}
	}
	return list, waited
}

func (p *pass) long(l store.PassedOver) bool {
	return !l.Due.IsZero() && p.probe.Now.Sub(l.Due) > lockedLong
}

// tellLocked reports the jobs that other sessions have locked, and these sessions, as far as the engine
// knows them. If a job has needed a decision for a long time, tellLocked returns an error: otherwise
// nobody would know that the job does not run.
func (p *pass) tellLocked(ctx context.Context) error {
	list, waited := p.stuck()
	for try := 0; len(list) > 0 && !waited && try < lockedTries; try++ {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		before := map[int64]bool{}
		for _, l := range list {
			before[l.JobID] = true
		}
		for _, n := range []store.Need{store.RunWakes, store.Due} {
			if _, err := p.decideNeed(ctx, n, &store.Unmarked{}, true); err != nil {
				return err
			}
		}
		again, w := p.stuck()
		list, waited = list[:0], w
		for _, l := range again {
			if before[l.JobID] {
				list = append(list, l)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	oldest := time.Time{}
	for _, l := range list {
		if p.long(l) && (oldest.IsZero() || l.Due.Before(oldest)) {
			oldest = l.Due
		}
	}
	p.report.LockedJobs = len(list)
	for _, l := range list[:min(len(list), named)] {
		name, err := p.t.Store.JobName(ctx, l.JobID)
		if err != nil {
			return err
		}
		if l.What == "" {
			l.What = "its plan"
		}
		p.report.Locked = append(p.report.Locked, Locked{Job: name, What: l.What, Since: l.Due})
	}
	p.report.LockHolders = p.t.Store.LockHolders(ctx)
	if oldest.IsZero() || p.probe.Now.Sub(p.probe.FromThaw(oldest)) <= lockedLong { // nobody has decided in a freeze
		return nil
	}
	jobs := "1 job"
	if len(list) > 1 {
		jobs = fmt.Sprintf("%d jobs", len(list))
	}
	return fmt.Errorf("%w: %s could not be decided, the first since %s; end the transaction that holds the lock; %s",
		store.ErrLocked, jobs, oldest.UTC().Format(time.RFC3339), p.report.LockHolders)
}

// behindWriter ends a pass that is not on record because another session has the SQLite file locked. That is no error, and nobody has to
// do anything about it, unless it lasts longer than lockedLong, or stepLong: then it is one as with locks on a server. Passes may have
// come that could not be recorded, so only the pass that is on record again may find that the trigger was silent.
func (p *pass) behindWriter(ctx context.Context) error {
	p.report.SilentSince, p.report.SilentUntil = time.Time{}, time.Time{}
	allowed, why := lockedLong, p.t.Store.LockHolders(ctx)
	if executes, err := p.t.Store.Executes(ctx); err == nil && executes {
		allowed = stepLong
	}
	if since := p.undecided(ctx); !since.IsZero() && p.probe.Now.Sub(since) > allowed {
		return fmt.Errorf("%w: %s: what is due since %s waits for that; if no step of a job writes for so long, end the process that does",
			store.ErrReadOnly, why, since.UTC().Format(time.RFC3339))
	}
	if err := p.unrecorded(allowed, why); err != nil {
		return err
	}
	p.log.Info("the pass is not on record", "why", why)
	return nil
}

// undecided is since when a job needs a decision that this pass could not make because of the lock of an SQLite file; zero: there is none.
func (p *pass) undecided(ctx context.Context) time.Time {
	if p.report.CutShort != writes {
		return time.Time{}
	}
	if now, err := p.t.Store.Probe(ctx, p.t.Name, OwnQueue); err == nil { // the first one has what this pass may have decided
		return now.LateSince
	}
	return p.probe.LateSince
}
