package executor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// atomic commits the effects and the end of the step together, exactly once. It sets a savepoint
// before the first statement. The savepoint is still there after the last statement, unless the text
// has ended the transaction. COMMIT and ROLLBACK do so, and DDL does so on engines on which it commits
// (MySQL, MariaDB). This is also true if they are in a procedure, and if the text has begun another
// transaction after them. Plain statements can do none of that, and need no savepoint.
//
// Crash window: if the answer to COMMIT is lost, the caller tries to record another end of this attempt.
// If the COMMIT took place, the record is refused: the run has gone on, or the success of the attempt
// is on record (store.ErrRecorded). If it did not, that end is recorded and the step is tried again.
//
// If the engine has undone the transaction at an error, as at a deadlock, the savepoint is gone, too. Then it does
// not show whether this was our transaction, or one that came after a COMMIT of the text. The witness shows it.
//
// The same is checked for a text that is stopped by a timeout or a cancel. Otherwise, the next try could repeat
// effects that the text has committed. So the transaction outlives the attempt, for as long as the check takes.
// Where the session is lost after a COMMIT of the text, the savepoint and the witness are lost, too. Then this is a failed
// attempt like any other: a session that ends in the middle is far more often that of a text which has committed nothing.
//
// If the connection is lost before COMMIT took place, the server has undone the transaction. Then the
// attempt counts as one that has done nothing, unless the text was sent and may have committed a part of its effects.
// The same holds if the server takes no writes any more, as one that hands over to another does at first.
func (d *database) atomic(s session, taken *engine.Session, spec SQLSpec, r Request) (_ Result, err error) {
	list := spec.SQL
	sent := false // the text
	defer func() {
		switch {
		case err == nil || errors.Is(err, errHeld) || errors.Is(err, ErrNotAtomic):
		case d.engine.TakesNoWrites(err): // the answer of a server that is there, so all is rolled back
			err = nothingDone("the database took no writes before COMMIT", err)
		case d.engine.Broken(err) && !(sent && slices.ContainsFunc(list, d.mayHaveCommitted)):
			err = nothingDone("the connection was lost before COMMIT took place", err)
		}
	}()
	w := d.witness(s.statements, taken.Conn, list)
	begin := s.after
	if w.table == "" { // nothing follows COMMIT; otherwise another try would begin with a witness
		begin = taken.Last(begin)
	}
	if r.EndFollows {
		begin = engine.EndFollows(begin)
	}
	tx, err := taken.Conn.BeginTx(begin, &sql.TxOptions{Isolation: d.engine.Isolation})
	if why := notSent(d.engine, err); why != nil {
		return Result{}, why
	} else if err != nil {
		return Result{}, describe(d.engine, err, "")
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	mark := ""
	if slices.ContainsFunc(list, mayCommit) {
		mark = fmt.Sprintf("dbjobs_%016x", rand.Uint64())
		for _, st := range append(w.inserts(), "SAVEPOINT "+mark) {
			if _, err := tx.ExecContext(s.statements, st); notSent(d.engine, err) != nil {
				return Result{}, notSent(d.engine, err)
			} else if err != nil {
				return Result{}, describe(d.engine, err, "")
			}
		}
	}
	sent = true
	res, err := s.execute(d.engine, tx, spec)
	switch {
	case err != nil && mark == "":
		return res, err
	case err != nil:
		if _, gone := tx.ExecContext(s.after, "ROLLBACK TO SAVEPOINT "+mark); d.engine.SavepointGone(gone) && (!d.engine.Undone(s.after, tx, err, s.attempt.Err() != nil) || w.committed(s.after, tx)) {
			return res, notAtomic(err)
		}
		return res, err
	case mark != "":
		if _, err := tx.ExecContext(s.after, "RELEASE SAVEPOINT "+mark); d.engine.SavepointGone(err) {
			return res, notAtomic(nil)
		} else if err != nil {
			return res, describe(d.engine, err, "")
		}
		for _, text := range taken.ForRecord(textsOf(list)) {
			if _, err := tx.ExecContext(s.after, text); err != nil {
				return res, describe(d.engine, err, "")
			}
		}
	}
	if err := r.EndIn(s.statements, tx, res); err != nil {
		return res, err
	}
	if err := tx.Commit(); err != nil {
		return res, describe(d.engine, err, "")
	}
	res.Ended = true
	return res, nil
}

// notAtomic returns the error of a step that ended its transaction. failure is the error after that,
// if there was one.
func notAtomic(failure error) error {
	const what = "%w: its text ended the transaction too early (COMMIT and ROLLBACK do so everywhere, DDL on MySQL and MariaDB), " +
		"so part of it may have taken effect; remove that statement, or set atomic to false"
	if failure == nil {
		return fmt.Errorf(what, ErrNotAtomic)
	}
	return fmt.Errorf(what+"; after that it failed: %w", ErrNotAtomic, failure)
}

// witness is a row in a temporary table, which ends with the session. The transaction of an atomic
// step writes the row before anything else. If the engine has undone a transaction and the row is
// still there, this was another transaction, and the step's own has been committed.
type witness struct {
	table string // empty: none is needed
	lost  error  // why there is no table
}

// witness sets up a witness if the text may need one. With only plain statements, there is no COMMIT,
// and none is needed.
func (d *database) witness(ctx context.Context, conn *sql.Conn, list []Statement) witness {
	w := witness{table: fmt.Sprintf("dbjobs_%016x", rand.Uint64())}
	create := d.engine.Witness(w.table)
	if create == "" || !slices.ContainsFunc(list, mayCommit) {
		return witness{}
	}
	_, w.lost = conn.ExecContext(ctx, create)
	return w
}

// plain matches statements that begin and end no transaction. The functions and triggers that they start cannot do so
// either: PostgreSQL, MySQL and MariaDB refuse it there, and SQLite has none that could. SQLite undoes a transaction
// if a conflict or a trigger says so (OR ROLLBACK). But that is an error, after which nothing more is executed.
var plain = lazyregexp.New(`(?i)^\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE)\s[^;]*;?\s*$`)

func mayCommit(st Statement) bool { return !plain.MatchString(st.Text) }

// mayHaveCommitted reports whether a text may have committed something in a transaction that is lost.
func (d *database) mayHaveCommitted(st Statement) bool {
	return mayCommit(st) && !d.engine.CommitsNothing(st.Text)
}

// inserts returns the statements to execute at the beginning of the transaction.
func (w witness) inserts() []string {
	if w.table == "" || w.lost != nil {
		return nil
	}
	return []string{"INSERT INTO " + w.table + " VALUES (1)"}
}

// committed reports whether the text has committed something, or may have done so. If this is unknown,
// it returns true, because another try could repeat the effects.
func (w witness) committed(ctx context.Context, tx *sql.Tx) bool {
	if w.table == "" {
		return false
	}
	rows := 0
	err := w.lost
	if err == nil {
		err = tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+w.table).Scan(&rows)
	}
	return err != nil || rows > 0
}
