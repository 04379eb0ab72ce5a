package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
)

// LogsInAs reports whether the host can log in as an owner.
func (h *Host) LogsInAs(owner string) bool { return h != nil && h.Logins[owner] != nil }

// ownersDatabase opens the store's own database, on connections that log in as the owner of the job. So the
// engine separates the owners. The SQL of a job could undo a SET ROLE, but it cannot switch to another login.
//
// A mistake in the settings of the host is not the fault of the step, and uses up none of its attempts.
func (e *SQL) ownersDatabase(ctx context.Context, r Request) (*database, error) {
	owner := r.Task.Job.Owner
	fail := func(err error) (*database, error) { return nil, nothingDone("owners: "+quoted(owner), err) }
	url, err := e.host.Logins[owner].within(ctx) // read for each attempt, since the password may change
	if err != nil {
		return fail(err)
	}
	e.host.Known.For(owner).AddURL(url)
	t := *r.Task // the run may go on while it is being opened
	d, err := e.openedAs(e.logins, owner+" "+url).get(ctx, func() (*database, error) { return e.openAs(ctx, url, owner, &t) })
	if err != nil {
		return fail(err)
	}
	return d, nil
}

// openAs makes sure that the URL leads to the store's database, and logs in as the owner. The owner may not read any table. So
// a routine of the database reports whether the database has the run, with the same delivery as here.
func (e *SQL) openAs(ctx context.Context, url, owner string, t *store.Task) (*database, error) {
	s, err := store.Open(ctx, url, store.Options{Secrets: e.host.Known})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.Engine() != e.own.engine {
		return nil, errors.New("the URL leads to a database of another engine: it must lead to that of the jobs")
	}
	login, err := s.Login(ctx)
	if err != nil {
		return nil, err
	}
	if login != owner {
		return nil, fmt.Errorf("the URL logs in as %q: it must be the login of the owner", login)
	}
	if held, err := s.HoldsOwn(ctx, t); err != nil {
		return nil, err
	} else if !held {
		return nil, errors.New("the URL leads to another database, where this run has not been delivered: it must lead to that of the jobs")
	}
	db, err := engine.New(url, engine.Options{Secrets: e.host.Known})
	if err != nil {
		return nil, err
	}
	sessions, err := db.JobSessions(engine.Options{})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &database{sessions: sessions, engine: db.Engine(), way: db}, nil
}
