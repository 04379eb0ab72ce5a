//go:build unix

package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// writableByOthers says by whom a file can be written other than by us and root; empty: by nobody.
func writableByOthers(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return "nobody knows who may write it"
	case info.Mode().Perm()&0o002 != 0:
		return "it may be written by all users"
	case info.Mode().Perm()&0o020 != 0:
		return "it may be written by its group"
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return "it belongs to another user"
	}
	return ""
}

// readableByOthers reports whether all users may read a file. A group may: that is how files in /etc are given to a
// service.
func readableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o004 != 0 }

// OnlyOurs reports whether nobody but this user and root can write the file, or put another one in its place: not the
// file, what SQLite keeps beside it, or any folder above. Access lists show in the mode of the group.
func OnlyOurs(path string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return false
	}
	for _, beside := range []string{"", "-wal", "-shm", "-journal"} {
		info, err := os.Lstat(path + beside)
		if beside != "" && os.IsNotExist(err) {
			continue
		}
		if err != nil || !info.Mode().IsRegular() || writableByOthers(info) != "" {
			return false
		}
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return false
		}
		// In a folder such as /tmp all may write, but none may rename or remove what belongs to another.
		shared := info.Mode()&fs.ModeSticky != 0 && dir != filepath.Dir(path)
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() || !shared && writableByOthers(info) != "" {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}
