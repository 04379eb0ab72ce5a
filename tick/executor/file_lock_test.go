package executor_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// impatient is a connector whose connections wait a millisecond for the lock of an SQLite file.
type impatient struct{ driver.Connector }

func (c impatient) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err == nil {
		_, err = conn.(driver.ExecerContext).ExecContext(ctx, "PRAGMA busy_timeout = 1", nil)
	}
	return conn, err
}

// writer is another session that writes to an SQLite file: from when a step sends a text, or begins its transaction, until the
// step has been refused a number of times.
type writer struct {
	t    *testing.T
	d    *storetest.DB
	at   string // the text; empty: the beginning of a transaction
	met  int    // how often the step was refused
	over func(met int) bool
	tx   *sql.Tx
}

func (w *writer) open() *store.Store {
	calls := storetest.Calls{
		Before: func(c storetest.Call) (err error) {
			if w.at != "" && c.SQL != w.at || w.at == "" && c.Kind != storetest.Begin || w.tx != nil {
				return nil
			}
			w.tx, err = w.d.SQL.BeginTx(context.WithoutCancel(w.t.Context()), nil) // immediate: it holds the lock for writing
			return err
		},
		Failed: func(_ storetest.Call, err error) {
			if !strings.Contains(err.Error(), "SQLITE_BUSY") {
				return
			}
			if w.met++; w.over(w.met) {
				w.ends()
			}
		},
	}
	s, err := store.Open(w.t.Context(), w.d.URL, store.Options{Wrap: func(inner driver.Connector) driver.Connector { return calls.Wrap(impatient{inner}) }})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.Close() })
	return s
}

func (w *writer) ends() {
	if err := w.tx.Rollback(); err != nil {
		w.t.Error(err)
	}
}

// Another job may write to the file of the ledger for minutes. A statement that meets its lock has done nothing, and waits on. It has
// failed where nobody knows that, or where its session says how long it waits.
func TestStepBesideALongWrite(t *testing.T) {
	t.Parallel()
	const one, two = "INSERT INTO effects VALUES (1)", "INSERT INTO effects VALUES (2)"
	const with = "WITH three AS (SELECT 3) INSERT INTO effects SELECT * FROM three"
	for name, c := range map[string]struct {
		texts   []string
		at      string
		atomic  bool
		waits   bool
		effects int
	}{
		"a statement":            {[]string{one}, one, false, true, 1},
		"with a WITH":            {[]string{with}, with, false, true, 1},
		"one that returns rows":  {[]string{one + " RETURNING n"}, one + " RETURNING n", false, true, 1},
		"after an effect":        {[]string{one, two}, two, false, true, 2},
		"after a table":          {[]string{"CREATE TABLE IF NOT EXISTS effects (n int)", one}, one, false, true, 1},
		"a table":                {[]string{"CREATE TABLE made (n int)"}, "CREATE TABLE made (n int)", false, true, 0},
		"VACUUM":                 {[]string{"VACUUM"}, "VACUUM", false, true, 0},
		"its own transaction":    {[]string{"BEGIN IMMEDIATE", one, two, "COMMIT"}, "BEGIN IMMEDIATE", false, true, 2},
		"an atomic step":         {[]string{one, two}, "", true, true, 2},
		"in its own transaction": {[]string{"BEGIN", one, "COMMIT"}, one, false, false, 0},
		"after its transaction":  {[]string{"BEGIN", one, "COMMIT", two}, two, false, true, 2},
		"a script":               {[]string{one + "; " + two}, one + "; " + two, false, false, 0},
		"its own patience":       {[]string{"PRAGMA busy_timeout = 2", one}, one, false, false, 0},
		"another file":           {[]string{"ATTACH ':memory:' AS other", one}, one, false, false, 0},
		"a setting":              {[]string{"PRAGMA user_version = 7"}, "PRAGMA user_version = 7", false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, "sqlite", store.Options{})
			d.Exec(t, "CREATE TABLE effects (n int)")
			most := 1
			if c.waits {
				most = 3
			}
			if c.atomic {
				most = 13 // it has twelve tries for other conflicts
			}
			w := &writer{t: t, d: d, at: c.at, over: func(met int) bool { return met == most }}
			steps := newStepper(t, d, w.open())
			steps.spec.Atomic = c.atomic
			steps.r.EndIn = func(context.Context, *sql.Tx, executor.Result) error { return nil }
			if err := steps.step(c.texts...); w.met != most || c.waits != (err == nil) || !c.waits && !strings.Contains(err.Error(), "SQLITE_BUSY") {
				t.Errorf("refused %d times: %v", w.met, err)
			}
			if n := d.Int(t, "SELECT count(*) FROM effects"); n != c.effects {
				t.Errorf("%d effects, want %d", n, c.effects)
			}
		})
	}
}

// The wait ends with the attempt. An atomic step that has not begun by then has certainly done nothing.
func TestStepBesideAWriteThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO effects VALUES (1)"
	for at, atomic := range map[string]bool{insert: false, "": true} {
		d := storetest.Open(t, "sqlite", store.Options{})
		d.Exec(t, "CREATE TABLE effects (n int)")
		ctx, cancel := context.WithCancel(t.Context())
		w := &writer{t: t, d: d, at: at, over: func(met int) bool {
			if met == 13 {
				cancel()
			}
			return false
		}}
		steps := newStepper(t, d, w.open())
		steps.spec.Atomic = atomic
		err := steps.stepWithin(ctx, insert)
		w.ends()
		if _, unsent := errors.AsType[*executor.UnsentError](err); err == nil || w.met > 14 || ctx.Err() == nil || unsent != atomic {
			t.Errorf("atomic %t: refused %d times: %v", atomic, w.met, err)
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != 0 {
			t.Errorf("atomic %t: %d effects", atomic, n)
		}
		cancel()
	}
}
