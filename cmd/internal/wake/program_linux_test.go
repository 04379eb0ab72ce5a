package wake

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
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
	ring := filepath.Join(t.TempDir(), "ring")
	if err := os.WriteFile(ring, fmt.Appendf(nil, "#!/bin/sh\n[ ! -e /proc/$$/fd/%d ]\n", number), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := New("exec:"+ring, Settings{Env: lookup(nil), Environ: os.Environ(), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Set(t.Context(), noon); err != nil {
		t.Error(err)
	}
}
