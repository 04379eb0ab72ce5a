package store_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// Another process has the locks by which readers say what they read. SQLite tries for ten seconds, and then says "locking
// protocol". The error says that the file is locked.
func TestSQLiteFilesWhoseReadersAreLockedOut(t *testing.T) {
	storetest.Needs(t, "sqlite")
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	d := storetest.Open(t, "sqlite", store.Options{})
	d.Int(t, "SELECT count(*) FROM dbjobs_jobs") // a connection is open, so there is a file of locks
	locks, err := os.OpenFile(strings.TrimPrefix(d.URL, "sqlite:")+"-shm", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	const ofAnOpenFile = 37 // F_OFD_SETLK, whose lock another open file of this process does not share
	readers := syscall.Flock_t{Type: syscall.F_WRLCK, Start: 123, Len: 5}
	if err := syscall.FcntlFlock(locks.Fd(), ofAnOpenFile, &readers); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = store.Open(ctx, d.URL, store.Options{})
	if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "another process has the file locked") {
		t.Error(err)
	}
}
