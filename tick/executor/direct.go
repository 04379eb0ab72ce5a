package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/secret"
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
	t := *r.Task // the run may go on while it is being opened
	d, err := e.direct.get(ctx, func() (*database, error) { return e.openDirect(ctx, *e.host.Direct, &t) })
	if err != nil { // this is not the fault of the step
		return nil, nothingDone(e.host.Direct.From, err)
	}
	return d, nil
}

// openDirect makes sure that the way leads to the same database, with the same rights. An atomic step ends its run there,
// and any step would take effect there. A copy of the database has the same tables and the same name. But the run that is
// about to begin was delivered a moment ago, and only the right database knows of that delivery.
func (e *SQL) openDirect(ctx context.Context, way Direct, t *store.Task) (*database, error) {
	err := way.leadsTo(ctx, e.own.engine, e.login, e.host.Known, t.Run.ID, func(r *store.Run) bool { return r.Fence == t.Run.Fence })
	if err != nil {
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

// Try makes sure of that before a run needs the way, by the newest run of the store. A tick may deliver that run meanwhile.
func (way Direct) Try(ctx context.Context, s *store.Store, known *secret.Known) error {
	list, err := s.Runs(ctx, store.RunFilter{Limit: 1})
	if err != nil {
		return err
	}
	newest := ""
	if len(list) > 0 {
		newest = list[0].ID
	}
	return way.leadsTo(ctx, s.Engine(), s.Login, known, newest, func(*store.Run) bool { return true })
}

// leadsTo makes sure that the way leads to a database of the engine that knows the run, if one is named, and with that login.
func (way Direct) leadsTo(ctx context.Context, own *engine.Engine, login func(context.Context) (string, error), known *secret.Known, run string,
	knows func(*store.Run) bool) error {
	const want = "it must lead to the same database, with the same login; correct it or unset it"
	s, err := store.Open(ctx, way.URL, store.Options{Login: way.Login, Secrets: known})
	if err != nil {
		return err
	}
	defer s.Close()
	if s.Engine() != own {
		return errors.New("it leads to a database of another engine: " + want)
	}
	mine, err := login(ctx)
	if err != nil {
		return err
	}
	its, err := s.Login(ctx)
	if err != nil {
		return err
	}
	if its != mine {
		return fmt.Errorf("it logs in as %q, and not as %q, to whom the job belongs: %s", its, mine, want)
	}
	if run == "" {
		return s.CheckSchema(ctx)
	}
	found, err := s.RunWithTries(ctx, run, 0)
	switch {
	case errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrSchema) || err == nil && !knows(&found.Run):
		return errors.New("it leads to another database, where this run has not been handed out: " + want)
	case err != nil:
		return err
	}
	return nil
}
