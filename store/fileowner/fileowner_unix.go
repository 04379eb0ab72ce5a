//go:build unix

// Package fileowner gives files to the user and the group to whom another file belongs.
package fileowner

import (
	"io/fs"
	"os"
	"syscall"
)

// Like gives a file the owner and the group of another one, as far as this user and the file system may. Only root may give a file
// to another user. Other users may give it to a group of theirs. What is not allowed is left as it is.
//
// It asks for nothing that the file has already: a sandbox, such as that of systemd or of a container, may kill a process that asks.
func Like(f *os.File, other fs.FileInfo) {
	info, err := f.Stat()
	if err != nil {
		return
	}
	is, known := info.Sys().(*syscall.Stat_t)
	want, wanted := other.Sys().(*syscall.Stat_t)
	if !known || !wanted || is.Uid == want.Uid && is.Gid == want.Gid {
		return
	}
	if f.Chown(int(want.Uid), int(want.Gid)) != nil && is.Gid != want.Gid {
		_ = f.Chown(-1, int(want.Gid))
	}
}
