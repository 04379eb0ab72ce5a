package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The bounds of the store's own waits, if the caller sets none. The SQL of jobs has its own timeouts.
const (
	// lockWait is how long a statement waits for rows that another session has locked. It is short: after
	// it, the transaction begins again or is divided, so that a lock delays no other jobs.
	lockWait = time.Second
	// lockPatience is how long a command keeps trying to lock such rows.
	lockPatience = 30 * time.Second
	// Patience is how long the database may take to answer a statement. A lock on a whole table could
	// delay the answer for ever.
	Patience = time.Minute
	// holdersWait is how long the database may take to name the sessions that hold locks. It is asked after a long
	// wait, perhaps with a new connection to a busy server, and its answer is what a person needs then.
	holdersWait = 10 * time.Second
)

// ErrLocked says that another session holds a lock that a statement needs, and did not release it.
var ErrLocked = errors.New("locked by another session")

// ErrNoAnswer ends a statement that the database does not answer.
var ErrNoAnswer = fmt.Errorf("the database has not answered for %s", Patience)

// bounded is the context of one statement. If it has no deadline, it ends after Patience.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, Patience, ErrNoAnswer)
}

// impatient is for the begin and the end of a transaction, for which database/sql takes only the context of the whole
// transaction. answered calls one of them, and ends the transaction when the patience ends.
func impatient(ctx context.Context) (_ context.Context, answered func(func() error) error, cancel context.CancelCauseFunc) {
	_, has := ctx.Deadline()
	ctx, cancel = context.WithCancelCause(ctx)
	return ctx, func(call func() error) error {
		if !has {
			defer time.AfterFunc(Patience, func() { cancel(ErrNoAnswer) }).Stop()
		}
		return unanswered(ctx, call())
	}, cancel
}

// unanswered returns ErrNoAnswer if patience has ended; another error stays as it is.
func unanswered(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrNoAnswer) {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

// NameHolders adds the sessions that hold locks to an error about a lock.
func (db *DB) NameHolders(ctx context.Context, err error) error {
	if ctx.Err() != nil || db.e.OneWriter || !db.e.Locked(err) {
		return err
	}
	return fmt.Errorf("%w; %s", err, db.LockHolders(ctx))
}

// LockHolders says which sessions hold locks on rows or tables of dbjobs, those with the oldest
// transactions first, as far as the engine shows them to this login. The text is for messages.
func (db *DB) LockHolders(ctx context.Context) string {
	if !db.Has("lock_holders") {
		return "another process has the file locked"
	}
	var list []string
	ctx, cancel := context.WithTimeout(ctx, holdersWait)
	defer cancel()
	var session int64
	var login, program string
	var since time.Time
	err := db.Query(ctx, "lock_holders", Args{}, Scan(func() {
		text := fmt.Sprintf("session %d", session)
		var about []string
		if login != "" {
			about = append(about, "login "+login)
		}
		if program != "" {
			about = append(about, program)
		}
		if !since.IsZero() {
			about = append(about, "its transaction is open since "+since.UTC().Format(time.RFC3339))
		}
		if len(about) > 0 {
			text += " (" + strings.Join(about, ", ") + ")"
		}
		list = append(list, text)
	}, &session, Nullable(&login), Nullable(&program), At(&since)))
	switch {
	case len(list) > 0:
		return "locks are held by " + strings.Join(list, "; ")
	case errors.Is(err, ErrDenied) && db.e.untold != "":
		return db.e.untold
	case err != nil:
		return "the database did not tell which sessions hold locks"
	}
	return "this login sees no session that still holds a lock"
}
