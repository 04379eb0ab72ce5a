//go:build unix

package wholefile

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner and the group of the old one. Only root may give a file to another user. Other users may
// give it to a group of theirs. What is not allowed is left as it is.
func keepOwner(f *os.File, old fs.FileInfo) {
	if had, ok := old.Sys().(*syscall.Stat_t); ok && f.Chown(int(had.Uid), int(had.Gid)) != nil {
		_ = f.Chown(-1, int(had.Gid))
	}
}
