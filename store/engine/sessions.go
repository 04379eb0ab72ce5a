package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Sessions are the connections in which the SQL of jobs is executed, one attempt at a time in each. An
// attempt finds its session in the state in which the server gives it to a new connection. To open a
// session for each attempt would cost more than most attempts. So a session whose attempt has ended
// well is renewed while the end of the run is recorded. It is made like a new one if the engine can do
// so. Otherwise another session is opened in its place. A session in doubt is closed.
//
// There are never more sessions than attempts were under way at once, apart from sessions that are being closed.
type Sessions struct {
	db     *DB
	pool   *sql.DB // keeps no connection itself
	e      *Engine
	renews bool
	work   sync.WaitGroup
	// renewals passes sessions to goroutines that have renewed a session before: see renewAll.
	renewals chan renewing
	begun    context.Context // of the work beside attempts
	stop     context.CancelFunc

	mu      sync.Mutex
	free    []*Session
	coming  int             // sessions that are being renewed
	waiting []chan *Session // in order; each gets a session, or nil if it could not be renewed
	closed  bool

	inUse, most, taken int
	working            int           // sessions in which an attempt executes its statements
	opening            time.Duration // how long it took to open a session for an attempt
	waited             time.Duration // by attempts for sessions of others, since one was last opened without a wait
}

// How long sessions are kept.
const (
	// idleSession is how long a session waits for its next attempt. After that, it would only be in
	// the way of others.
	idleSession = 5 * time.Second
	// oldSession is how long a session is used again. Settings for a login or a database take effect
	// in new sessions only.
	oldSession = time.Minute
	// renewal is how long it may take to renew a session, and how long an attempt waits for that.
	renewal = time.Second
)

// Session is one of Sessions. One attempt uses it.
type Session struct {
	Conn *sql.Conn

	of     *Sessions
	number int64  // by which its server knows it, if jobSQL.look asks for it
	look   string // the server's answer to jobSQL.look when it was new
	kept   bool   // it was not opened for this attempt, so the server may have ended it meanwhile
	used   bool   // by an attempt
	lasts  bool   // this attempt may leave something in it that a renewal does not undo
	old    atomic.Bool
	aging  *time.Timer
	idle   *time.Timer
}

// JobSessions returns sessions for the SQL of jobs, apart from the DB's own connections. With a Wrap,
// which sees calls in the order in which they are made, each attempt gets a new session.
func (db *DB) JobSessions(o Options) (*Sessions, error) {
	o.oneFile, o.steps = !o.OtherFiles, true
	pool, err := db.JobPool(o)
	if err != nil {
		return nil, err
	}
	s := &Sessions{db: db, pool: pool, e: db.e, renews: o.Wrap == nil && db.around == nil, renewals: make(chan renewing), opening: longOpening}
	s.begun, s.stop = context.WithCancel(context.Background())
	db.mu.Lock()
	db.sessions = append(db.sessions, s)
	db.mu.Unlock()
	return s, nil
}

// Take returns a session for an attempt with these statements.
func (p *Sessions) Take(ctx context.Context, texts []string) (*Session, error) {
	s, err := p.next(ctx)
	if s != nil && (s.used && slices.ContainsFunc(texts, p.e.looksBack) || !s.alive(ctx)) {
		s.end()
		s = nil
	}
	took, opens := measure(), s == nil && err == nil
	if opens {
		s, err = p.open(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.inUse--
		return nil, err
	}
	if p.working++; opens {
		p.opening = took()
	}
	s.used, s.lasts = true, slices.ContainsFunc(texts, p.e.lasts)
	return s, nil
}

// open opens a session.
func (p *Sessions) open(ctx context.Context) (*Session, error) {
	conn, err := p.pool.Conn(ctx)
	if err != nil {
		return nil, p.advised(err)
	}
	s := &Session{Conn: conn, of: p}
	if s.number, s.look, err = p.look(ctx, conn); err != nil {
		_ = conn.Close() // the error that counts is err
		return nil, err
	}
	s.aging = time.AfterFunc(oldSession, func() { s.old.Store(true) })
	return s, nil
}

// advised adds to the error of a connection that was never made what there is to do about it. The connection may be one to a
// target, which has no tables of dbjobs.
func (p *Sessions) advised(err error) error {
	if _, never := errors.AsType[connectError](err); !never {
		return err
	}
	if advice := p.e.adviseForeign(err); advice != "" {
		return fmt.Errorf("%w%s", err, advice)
	}
	return err
}

// look returns the number by which the server knows a session, and the server's answer about its
// state, if the engine asks for them.
func (p *Sessions) look(ctx context.Context, conn *sql.Conn) (number int64, what string, err error) {
	if p.e.jobs.look != "" {
		err = conn.QueryRowContext(ctx, p.e.jobs.look).Scan(&number, &what)
	}
	return number, what, err
}

// Stops reports whether the driver would leave a statement running on the server when its context ends. Interrupt stops it.
func (s *Session) Stops() bool { return s.of.e.jobs.stop != nil }

// Interrupt stops what the session executes, if Stops. It uses a connection of the DB, which may have one where the server gives no
// more of them. If this connection leads to another server behind the same address, nothing is stopped, and the connection is
// closed: the next call has another one.
func (s *Session) Interrupt(ctx context.Context) error {
	conn, err := s.of.db.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.ExecContext(ctx, s.of.e.jobs.stop(s.number, s.look))
	if s.of.e.jobs.elsewhere(err) {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // so that the pool does not keep it
	}
	return err
}

// MakeRoom closes connections that wait for a statement. A pooler in front of the server may have held a statement back for
// as long as these connections kept their sessions of the server.
func (p *Sessions) MakeRoom() { p.db.makeRoom() }

// atWork reports whether an attempt executes its statements.
func (p *Sessions) atWork() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.working > 0
}

