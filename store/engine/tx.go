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

// In is a transaction that somebody else has begun, on a connection of JobPool, and ends.
func (db *DB) In(tx *sql.Tx) *Tx { return &Tx{runner{db, tx}} }

// ErrConflict says that somebody changed what a decision was made from: the transaction is tried again.
var ErrConflict = errors.New("changed by another session")

// Attempts is how often a transaction is tried. Where locks are skipped a conflict is rare and one more try enough; an engine that
// tells of conflicts at COMMIT only can refuse the same transaction many times under load. With pauses that double up
// to a quarter of a second this is some five seconds, and the caller's context ends it earlier.
const Attempts = 18

// RetryDelay is how long to wait before a transaction that lost against others is tried again after that number of tries: longer
// each time, and never the same for all who lost.
func RetryDelay(tries int) time.Duration {
	pause := time.Duration(min(1<<tries, 256)) * time.Millisecond
	return pause + rand.N(pause)
}

// InTx runs fn in a transaction, and again where the engine or a guard says that it lost against another. Nothing
// that fn did counts before InTx has returned nil. A COMMIT whose answer is lost is an error here: what it did is
// found out by the keys and the fence when the work is tried again, and never assumed.
func (db *DB) InTx(ctx context.Context, fn func(*Tx) error) error {
	return db.Retry(ctx, func() error { return db.TryTx(ctx, fn) })
}

// Retry tries again what lost against another transaction, and for LockPatience what waits for one.
func (db *DB) Retry(ctx context.Context, fn func() error) error {
	return db.NameHolders(ctx, db.RetryFor(ctx, int(LockPatience/lockWait), Attempts, fn))
}

// RetryFor tries again what lost against another transaction: what waited for one, up to the given number of times, and what somebody
// else changed meanwhile.
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
	ctx, answered, cancel := impatient(ctx)
	defer cancel(nil)
	var tx *sql.Tx
	err := answered(func() (err error) {
		tx, err = db.pool.BeginTx(ctx, &sql.TxOptions{Isolation: db.e.Isolation})
		return db.waited(err)
	})
	if err != nil {
		return db.interrupted(ctx, db.Wrap("begin", err))
	}
	if err := fn(db.In(tx)); err != nil {
		_ = tx.Rollback() // the error that counts is err; a lost connection rolls back by itself
		return db.interrupted(ctx, err)
	}
	return db.Wrap("commit", answered(tx.Commit))
}

// errLocked says for what a statement waited until its time was over.
var errLocked = fmt.Errorf("%w: another process holds the lock for writing to the file", ErrReadOnly)

// waited says that a write which has not begun in time waited for the lock of an SQLite file: it does nothing else that
// takes long.
func (db *DB) waited(err error) error {
	if err != nil && db.e.OneWriter && (errors.Is(err, context.DeadlineExceeded) || db.e.classify(err) == transient) {
		return fmt.Errorf("%w: %w", errLocked, err)
	}
	return err
}

// errInterrupted is of a transaction whose connection broke before COMMIT was sent: nothing of it is there.
var errInterrupted = errors.New("the connection broke during a transaction")

// interrupted says that a transaction can be begun again on another connection, where its own broke under a statement. If
// the database is out of reach altogether, connecting says so.
func (db *DB) interrupted(ctx context.Context, err error) error {
	var never connectError
	if c := db.class(err); ctx.Err() != nil || errors.Is(err, ErrNoAnswer) || errors.As(err, &never) || c != gone && c != unreachable {
		return err
	}
	return fmt.Errorf("%w: %w", errInterrupted, err)
}
