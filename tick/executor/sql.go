package executor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
)

// SQL runs the statements of a step in a session that is like a new one. A step finds nothing of what other steps
// did to their sessions: see engine.Sessions. The statements of a step run one after the other in one session,
// each by itself. With atomic, all of them run in one transaction with the end of the step.
type SQL struct {
	own   database                              // the store's
	host  *Host                                 // it has the secrets that arguments may name, and the targets that steps may name
	login func(context.Context) (string, error) // as whom the connections log in; empty on SQLite. It is asked for once

	direct *opened // the store's, if the host names another way to it

	mu      sync.Mutex
	targets map[string]*opened // by URL
	logins  map[string]*opened // by owner and URL: the store's, on connections that log in as the owner
}

// database is a database in which steps run their statements.
type database struct {
	sessions *engine.Sessions
	engine   *engine.Engine
	way      *engine.DB // another way to the store's database, if the host names one; it has no connections of its own

	// Of a target.
	beside *engine.DB            // nil: the database is the store's
	silent atomic.Pointer[error] // the reason why no attempt uses the target for now
}

// atomicTries bounds the tries of an atomic step within one attempt. A step that loses against another
// transaction (a deadlock, a serialization failure) has had no effect, and is tried again.
const atomicTries = 12

// NewSQL returns an executor with connections of its own to the store's database. They are made when
// they are needed. The caller closes it.
func NewSQL(s *store.Store) (*SQL, error) { return newSQL(s, nil) }

func newSQL(s *store.Store, h *Host) (*SQL, error) {
	// On SQLite, other files are files of this process's user. So one of them may be another database of jobs.
	sessions, err := s.JobSessions(store.Options{OtherFiles: h != nil && h.Own})
	if err != nil {
		return nil, err
	}
	return &SQL{own: database{sessions: sessions, engine: s.Engine()}, host: h, login: once(s.Login), direct: newOpened(), targets: map[string]*opened{}, logins: map[string]*opened{}}, nil
}

// Close closes the connections of the executor.
func (e *SQL) Close() error {
	err := e.own.sessions.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, list := range []map[string]*opened{e.targets, e.logins} {
		for _, o := range list {
			err = errors.Join(err, o.close())
		}
	}
	clear(e.targets)
	clear(e.logins)
	return errors.Join(err, e.direct.close())
}

// openedAs returns the entry of a database, which is opened with the first use.
func (e *SQL) openedAs(list map[string]*opened, name string) *opened {
	e.mu.Lock()
	defer e.mu.Unlock()
	if list[name] == nil {
		list[name] = newOpened()
	}
	return list[name]
}

// close closes a database that is not the store's own.
func (d *database) close() error {
	other := d.way
	if d.beside != nil {
		other = d.beside
	}
	return errors.Join(d.sessions.Close(), other.Close())
}

// once keeps the first answer. After an error, it asks again. A caller that waits while another one asks waits no longer than its context lasts.
func once(ask func(context.Context) (string, error)) func(context.Context) (string, error) {
	turn := make(chan struct{}, 1)
	var known bool
	var answer string
	return func(ctx context.Context) (string, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if known {
			return answer, nil
		}
		v, err := ask(ctx)
		answer, known = v, err == nil
		return v, err
	}
}

// Execute runs one attempt.
func (e *SQL) Execute(ctx context.Context, r Request) (Result, error) {
	login, err := e.login(ctx)
	if err != nil { // no fault of the step
		return Result{}, nothingDone("the database did not tell the login", err)
	}
	owner := r.Task.Job.Owner
	others := login != "" && owner != login
	if others && !e.host.LogsInAs(owner) {
		return Result{}, fmt.Errorf("the job belongs to %q, and this host has credentials for %q only", owner, login)
	}
	spec, err := readSQL(r.Spec)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", errSpec, err)
	}
	d, err := e.database(ctx, r, spec.Target, others)
	if err != nil {
		return Result{}, err
	}
	arguments := slices.ContainsFunc(spec.SQL, func(st Statement) bool { return len(st.Args) > 0 })
	for _, st := range spec.SQL {
		if why := d.engine.Refuses(st.Text, arguments); why != "" {
			return Result{}, errors.New(why)
		}
	}
	facts := Facts(r.Task)
	for _, st := range spec.SQL {
		for _, arg := range st.Args {
			if text, ok := arg.(string); ok {
				if err := e.host.addSecrets(ctx, owner, text, facts); err != nil {
					return Result{}, err
				}
			}
		}
	}
	if err := d.bind(spec.SQL, facts); err != nil {
		return Result{}, err
	}
	return d.execute(ctx, spec, r)
}

