package executor

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dbjobs/dbjobs/store/engine"
)

// If a target lets an attempt wait for a connection, and then gives none, the target is not tried for a while: an attempt that
// waits takes a place in the pass that other jobs need.
const (
	longWait  = time.Second
	leftAlone = 10 * time.Second
)

// database returns the database in which a step of the owner runs its statements: the store's own, or a target. The URL of a
// target is read for each attempt, since its password may change. The database of an earlier URL is kept until the end: an
// attempt may still use it, and it has no connections if no attempt uses it.
func (e *SQL) database(ctx context.Context, r Request, target string, others bool) (*database, error) {
	if target == "" && others {
		return e.ownersDatabase(ctx, r)
	}
	if target == "" {
		return e.ownDatabase(ctx, r)
	}
	owner := r.Task.Job.Owner
	url, err := e.host.Target(ctx, owner, target)
	if err != nil {
		return nil, err
	}
	d, err := e.openedAs(e.targets, url).get(ctx, func() (*database, error) { return e.openTarget(url) })
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", quoted(target), err)
	}
	return d, nil
}

func (e *SQL) openTarget(url string) (*database, error) {
	db, err := engine.New(url, engine.Options{Target: true, Secrets: e.host.Known})
	if err != nil {
		return nil, err
	}
	// For SQLite, OtherFiles is set as for the store's own database: if only the user of this process writes definitions.
	sessions, err := db.JobSessions(engine.Options{OtherFiles: e.host.Own})
	if err != nil {
		_ = db.Close() // it has no connection
		return nil, err
	}
	return &database{sessions: sessions, engine: db.Engine(), beside: db}, nil
}

// take takes a session of the database.
func (d *database) take(ctx context.Context, texts []string) (*engine.Session, error) {
	if why := d.silent.Load(); why != nil {
		return nil, fmt.Errorf("another attempt got no answer within the last %s: %w", leftAlone, *why)
	}
	waited := atomic.Bool{}
	defer time.AfterFunc(longWait, func() { waited.Store(true) }).Stop()
	s, err := d.sessions.Take(ctx, texts)
	if err == nil {
		return s, nil
	}
	err = describe(d.engine, err, "")
	if d.beside != nil && waited.Load() && ctx.Err() == nil && d.silent.CompareAndSwap(nil, &err) {
		time.AfterFunc(leftAlone, func() { d.silent.Store(nil) })
	}
	return nil, err
}
