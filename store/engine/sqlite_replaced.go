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
// made until Rest. Until that, the statements fail. A target has no ledger: there, another file is opened at once, after the
// connections that wait were closed. Statements that are being executed end in the old file.
type openFile struct {
	path  string
	leave func() // closes the connections that wait; nil: no other file may follow before Rest

	mu sync.Mutex
	is os.FileInfo // the one that was opened last; nil: none is open
}

// opens notes the file that a connection is about to open, and returns it.
func (f *openFile) opens() (os.FileInfo, error) {
	is, err := os.Stat(f.path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	f.mu.Lock()
	was := f.is
	if was == nil || f.leave != nil {
		f.is = is
	}
	f.mu.Unlock()
	switch {
	case was == nil || os.SameFile(was, is):
	case f.leave != nil:
		f.leave()
	default:
		return nil, fmt.Errorf("%w: %w: %s is another file than the one that this process has open: what the process has written meanwhile is not in it. "+
			"Replace the file while no process has it open, and remove %[3]s-wal and %[3]s-shm with it", ErrUnreachable, ErrReplaced, f.path)
	}
	return is, nil
}

// leadsTo reports whether the path still leads to a file that a connection has opened.
func (f *openFile) leadsTo(opened os.FileInfo) bool {
	is, err := os.Stat(f.path)
	return err == nil && os.SameFile(opened, is)
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

// connect connects.
func (c sqliteOfFile) connect(ctx context.Context) (*keptStatements, error) {
	is, err := c.file.opens()
	if err != nil {
		return nil, err
	}
	inner, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	whole, ok := inner.(sqliteConn)
	if !ok {
		return nil, errors.Join(errors.New("the driver's connections lack a method that dbjobs needs"), inner.Close())
	}
	return &keptStatements{whole, c.file, is, map[string]sqliteStatement{}}, nil
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