// execute runs the statements in a session of the database. If the store's own database cannot be reached, that is
// not the fault of the step, and uses up none of its attempts. A target is like any other service that a step uses.
func (d *database) execute(ctx context.Context, spec SQLSpec, r Request) (Result, error) {
	for try := 1; ; {
		taken, err := d.take(ctx, textsOf(spec.SQL))
		if err != nil && d.beside != nil {
			return Result{}, fmt.Errorf("target %s: no connection could be made: %w", quoted(spec.Target), err)
		} else if err != nil {
			return Result{}, nothingDone("no connection could be made", err)
		}
		kept := taken.Kept() // asked for before it is released
		res, err := d.in(ctx, taken, spec, r)
		switch {
		case kept && errors.Is(err, errUnsent) && ctx.Err() == nil:
			continue // the server had ended the session, so nothing is done; the next session is newer
		case spec.Atomic && try < atomicTries && d.lost(err) && rest(ctx, engine.RetryDelay(try)):
			try++ // in another session, since ROLLBACK leaves variables, locks and, on MariaDB and MySQL, temporary tables in this one
			continue
		}
		if errors.Is(err, errHeld) && d.beside == nil { // no fault of the step
			d.sessions.MakeRoom()
			err = fmt.Errorf("%w: %w", ErrNothingDone, err)
		}
		return res, err
	}
}

// in executes the statements in a session, and releases it.
func (d *database) in(ctx context.Context, taken *engine.Session, spec SQLSpec, r Request) (res Result, err error) {
	well := false
	defer func() { taken.Release(well && ctx.Err() == nil) }()
	s, release := begin(ctx, taken)
	defer release()
	defer func() {
		if s.unstopped.Load() {
			res.Output = strings.TrimLeft(fmt.Sprintf("%s\nthe statement could not be stopped in the database within %s, and may go on there", res.Output, stopGrace), "\n")
		}
	}()
	if spec.Atomic {
		res, err = d.atomic(s, taken, spec, r)
		well = err == nil
		return res, err
	}
	mayBegin := d.engine.RunsOn() || slices.ContainsFunc(spec.SQL, mayCommit)
	if !mayBegin || d.engine.TransactionKnown() {
		s.last = taken.Last
	}
	s.waits = func(sent, try int, err error) bool { return d.waits(s, taken.Conn, textsOf(spec.SQL[:sent]), try, err) }
	res, err = s.execute(d.engine, taken.Conn, spec)
	if err != nil {
		return res, err
	}
	if mayBegin {
		if open, err := d.engine.TransactionOpen(s.statements, taken.Conn); err != nil {
			return res, describe(d.engine, err, "")
		} else if open {
			return res, errors.New("its statements left a transaction open, which was rolled back; add COMMIT, or make the step atomic and remove BEGIN")
		}
	}
	well = true
	return res, nil
}

// lost reports whether an atomic step has lost against another transaction, so that it is tried again. A text that has waited too
// long for a lock has failed: its session says how long it waits. The record of its end, whose errors are those of the store, is
// tried again.
func (d *database) lost(err error) bool {
	return d.engine.Transient(err) && !errors.Is(err, ErrNotAtomic) && !errors.Is(err, errUnsent) &&
		(!d.engine.Locked(err) || errors.Is(err, store.ErrLocked))
}

// rest waits for a duration. It reports whether the context still lasts.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}

// errUnsent says that the first statement of an attempt did not reach the server.
var errUnsent = errors.New("the server did not get the statement")

// errHeld says that a pooler had no session of the server for the first statement of an attempt.
var errHeld = errors.New("the pooler had no session of the server for it")

// notSent adds errUnsent or errHeld to an error that says so. It returns nil for others.
func notSent(e *engine.Engine, err error) error {
	switch {
	case err == nil:
	case e.Unsent(err):
		return fmt.Errorf("%w: %w", errUnsent, err)
	case e.Held(err):
		return fmt.Errorf("%w: %w", errHeld, err)
	}
	return nil
}

// nothingDone says of a failure that the step has had no effect.
func nothingDone(why string, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrNothingDone, why, err)
}

