package executor

import (
	"context"
	"database/sql"

	"github.com/dbjobs/dbjobs/store/engine"
)

// In an SQLite file, one session writes at a time, and another job may write for minutes. A step in the file of the ledger waits for
// that as long as its attempt lasts: on a server, too, jobs that share no row do not make each other fail. A target is like any other
// service that a step uses: there, a statement fails when the patience of its session is over.

// waits reports whether to send the last of some statements again: it has met the lock of the file, and has done nothing. Before
// that, waits rests for a moment. try counts how often the statement was sent.
func (d *database) waits(s session, conn *sql.Conn, texts []string, try int, err error) bool {
	if d.beside != nil || !d.engine.Waits(err, texts) {
		return false
	}
	// What was read in an open transaction may be out of date by now.
	if open, err := d.engine.TransactionOpen(s.statements, conn); err != nil || open {
		return false
	}
	return rest(s.attempt, engine.RetryDelay(try))
}

// begin begins the transaction of an atomic step, in a context that outlives the attempt. On an engine with one writer, it waits for
// its turn no longer than the attempt lasts.
func (d *database) begin(ctx context.Context, s session, conn *sql.Conn) (tx *sql.Tx, err error) {
	o := &sql.TxOptions{Isolation: d.engine.Isolation}
	if !d.engine.OneWriter {
		return conn.BeginTx(ctx, o)
	}
	within, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(s.attempt, cancel)()
	for try := 1; ; try++ {
		tx, err = conn.BeginTx(within, o)
		if err == nil || !d.waits(s, conn, []string{"BEGIN IMMEDIATE"}, try, err) {
			break
		}
	}
	if err != nil && s.attempt.Err() != nil {
		err = &UnsentError{err}
	}
	return tx, err
}
