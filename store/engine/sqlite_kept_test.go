package engine

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
)

// A statement of the program that comes again is compiled once. It may come again while its rows are
// still read, and it sees the table as it is then. The text of a job is compiled anew.
func TestKeptStatements(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := New("sqlite:"+filepath.Join(t.TempDir(), "kept.db"), Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exec := func(ctx context.Context, text string) {
		t.Helper()
		if _, err := conn.ExecContext(ctx, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	kept := func() (n int) {
		if err := conn.Raw(func(c any) error { n = len(c.(*keptStatements).ready); return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	exec(ctx, "CREATE TABLE t (n int)")
	exec(ctx, "INSERT INTO t VALUES (1)")
	if n := kept(); n != 0 {
		t.Errorf("%d statements are kept that nobody asked to keep", n)
	}
	for range 3 {
		exec(repeats(ctx, "one"), "INSERT INTO t VALUES (2)")
	}
	if n := kept(); n != 1 {
		t.Errorf("%d statements are kept of one", n)
	}
	const all = "SELECT * FROM t ORDER BY n"
	count := func(each func()) (rows, columns int) {
		t.Helper()
		list, err := conn.QueryContext(repeats(ctx, "one"), all)
		if err != nil {
			t.Fatal(err)
		}
		defer list.Close()
		names, err := list.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for list.Next() {
			rows++
			each()
		}
		if err := list.Err(); err != nil {
			t.Fatal(err)
		}
		return rows, len(names)
	}
	within := func() {
		if rows, _ := count(func() {}); rows != 4 {
			t.Errorf("%d rows within the reading of the same statement", rows)
		}
	}
	if rows, _ := count(within); rows != 4 {
		t.Errorf("%d rows, while another reading of them ran", rows)
	}
	if n := kept(); n != 2 {
		t.Errorf("%d statements are kept of two", n)
	}
	exec(ctx, "ALTER TABLE t ADD COLUMN m int")
	if rows, columns := count(func() {}); rows != 4 || columns != 2 {
		t.Errorf("%d rows of %d columns after a column was added", rows, columns)
	}
	exec(ctx, "DROP TABLE t")
	if _, err := conn.ExecContext(repeats(ctx, "one"), "INSERT INTO t VALUES (2)"); err == nil {
		t.Error("a kept statement wrote into a table that is gone")
	}
	if n := kept(); n != 1 {
		t.Errorf("%d statements are kept after one has failed", n)
	}
	for i := range 2 * mostKept {
		exec(repeats(ctx, "one"), "SELECT "+string(rune('a'+i%26))+" FROM (SELECT 1 AS "+string(rune('a'+i%26))+") LIMIT "+string(rune('1'+i/26)))
	}
	if n := kept(); n != mostKept {
		t.Errorf("%d statements are kept, want %d", n, mostKept)
	}
}

// A transaction that ends by an error leaves no statement open, since that statement would keep its lock.
func TestKeptStatementHoldsNoLock(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	file := "sqlite:" + filepath.Join(t.TempDir(), "kept.db")
	db, err := New(file, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.pool.ExecContext(ctx, "CREATE TABLE t (n int UNIQUE)"); err != nil {
		t.Fatal(err)
	}
	one := db.pool
	one.SetMaxOpenConns(1)
	for range 2 {
		tx, err := one.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(repeats(ctx, "one"), "INSERT INTO t VALUES (1), (2), (1)"); err == nil {
			t.Fatal("the key is not unique")
		}
		var n int
		if err := tx.QueryRowContext(repeats(ctx, "one"), "SELECT count(*) FROM t").Scan(&n); err != nil || n != 0 {
			t.Fatalf("%d rows: %v", n, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	other, err := New(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.InTx(ctx, func(tx *Tx) error {
		_, err := tx.q.(*sql.Tx).ExecContext(ctx, "INSERT INTO t VALUES (1)")
		return err
	}); err != nil {
		t.Error(err)
	}
}
