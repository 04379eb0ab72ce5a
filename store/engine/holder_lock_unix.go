//go:build unix

package engine

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/dbjobs/dbjobs/store/fileowner"
)

// lockFile holds an exclusive lock on a file until the process ends or release is called. Every user who may write the
// database must be able to see the lock: for a user who cannot open the file, its holder would be dead.
func lockFile(path, database string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	likeDatabase(f, database)
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		os.Remove(path) // while it is still locked, so that no process can mistake it for a sign of life
		f.Close()
	}, nil
}

// likeDatabase gives a file the owner, the group and the mode of the database, as far as this user and the file system
// may: SQLite does the same with the files that it makes beside the database.
func likeDatabase(f *os.File, database string) {
	if info, err := os.Stat(database); err == nil {
		fileowner.Like(f, info)
		_ = f.Chmod(info.Mode().Perm()) // after the owner, because only then the mode is for that group
	}
}

// locked reports whether a process holds the lock of a file. A file without a holder is removed. If the file cannot be opened
// although it may be there, as where this process can open no more files, it may be locked.
func locked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission)
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		os.Remove(path)
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}