// stopGrace is how long a statement may take to stop on the server before its connection is dropped.
const stopGrace = 10 * time.Second

// session has the contexts that bound the statements of an attempt.
type session struct {
	attempt    context.Context // its end stops the statements
	after      context.Context // ends stopGrace later, or with the attempt's work; for the check of the effects of a stopped statement
	statements context.Context // the context of the statements: that of the attempt if the driver stops them on the server, otherwise after

	unstopped *atomic.Bool // the statements were not stopped within stopGrace

	last  func(context.Context) context.Context // makes the context of the last statement, if nothing follows it in the session; nil: something follows
	waits func(sent, try int, err error) bool   // whether the last of the statements that were sent is sent again, see database.waits; nil: none is
}

// begin begins a session. Some drivers would drop the connection and leave the statement running on the
// server. With these, the end of ctx stops the statement on the server, by the number of the session. The
// statement then returns with the server's answer. So a retry never runs beside the statement that it retries,
// unless the server could not be asked within stopGrace.
func begin(ctx context.Context, taken *engine.Session) (s session, release func()) {
	after, drop := context.WithCancel(context.WithoutCancel(ctx))
	s = session{attempt: ctx, after: after, statements: ctx, unstopped: new(atomic.Bool)}
	if taken.Stops() {
		s.statements = after
	}
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(stopped)
		defer drop()
		ctx, cancel := context.WithTimeout(after, stopGrace)
		defer cancel()
		interrupt(ctx, taken)
		s.unstopped.Store(taken.Stops() && after.Err() == nil)
	})
	return s, func() {
		drop()
		if !unwatch() {
			<-stopped
		}
	}
}

// interrupt stops the statements of a session, until ctx ends. It tries again and again, because between two statements there is
// nothing to stop.
func interrupt(ctx context.Context, taken *engine.Session) {
	for taken.Stops() && ctx.Err() == nil {
		_ = taken.Interrupt(ctx) // the next try may get through
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	<-ctx.Done()
}

type execer interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

// execute runs statements in order, and adds up the rows that they changed or returned. If a statement fails, the
// result still has the reports of the statements before it. A statement that was stopped on the server
// may return without an error.
func (s session) execute(e *engine.Engine, q execer, spec SQLSpec) (res Result, err error) {
	list := spec.SQL
	var total int64
	var told engine.Told
	defer func() {
		told.End()
		res.Output, res.Facts = strings.Join(told.Lines, "\n"), told.Facts()
	}()
	within := engine.Listen(s.statements, &told)
	for i, st := range list {
		if s.last != nil && i == len(list)-1 {
			within = s.last(within)
		}
		done, err := q.ExecContext(within, st.Text, st.Args...)
		for try := 1; err != nil && s.waits != nil && s.waits(i+1, try, err); try++ {
			done, err = q.ExecContext(within, st.Text, st.Args...)
		}
		if err != nil {
			if why := notSent(e, err); i == 0 && why != nil {
				err = why
			}
			if len(list) > 1 {
				err = fmt.Errorf("statement %d: %w", i+1, err)
			}
			return res, describe(e, err, st.Text)
		}
		if s.attempt.Err() != nil {
			return res, context.Cause(s.attempt)
		}
		total += affected(done)
	}
	res.Rows = &total
	return res, spec.verdict(&told)
}

// verdict returns an error if the check of the step fails. The check looks at the rows that were returned.
func (s *SQLSpec) verdict(t *engine.Told) error {
	switch {
	case s.FailIf == "":
		return nil
	case !t.Asked:
		return errors.New("fail_if: none of its statements returns rows that can be counted; give each statement by itself, the check as SELECT, WITH or VALUES")
	case s.FailIf == failIfRows && t.Rows > 0:
		return fmt.Errorf("the check found rows, %d of them (fail_if: rows)", t.Rows)
	case s.FailIf == failIfNoRows && t.Rows == 0:
		return errors.New("the check found no row (fail_if: no-rows)")
	}
	return nil
}

// affected returns how many rows a statement changed or returned, as far as its engine reports it. A text of
// nothing but comments does nothing on any engine. For such a text, SQLite's driver gives no result at
// all, and database/sql has no way to ask whether there is one.
func affected(res sql.Result) (rows int64) {
	defer func() { _ = recover() }()
	rows, _ = res.RowsAffected()
	return rows
}
