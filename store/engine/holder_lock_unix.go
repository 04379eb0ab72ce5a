//go:build unix

package engine

import (
	"errors"
	"os"
	"syscall"
)

// lockFile holds an exclusive lock on a file until the process ends or release is called.
func lockFile(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		os.Remove(path) // while it is still locked, so that no process can mistake it for a sign of life
		f.Close()
	}, nil
}

// locked reports whether a process holds the lock of a file. A file without a holder is removed.
func locked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		os.Remove(path)
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}
