package executor_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// A server that hands over to another one takes no writes at first. Then nothing of an atomic step took effect, whether its own
// statement was refused or the record of its end.
func TestAtomicStepWhileTheServerTakesNoWrites(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		const readOnly = "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'The server is running with the --read-only option'"
		refused := map[string][]string{
			"sqlite":   {"PRAGMA query_only = 1", "INSERT INTO effects VALUES (2)"},
			"postgres": {"SET TRANSACTION READ ONLY", "INSERT INTO effects VALUES (2)"},
			"mariadb":  {readOnly}, "mysql": {readOnly},
		}[d.Engine]
		d.Exec(t, "CREATE TABLE effects (n int)")
		steps := newStepper(t, d, d.Store)
		steps.spec.Atomic = true
		const insert = "INSERT INTO effects VALUES (1)"
		for name, c := range map[string]struct{ texts, ending []string }{
			"a statement":                       {append([]string{insert}, refused...), nil},
			"the record":                        {[]string{insert}, refused},
			"the record of one that may COMMIT": {[]string{insert, "WITH one AS (SELECT 1) SELECT * FROM one"}, refused},
		} {
			steps.r.EndIn = func(ctx context.Context, tx *sql.Tx, _ executor.Result) error {
				for _, text := range c.ending {
					if _, err := tx.ExecContext(ctx, text); err != nil {
						return err
					}
				}
				return nil
			}
			if err := steps.step(c.texts...); !errors.Is(err, executor.ErrNothingDone) || errors.Is(err, executor.ErrNotAtomic) {
				t.Errorf("%s was refused: %v, want that nothing was done", name, err)
			}
			if n := d.Int(t, "SELECT count(*) FROM effects"); n != 0 {
				t.Errorf("%s was refused: %d effects", name, n)
			}
		}
	})
}

// A routine may raise the error of a server that takes no writes, or get it from another server. Then the step has failed.
func TestAtomicStepThatRaisesThatThereAreNoWrites(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		const signals = "CREATE PROCEDURE closed() SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'the books are read-only'"
		routine := map[string][2]string{
			"postgres": {"CREATE FUNCTION closed() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the books are closed' USING ERRCODE = '25006'; END $$", "SELECT closed()"},
			"mariadb":  {signals, "CALL closed()"}, "mysql": {signals, "CALL closed()"},
		}[d.Engine]
		if routine[0] == "" {
			t.Skip("SQLite has no routines")
		}
		d.Exec(t, routine[0])
		steps := newStepper(t, d, d.Store)
		steps.spec.Atomic = true
		if err := steps.step(routine[1]); err == nil || errors.Is(err, executor.ErrNothingDone) || strings.Contains(err.Error(), "took no writes") {
			t.Errorf("%v, want that the step has failed", err)
		}
	})
}

// A text waits for a lock as long as its session says, and fails then. The record of its end belongs to dbjobs: if that waits too long,
// all of it is tried again.
func TestAtomicStepWhoseRecordWaitsForALock(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		steps := newStepper(t, d, d.Store)
		steps.spec.Atomic = true
		tries := 0
		steps.r.EndIn = func(context.Context, *sql.Tx, executor.Result) error {
			if tries++; tries < 3 {
				return store.ErrLocked
			}
			return nil
		}
		if err := steps.step("INSERT INTO effects VALUES (1)"); err != nil || tries != 3 {
			t.Errorf("%d tries: %v", tries, err)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 1 {
			t.Errorf("%d effects", n)
		}
	})
}
