package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store"
)

const (
	followEvery = 500 * time.Millisecond // how often a run is read while somebody waits for it
	// noTick is how long no tick may come before somebody who waits gets a warning.
	noTick = 2 * time.Minute
	// outage is how long the database may be unreachable while somebody waits.
	outage = time.Minute
	// followAnswer is how long to wait for an answer. After that, the database is asked on another connection: this one may be
	// dead without a notice, as after a failover.
	followAnswer = 10 * time.Second
)

// follower follows a run to its end.
type follower struct {
	*cli
	s      *store.Store
	told   string    // the state in the last message
	idle   time.Time // since when the state has not changed, and no warning about missing ticks was printed
	failed time.Time // since when the database has not answered; zero: it answers
}

// follow waits for the end of a run and prints its states. It returns an error for each end except success. The
// end of ctx ends the wait, and not the run. Any other error says that the run is requested all the same.
func (c *cli) follow(ctx context.Context, s *store.Store, r *store.Run) (err error) {
	defer func() {
		switch {
		case err == nil || errors.Is(err, errJobFailed):
		case ctx.Err() != nil:
			c.say("run %s goes on; dbjobs run show %[1]s shows it, dbjobs run cancel %[1]s ends it", r.ID)
		default:
			err = fmt.Errorf("%w, but the end of run %s cannot be shown: %w", errChanged, r.ID, err)
		}
	}()
	if err := c.stdout.Flush(); err != nil { // a reader of the id needs it while the run goes on
		return fmt.Errorf("writing the output: %w", err)
	}
	f := &follower{cli: c, s: s, told: stateOf(r), idle: time.Now()}
	if !r.Ended() {
		if err := f.warnIfReached(ctx); err != nil {
			return err
		}
	}
	every := time.NewTicker(followEvery)
	defer every.Stop()
	for {
		var d store.RunDetail
		err := promptly(ctx, func(ctx context.Context) (err error) { d, err = f.read(ctx, r.ID); return err })
		if err == nil && d.Ended() {
			return f.ended(&d)
		}
		if err := f.look(ctx, &d, err); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
	}
}

// read reads the run without its attempts. If it has ended, and they are to be printed, it reads them, too.
func (f *follower) read(ctx context.Context, id string) (store.RunDetail, error) {
	d, err := f.s.RunWithTries(ctx, id, 0)
	if err == nil && d.Ended() && f.asJSON {
		return f.s.Run(ctx, id)
	}
	return d, err
}

// promptly asks the database. An answer that does not come counts as a database that is out of reach.
func promptly(ctx context.Context, ask func(context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, followAnswer)
	defer cancel()
	err := ask(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer within %s", store.ErrUnreachable, followAnswer)
	}
	return err
}

// look prints what is new about a run that has not ended. If the database is unreachable for a short time, look
// says that once and returns nil, so that the caller reads the run again.
func (f *follower) look(ctx context.Context, d *store.RunDetail, err error) error {
	switch now := time.Now(); {
	case errors.Is(err, store.ErrUnreachable) && (f.failed.IsZero() || now.Sub(f.failed) < outage):
		if f.failed.IsZero() {
			f.failed = now
			f.say("%v; trying again", err)
		}
		return nil
	case err != nil:
		return err
	case f.failed != time.Time{}:
		f.failed = time.Time{}
	}
	if is := stateOf(&d.Run); is != f.told {
		f.told, f.idle = is, time.Now()
		f.say("run %s: %s", d.ID, is)
	}
	if d.State == store.Running || time.Since(f.idle) < noTick {
		return nil
	}
	f.idle = time.Now()
	return f.warnIfReached(ctx)
}

// warnIfReached is warnNoTick, unless the database is unreachable: if this lasts, the next read of the run tells it.
func (f *follower) warnIfReached(ctx context.Context) error {
	if err := promptly(ctx, f.warnNoTick); !errors.Is(err, store.ErrUnreachable) {
		return err
	}
	return nil
}

// warnNoTick warns if the trigger seems to be dead: nothing else would execute the run.
func (f *follower) warnNoTick(ctx context.Context) error {
	var h report.Health
	now, err := f.s.Now(ctx)
	if err == nil {
		_, err = f.lastPass(ctx, f.s, "", &h)
	}
	h.PassOver(now.Add(noTick))
	switch age := now.Sub(h.LastPass).Truncate(time.Second); {
	case err != nil:
		return err
	case h.PassesHidden: // a tick of another login may come
	case h.LastPass.IsZero():
		f.say("no dbjobs tick has ever come to this database; the run waits until somebody starts one")
	case age < -noTick:
		f.say("no dbjobs tick has come since the clock of the database was set back; the run waits until somebody starts one")
	case age > noTick:
		f.say("the last dbjobs tick came %s ago; the run waits until somebody starts one", store.Duration(age))
	}
	return nil
}

func (f *follower) ended(d *store.RunDetail) error {
	if f.asJSON {
		if err := report.JSON(f.stdout, d); err != nil {
			return err
		}
	}
	if d.State == store.Succeeded {
		f.say("run %s: %s", d.ID, d.State)
		return nil
	}
	return fmt.Errorf("%w: run %s of job %s: %s: %s", errJobFailed, d.ID, d.FullJob(), d.State, cmp.Or(d.Error, "no error is on record"))
}

// stateOf returns the state of a run in words.
func stateOf(r *store.Run) string {
	switch {
	case r.State == store.Waiting && r.HeldBy != "":
		return "waiting, held by " + r.HeldBy
	case r.State == store.Waiting && r.Begun():
		return "waiting for its next attempt at " + report.Instant(r.ReadyAt)
	case r.State == store.Running && r.Holder != "":
		return "running on " + r.Holder
	}
	return r.State
}
