package engine

import (
	"cmp"
	"errors"
	"os"
	"strings"
	"syscall"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dbjobs/dbjobs/store/secret"
)

func classifySQLite(err error) class {
	var se *sqlitedriver.Error
	if !errors.As(err, &se) {
		return other
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return transient
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return readOnly
	case sqlite3.SQLITE_FULL:
		return diskFull
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_AUTH:
		return unreachable
	case sqlite3.SQLITE_CONSTRAINT:
		if se.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || se.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY {
			return duplicate
		}
	case sqlite3.SQLITE_ERROR:
		if strings.Contains(se.Error(), "no such table: dbjobs_") {
			return noTable
		}
	}
	return other
}

// sqliteAtFault decides by the primary result codes.
func sqliteAtFault(err error) bool {
	var se *sqlitedriver.Error
	if !errors.As(err, &se) {
		return false
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_TOOBIG:
		return true
	case sqlite3.SQLITE_ERROR:
		return classifySQLite(err) != noTable
	}
	return false
}

func adviseOnSQLite(err error) string {
	var se *sqlitedriver.Error
	if !errors.As(err, &se) {
		return ""
	}
	advice := sqliteAdvice[se.Code()&0xff]
	if advice != "" {
		advice = cmp.Or(ofOpenFiles(), advice)
	}
	return advice
}

// ofOpenFiles is the advice where no more files can be opened; empty: they can. SQLite does not say why it could not open one.
func ofOpenFiles() string {
	switch f, err := os.Open(os.DevNull); {
	case errors.Is(err, syscall.EMFILE):
		return "; this process has as many files open as its limit allows: raise the limit (`ulimit -n`, LimitNOFILE= of systemd), or lower the concurrency"
	case errors.Is(err, syscall.ENFILE):
		return "; this machine has as many files open as its limit allows: see fs.file-max of its kernel"
	case err == nil:
		f.Close()
	}
	return ""
}

// ownFolder names all that has to be writable. SQLite makes files beside the database, with its mode. They keep that mode where
// a process died, also if the database gets another one.
const ownFolder = "; this user must be able to write the file, its folder, and the files beside it whose names end in -wal and -shm"

var sqliteAdvice = secret.Ours(map[int]string{
	sqlite3.SQLITE_READONLY: ownFolder,
	sqlite3.SQLITE_PERM:     ownFolder,
	sqlite3.SQLITE_CANTOPEN: ownFolder,
	sqlite3.SQLITE_IOERR:    "; is the disk full, or failing?",
	sqlite3.SQLITE_CORRUPT:  "; the file is damaged: `dbjobs doctor` says where; stop the ticks, keep a copy, and restore the last good one",
	sqlite3.SQLITE_NOTADB:   "; the file is damaged, or is of another program: restore the last good copy, or name another file",
})
