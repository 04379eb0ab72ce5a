package wake

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestAlarmOfAProgramGetsNoFiles: what it leaves in the background would hold the lock of a flock around the tick.
func TestAlarmOfAProgramGetsNoFiles(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	number, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_DUPFD, 100) // a shell may have its own files at the first numbers
	if errno != 0 {
		t.Fatal(errno)
	}
	defer syscall.Close(int(number))
	rings(t, filepath.Join(t.TempDir(), "ring"), fmt.Sprintf("[ ! -e /proc/$$/fd/%d ]", number))
}
