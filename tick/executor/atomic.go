package executor

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// atomic commits the effects and the end of the step together, exactly once. A guard shows whether the text has ended
// the transaction before that.
//
// Crash window: if the answer to COMMIT is lost, the caller tries to record another end of this attempt.
// If the COMMIT took place, the record is refused: the run has gone on, or the success of the attempt
// is on record (store.ErrRecorded). If it did not, that end is recorded and the step is tried again.
//
// A text that is stopped by a timeout or a cancel is checked, too. Otherwise, the next try could repeat
// effects that the text has committed. So the transaction outlives the attempt, for as long as the check takes.
func (d *database) atomic(s session, taken *engine.Session, spec SQLSpec, r Request) (res Result, err error) {
	var sent []Statement
	defer func() { err = d.beforeCommit(err, sent) }()
	g := d.guard(s, taken, spec.SQL)
	begin := s.after
	if g.witness == "" { // nothing follows COMMIT; otherwise another try would begin with a witness
		begin = taken.Last(begin)
	}
	if r.EndFollows {
		begin = engine.EndFollows(begin)
	}
	tx, err := d.begin(begin, s, taken.Conn)
	if err != nil {
		return Result{}, beforeText(d.engine, err)
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := g.set(tx); err != nil {
		return Result{}, err
	}
	sent = spec.SQL
	if res, err = s.execute(d.engine, tx, spec); err != nil {
		return res, g.failed(tx, err)
	}
	if err := g.release(tx); err != nil {
		return res, err
	}
	if err = r.EndIn(s.statements, tx, res); err == nil {
		if err = tx.Commit(); err != nil {
			err = describe(d.engine, err, "")
		}
	}
	if d.engine.RoutineGone(err) { // the text has not ended the transaction, so all is rolled back
		err = nothingDone("the routine that records the end is being replaced", err)
	}
	res.Ended = err == nil
	return res, err
}

// beforeCommit says of an error that the step has done nothing, if that is certain. sent are the statements that the server
// may have got.
//
// If the connection is lost before COMMIT took place, the server has undone the transaction. Then the
// attempt counts as one that has done nothing, unless the text was sent and may have committed a part of its effects.
// The same holds if the server takes no writes any more, as one that hands over to another does at first.
//
// Where the session is lost after a COMMIT of the text, the guard is lost, too. Then this is a failed
// attempt like any other: a session that ends in the middle is far more often that of a text which has committed nothing.
func (d *database) beforeCommit(err error, sent []Statement) error {
	switch {
	case err == nil || errors.Is(err, errHeld) || errors.Is(err, ErrNotAtomic):
	case d.engine.TakesNoWrites(err): // the answer of a server that is there, so all is rolled back
		return nothingDone("the database took no writes before COMMIT", err)
	case d.engine.Broken(err) && !slices.ContainsFunc(sent, d.mayHaveCommitted):
		return nothingDone("the connection was lost before COMMIT took place", err)
	}
	return err
}

// beforeText describes the error of a statement that comes before those of the step.
func beforeText(e *engine.Engine, err error) error {
	if why := notSent(e, err); why != nil {
		return why
	}
	return describe(e, err, "")
}

// guard shows whether the text of an atomic step has ended the transaction of the step. COMMIT and ROLLBACK do so, and DDL
// does so on engines on which it commits (MySQL, MariaDB), also in a procedure, and if the text has begun another
// transaction after that. Plain statements can do none of that, and need no guard.
//
// The guard sets a savepoint before the first statement. It is still there after the last statement, unless the text has
// ended the transaction. If the engine has undone the transaction at an error, as at a deadlock, the savepoint is gone, too.
// Then it does not show whether this was our transaction, or one that came after a COMMIT of the text. The witness shows it:
// a row in a temporary table, which ends with the session. If the row, which was written before anything else, is still
// there, another transaction was undone, and the step's own has been committed.
type guard struct {
	session
	engine    *engine.Engine
	savepoint string   // empty: the text is plain
	record    []string // statements for the record of the end: see engine.Session.ForRecord
	witness   string   // the table; empty: none is needed
	lost      error    // why there is no such table
}

// guard sets up the guard of a text, before its transaction begins.
func (d *database) guard(s session, taken *engine.Session, list []Statement) guard {
	others := slices.DeleteFunc(slices.Clone(list), func(st Statement) bool { return !mayCommit(st) })
	g := guard{session: s, engine: d.engine, record: taken.ForRecord(textsOf(slices.DeleteFunc(slices.Clone(list), mayCommit)), textsOf(others))}
	if len(others) == 0 {
		return g
	}
	name := fmt.Sprintf("dbjobs_%016x", rand.Uint64())
	g.savepoint = name
	if create := d.engine.Witness(name); create != "" {
		g.witness = name
		_, g.lost = taken.Conn.ExecContext(s.statements, create)
	}
	return g
}

// set begins to guard a transaction.
func (g *guard) set(tx *sql.Tx) error {
	var list []string
	if g.witness != "" && g.lost == nil {
		list = append(list, "INSERT INTO "+g.witness+" VALUES (1)")
	}
	if g.savepoint != "" {
		list = append(list, "SAVEPOINT "+g.savepoint)
	}
	for _, text := range list {
		if _, err := tx.ExecContext(g.statements, text); err != nil {
			return beforeText(g.engine, err)
		}
	}
	return nil
}

// failed returns the error of a text that has failed: ErrNotAtomic, if it had ended the transaction before.
func (g *guard) failed(tx *sql.Tx, failure error) error {
	if g.savepoint == "" {
		return failure
	}
	_, err := tx.ExecContext(g.after, "ROLLBACK TO SAVEPOINT "+g.savepoint)
	switch {
	case !g.engine.SavepointGone(err):
	case !g.engine.Undone(g.after, tx, failure, g.attempt.Err() != nil):
		return notAtomic(failure)
	case g.lost != nil:
		return notKnown(g.lost, failure)
	case g.committed(tx):
		return notAtomic(failure)
	}
	return failure
}

// release ends the guard after the text, and readies the session for the record of the end.
func (g *guard) release(tx *sql.Tx) error {
	if g.savepoint != "" {
		if _, err := tx.ExecContext(g.after, "RELEASE SAVEPOINT "+g.savepoint); g.engine.SavepointGone(err) {
			return notAtomic(nil)
		} else if err != nil {
			return describe(g.engine, err, "")
		}
	}
	for _, text := range g.record {
		if _, err := tx.ExecContext(g.after, text); err != nil {
			return describe(g.engine, err, "")
		}
	}
	return nil
}

// committed reports whether the text has committed something, or may have done so, where there is a witness. If this is unknown,
// it returns true, because another try could repeat the effects.
func (g *guard) committed(tx *sql.Tx) bool {
	if g.witness == "" {
		return false
	}
	rows := 0
	err := tx.QueryRowContext(g.after, "SELECT COUNT(*) FROM "+g.witness).Scan(&rows)
	return err != nil || rows > 0
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

// notKnown returns the error of a step whose transaction was undone, where no witness shows whether it was the step's own. lost
// says why there is none. The step counts as one that is not atomic, because another try could repeat the effects.
func notKnown(lost, failure error) error {
	return fmt.Errorf("%w for sure: it failed: %w; that has undone a transaction, and it is unknown whether its text had committed one before: "+
		"no temporary table could be made that would show it (%v). See what it has done; a step of plain INSERT, UPDATE and DELETE needs no such table",
		ErrNotAtomic, failure, lost)
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
