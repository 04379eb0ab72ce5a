package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
)

// Direct is a second way to the store's own database, only for the SQL of jobs. It bypasses a pooler, so that a session is
// really one session.
type Direct struct {
	URL   string
	Login func(context.Context) (user, password string, err error) // as store.Options has it
	From  string                                                   // the setting that names it
}

// ownDatabase opens the store's own database, by the way that the host names.
func (e *SQL) ownDatabase(ctx context.Context, r Request) (*database, error) {
	if e.host == nil || e.host.Direct == nil {
		return &e.own, nil
	}
	e.opening.Lock()
	defer e.opening.Unlock()
	if e.direct == nil {
		d, err := e.openDirect(ctx, *e.host.Direct, r.Task)
		if err != nil { // this is not the fault of the step
			return nil, nothingDone(e.host.Direct.From, err)
		}
		e.direct = d
	}
	return e.direct, nil
}

// openDirect makes sure that the way leads to the same database, with the same rights. An atomic step ends its run there,
// and any step would take effect there. A copy of the database has the same tables and the same name. But the run that is
// about to begin was delivered a moment ago, and only the right database knows of that delivery.
func (e *SQL) openDirect(ctx context.Context, way Direct, t *store.Task) (*database, error) {
	s, err := store.Open(ctx, way.URL, store.Options{Login: way.Login, Secrets: e.host.Known})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := e.sameDatabase(ctx, s, t); err != nil {
		return nil, err
	}
	db, err := engine.New(way.URL, engine.Options{Login: way.Login, Secrets: e.host.Known})
	if err != nil {
		return nil, err
	}
	sessions, err := db.JobSessions(engine.Options{})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &database{sessions: sessions, engine: db.Engine(), way: db}, nil
}

func (e *SQL) sameDatabase(ctx context.Context, s *store.Store, t *store.Task) error {
	const want = "it must lead to the same database, with the same login; correct it or unset it"
	if s.Engine() != e.own.engine {
		return errors.New("it leads to a database of another engine: " + want)
	}
	mine, err := e.login(ctx)
	if err != nil {
		return err
	}
	login, err := s.Login(ctx)
	if err != nil {
		return err
	}
	if login != mine {
		return fmt.Errorf("it logs in as %q, and not as %q, to whom the job belongs: %s", login, mine, want)
	}
	run, err := s.Run(ctx, t.Run.ID)
	switch {
	case errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrSchema) || err == nil && run.Fence != t.Run.Fence:
		return errors.New("it leads to another database, where this run has not been handed out: " + want)
	case err != nil:
		return err
	}
	return nil
}
