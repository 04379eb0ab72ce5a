//go:build unix

package executor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// replaceable returns the file or folder through which every user of the system could replace this program by another one;
// empty: there is none. named is the program's name in a folder without links. Write access of a group, or of another owner,
// is accepted: the owner of the host has chosen them.
func replaceable(named string) string {
	file, err := filepath.EvalSymlinks(named)
	if err != nil {
		return err.Error()
	}
	for _, path := range []string{named, file} {
		for entry := ""; path != entry; entry, path = path, filepath.Dir(path) { // entry is the path that was judged before, in the folder path
			info, err := os.Lstat(path)
			if err != nil {
				return err.Error()
			}
			all := info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o002 != 0
			keeps := info.IsDir() && info.Mode()&fs.ModeSticky != 0 && entry != "" && belongsToUs(entry)
			// Nobody can write to a file system that is mounted read-only, such as a ConfigMap of Kubernetes.
			if all && !keeps && !errors.Is(syscall.Access(path, 2), syscall.EROFS) {
				return path + " may be written by all users"
			}
		}
	}
	return ""
}

// belongsToUs reports whether the owner is this user or root. In a folder such as /tmp, nobody else
// can replace the entry.
func belongsToUs(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}
