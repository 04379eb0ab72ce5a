package executor

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/dbjobs/dbjobs/store/engine"
)

// undone is a server on which a deadlock has undone the transaction, and the savepoint with it.
type undone struct{ driver.Conn }

func (undone) Connect(context.Context) (driver.Conn, error) { return undone{}, nil }
func (undone) Driver() driver.Driver                        { return nil }
func (undone) Begin() (driver.Tx, error)                    { return undone{}, nil }
func (undone) Commit() error                                { return nil }
func (undone) Rollback() error                              { return nil }
func (undone) Close() error                                 { return nil }
func (undone) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, &mysql.MySQLError{Number: 1305, Message: "SAVEPOINT s does not exist"}
}

// Where the login may make no temporary table, a deadlock leaves it unknown whether the text has committed something. The error
// says that, and does not blame the text.
func TestAtomicStepWithoutAWitness(t *testing.T) {
	t.Parallel()
	db, err := engine.New("mysql://jobs@localhost/jobs", engine.Options{}) // it does not connect
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	pool := sql.OpenDB(undone{})
	defer pool.Close()
	tx, err := pool.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	g := guard{session: session{attempt: t.Context(), after: t.Context()}, engine: db.Engine(), savepoint: "s", witness: "w",
		lost: &mysql.MySQLError{Number: 1044, Message: "Access denied"}}
	err = g.failed(tx, &mysql.MySQLError{Number: 1213, Message: "Deadlock found"})
	if !errors.Is(err, ErrNotAtomic) {
		t.Errorf("another try could repeat the effects: %v", err)
	}
	for _, word := range []string{"unknown", "temporary table", "Access denied", "Deadlock found"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no word %q: %v", word, err)
		}
	}
	if strings.Contains(err.Error(), "ended the transaction too early") {
		t.Errorf("it blames the text: %v", err)
	}
}