// Kept reports whether the session is older than the attempt: the server may have ended it before it got a statement.
func (s *Session) Kept() bool { return s.kept }

type last struct{}

// Last says that the attempt executes nothing after the statement of this context, or after the COMMIT
// of its transaction. The commands that make the session like a new one may be sent along with it.
func (s *Session) Last(ctx context.Context) context.Context {
	if !s.of.renews || s.lasts || s.old.Load() {
		return ctx
	}
	return context.WithValue(ctx, last{}, true)
}

// ForRecord returns what is executed after these statements of an atomic step, and before its record is written in the same
// session. The record needs the session in which the statements began, as far as it depends on that: its database, its
// role, its encoding. The words of the statements show what they may have changed. plain are single statements that read and
// write rows: of these, only what can change a session counts, so that most steps need nothing.
func (s *Session) ForRecord(plain, others []string) []string {
	if s.of.e.jobs.forRecord == nil {
		return nil
	}
	database := ""
	if u, err := url.Parse(s.of.db.url); err == nil {
		database = strings.TrimPrefix(u.Path, "/")
	}
	return s.of.e.jobs.forRecord(database, s.look, plain, others)
}

// alive reports whether a session that has waited can still be used, as far as that is known without a trip.
func (s *Session) alive(ctx context.Context) bool {
	return !s.old.Load() && s.Conn.Raw(func(c any) error {
		if r, ok := c.(driver.SessionResetter); ok {
			return r.ResetSession(ctx)
		}
		return nil
	}) == nil
}

// end closes the session.
func (s *Session) end() {
	s.aging.Stop()
	_ = s.Conn.Close() // the pool keeps no connection, so the server's session ends with it
}

// Release ends the use of a session. well says that nothing about the attempt is in doubt: it had no
// error, was not stopped, and left no transaction open.
func (s *Session) Release(well bool) {
	p := s.of
	p.mu.Lock()
	p.inUse--
	p.working--
	reset := well && !s.lasts && !s.old.Load() && p.e.jobs.reset != nil
	queue := p.taken > p.most // attempts have begun after others had ended, so another one may follow
	renew := p.renews && !p.closed && (reset || queue)
	if renew {
		p.coming++
		p.work.Add(1)
	} else {
		p.pass(nil)
	}
	p.mu.Unlock()
	if !renew {
		s.end()
		return
	}
	r := renewing{s, reset, queue}
	select {
	case p.renewals <- r:
	default:
		go p.renewAll(r)
	}
}

// renewing is a session to be renewed.
type renewing struct {
	s              *Session
	reset, replace bool
}

// renewAll renews a session, and then others, until the Sessions are closed. A new goroutine for each
// session would have to grow its stack again.
func (p *Sessions) renewAll(r renewing) {
	for {
		p.deliver(p.renew(r.s, r.reset, r.replace))
		p.work.Done()
		select {
		case r = <-p.renewals:
		case <-p.begun.Done():
			return
		}
	}
}

// renew makes a session like a new one. If that cannot be done, it opens another one in its place, if
// it is likely to be needed. Otherwise it returns nil.
func (p *Sessions) renew(s *Session, reset, replace bool) *Session {
	ctx, cancel := context.WithTimeout(context.WithValue(p.begun, ahead{}, true), renewal)
	defer cancel()
	if reset && p.reset(ctx, s) == nil {
		s.kept = true
		return s
	}
	s.end()
	if !replace {
		return nil
	}
	another, err := p.open(ctx)
	if err != nil {
		return nil // the step that needs a session gets the error
	}
	another.kept = true
	return another
}

var errNotNew = errors.New("the session differs from a new one")

// reset makes a session like a new one. It checks that the session has the same number and look as when it was new.
func (p *Sessions) reset(ctx context.Context, s *Session) error {
	number, look, err := p.e.jobs.reset(ctx, s.Conn)
	if err == nil && (number != s.number || look != s.look) {
		err = errNotNew
	}
	return err
}

// giveUp closes sessions that wait for an attempt: these, or all of them if none is given.
func (p *Sessions) giveUp(these ...*Session) {
	p.mu.Lock()
	var ended []*Session
	p.free = slices.DeleteFunc(p.free, func(s *Session) bool {
		if len(these) > 0 && !slices.Contains(these, s) {
			return false
		}
		ended = append(ended, s)
		return true
	})
	p.mu.Unlock()
	for _, s := range ended {
		s.idle.Stop()
		s.end()
	}
}

// Close ends the sessions that wait. Sessions in use end with their attempts.
func (p *Sessions) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.giveUp()
	p.db.mu.Lock()
	p.db.sessions = slices.DeleteFunc(p.db.sessions, func(s *Sessions) bool { return s == p })
	p.db.mu.Unlock()
	done := make(chan struct{})
	go func() { p.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(renewal): // a server that does not answer must not hold up the end
	}
	return p.pool.Close()
}
