package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync"
)

// ErrReplaced says that the path of the database leads to another file than the one that this process has open.
var ErrReplaced = errors.New("the file was replaced")

// openFile is the file that the connections of a DB have open, of SQLite. Somebody may put another one in its place, such as
// a restored copy. What is written after that is lost with the old file, and nobody else sees it. SQLite must not have both
// open in one process: they would share the files beside them. So a connection is not used again then, and no other one is
// made until Rest. Until that, the statements fail.
type openFile struct {
	path string
	any  bool // another file may follow at any time: it is of a target, and has no ledger

	mu sync.Mutex
	is os.FileInfo // nil: none is open
}

// opens notes the file that a connection is about to open.
func (f *openFile) opens() error {
	is, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.is == nil || f.any {
		f.is = is
	}
	if !os.SameFile(f.is, is) {
		return fmt.Errorf("%w: %w: %s is another file than the one that this process has open: what the process has written meanwhile is not in it. "+
			"Replace the file while no process has it open, and remove %[3]s-wal and %[3]s-shm with it", ErrUnreachable, ErrReplaced, f.path)
	}
	return nil
}

// replaced reports whether the path leads to another file by now, or to none.
func (f *openFile) replaced() bool {
	f.mu.Lock()
	was := f.is
	f.mu.Unlock()
	is, err := os.Stat(f.path)
	return err != nil || was == nil || !os.SameFile(was, is)
}

// closed says that no connection is open any more.
func (f *openFile) closed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.is = nil
}

// sqliteOfFile makes connections to the file that is at its path.
type sqliteOfFile struct {
	driver.Connector
	file *openFile
}

// Connect connects.
func (c sqliteOfFile) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.file.opens(); err != nil {
		return nil, err
	}
	return c.Connector.Connect(ctx)
}

// Rest closes the connections while the process waits for its next pass, so that the file of an SQLite database may be
// replaced meanwhile: with the last connection, SQLite also removes the log beside the file. On a server it does nothing.
func (db *DB) Rest() {
	if db.file == nil {
		return
	}
	db.mu.Lock()
	all := append([]*Sessions{}, db.sessions...)
	db.mu.Unlock()
	for _, s := range all {
		s.work.Wait() // for sessions that are being renewed: they would be kept after that
	}
	db.makeRoom()
	if db.pool.Stats().OpenConnections == 0 {
		db.file.closed()
	}
}
