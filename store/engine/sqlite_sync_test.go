package engine

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
)

// In the file of the ledger, the commits of a plain step are synced together with its end. A transaction
// that has the end in it is synced by itself. Where nothing else syncs a commit, each commit is synced.
func TestStepsSyncWithTheLedger(t *testing.T) {
	t.Parallel()
	const normal, full = 1, 2
	file := filepath.Join(t.TempDir(), "jobs.db")
	ledger, err := New("sqlite:"+file, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	look := func(q interface {
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}, want int, where string) {
		t.Helper()
		var n int
		if err := q.QueryRowContext(t.Context(), "SELECT synchronous FROM pragma_synchronous").Scan(&n); err != nil || n != want {
			t.Errorf("%s: synchronous is %d, want %d (%v)", where, n, want, err)
		}
	}
	look(ledger.pool, full, "the ledger")
	session := func(db *DB) *sql.Conn {
		t.Helper()
		pool, err := db.JobPool(Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pool.Close() })
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	conn := session(ledger)
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback, (*sql.Tx).Commit} {
		look(conn, normal, "a plain step")
		tx, err := conn.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		look(tx, full, "an atomic step")
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		if tx, err = conn.BeginTx(EndFollows(t.Context()), nil); err != nil {
			t.Fatal(err)
		}
		look(tx, normal, "an atomic step before the end of its run")
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
	}
	look(conn, normal, "a plain step")

	target, err := New("sqlite:"+file, Options{Target: true})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	look(session(target), full, "a target")

	other := filepath.Join(t.TempDir(), "other.db")
	if err := makePrivate(other); err != nil {
		t.Fatal(err)
	}
	c, err := sqliteConnector("sqlite:"+other, Options{Target: true}) // it leaves the file as it is: without a log of its own
	if err != nil {
		t.Fatal(err)
	}
	pool := sql.OpenDB(sqliteForJobs{c.(sqliteKeeping).sqliteOfFile, true, true})
	defer pool.Close()
	look(pool, full, "a file without a log")
}
