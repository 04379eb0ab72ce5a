package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Tx is a transaction.
type Tx struct{ runner }

// In returns a transaction that the caller began on a connection of JobPool, and that the caller ends.
func (db *DB) In(tx *sql.Tx) *Tx { return &Tx{runner{db, tx}} }

// ErrConflict says that another session changed the data from which a decision was made. The
// transaction is tried again.
var ErrConflict = errors.New("changed by another session")

// Attempts is how often a transaction is tried. On an engine that skips locked rows, a conflict is
// rare, and one more try is enough. An engine that reports conflicts only at COMMIT may refuse the
// same transaction many times under load. With pauses that double up to a quarter of a second, all
// tries take about five seconds. The caller's context may end them earlier.
const Attempts = 18

// RetryDelay returns how long to wait before the next try of a transaction that lost against others. tries is
// the number of tries so far. The time grows with each try. It is random, so that the losers do not meet again.
func RetryDelay(tries int) time.Duration {
	pause := time.Duration(min(1<<tries, 256)) * time.Millisecond
	return pause + rand.N(pause)
}

// InTx runs fn in a transaction. It repeats fn if the engine or a guard says that the transaction lost
// against another. Nothing that fn did counts before InTx has returned nil. A COMMIT whose answer is lost
// is ErrInDoubt. InTx never assumes its outcome: keys and the fence show it when the work is repeated.
func (db *DB) InTx(ctx context.Context, fn func(*Tx) error) error {
	return db.Retry(ctx, func() error { return db.TryTx(ctx, fn) })
}

// InSnapshot runs fn in a transaction that sees one state of the database, and only reads: a login with read rights
// is enough, and so is a replica. It takes no lock for which a writer would have to wait.
func (db *DB) InSnapshot(ctx context.Context, fn func(*Tx) error) error {
	o := sql.TxOptions{ReadOnly: true}
	if db.e.Isolation != sql.LevelDefault {
		o.Isolation = sql.LevelRepeatableRead
	}
	return db.Retry(ctx, func() error { return db.try(ctx, &o, fn) })
}

// Retry repeats an action that lost against another transaction. It repeats an action that waits for a lock for as
// long as lockPatience.
func (db *DB) Retry(ctx context.Context, fn func() error) error {
	return db.NameHolders(ctx, db.RetryFor(ctx, int(lockPatience/lockWait), Attempts, fn))
}

// RetryFor repeats an action that lost against another transaction. waits bounds the tries that end with a timed-out
// wait for a lock, conflicts the tries that end with ErrConflict, and Attempts all other tries.
func (db *DB) RetryFor(ctx context.Context, waits, conflicts int, fn func() error) error {
	for try := 1; ; try++ {
		err := fn()
		if err == nil || ctx.Err() != nil || !db.e.Transient(err) {
			return err
		}
		if db.e.Locked(err) {
			if waits--; waits <= 0 {
				return err
			}
			try--
		} else if try >= Attempts || try >= conflicts && errors.Is(err, ErrConflict) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(RetryDelay(try)):
		}
	}
}

// TryTx runs fn in a transaction, once.
func (db *DB) TryTx(ctx context.Context, fn func(*Tx) error) error {
	return db.try(ctx, &sql.TxOptions{Isolation: db.e.Isolation}, fn)
}

func (db *DB) try(ctx context.Context, o *sql.TxOptions, fn func(*Tx) error) (err error) {
	defer func() { db.leave(err) }()
	ctx, answered, cancel := impatient(ctx)
	defer cancel(nil)
	var tx *sql.Tx
	err = answered(func() (err error) {
		tx, err = db.pool.BeginTx(ctx, o)
		return db.waited(err)
	})
	if err != nil {
		return db.interrupted(ctx, db.Wrap("begin", err))
	}
	if err := fn(db.In(tx)); err != nil {
		_ = tx.Rollback() // the first error counts; the server rolls back a lost connection
		return db.interrupted(ctx, err)
	}
	if err := ctx.Err(); err != nil { // nothing was sent
		_ = tx.Rollback()
		return db.Wrap("commit", err)
	}
	err = answered(tx.Commit)
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil { // the end of ctx has undone it just now: no COMMIT was sent
		return db.Wrap("commit", ctx.Err())
	}
	return db.inDoubt(db.Wrap("commit", err))
}

// ErrInDoubt says that a COMMIT was sent, and that its answer did not come: what was written may be there, or not.
var ErrInDoubt = errors.New("no answer came to the COMMIT")

// inDoubt adds ErrInDoubt to the error of a COMMIT, without a word: to a caller who repeats his work it is no different.
func (db *DB) inDoubt(err error) error {
	cut := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNoAnswer)
	if err == nil || !cut && db.class(err) != unreachable {
		return err
	}
	return doubtful{err}
}

type doubtful struct{ error }

func (d doubtful) Unwrap() []error { return []error{d.error, ErrInDoubt} }

// errLocked says for which lock a statement waited too long.
var errLocked = fmt.Errorf("%w: another process holds the lock for writing to the file", ErrReadOnly)

// waited adds errLocked to the error of a write on SQLite that could not begin in time. Such a write
// waited for the lock of the file, because nothing else takes that long.
func (db *DB) waited(err error) error {
	if err != nil && db.e.OneWriter && !errors.Is(err, errFileLocked) && (errors.Is(err, context.DeadlineExceeded) || db.e.classify(err) == transient) {
		return fmt.Errorf("%w: %w", errLocked, err)
	}
	return err
}

// errInterrupted is the error of a transaction whose connection broke before COMMIT was sent: nothing of
// it was written.
var errInterrupted = errors.New("the connection broke during a transaction")

// interrupted returns errInterrupted if the connection broke during a statement, so that the transaction
// is tried again on another connection. If the database is unreachable, connecting will say so. A file has no connection
// that could break: if it is damaged, it stays so.
func (db *DB) interrupted(ctx context.Context, err error) error {
	var never connectError
	if c := db.class(err); db.e.OneWriter || ctx.Err() != nil || errors.Is(err, ErrNoAnswer) || errors.As(err, &never) || c != gone && c != unreachable {
		return err
	}
	return fmt.Errorf("%w: %w", errInterrupted, err)
}
