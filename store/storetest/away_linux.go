package storetest

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// Away makes a file with that text, which can be read only after back was called, as one on a file server that is away. Until then,
// each call that opens it hangs. The kernel lets none hang longer than fs.lease-break-time, which is 45 s. back may be called
// several times; the end of the test calls it.
func Away(t testing.TB, text string) (path string, back func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "away")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	const setLease = 1024 // F_SETLEASE of fcntl(2)
	if _, _, no := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), setLease, syscall.F_WRLCK); no != 0 {
		f.Close()
		Skip(t, "this file system gives no leases: %v", no)
	}
	back = sync.OnceFunc(func() { f.Close() }) // with the file goes the lease
	t.Cleanup(back)
	return path, back
}
