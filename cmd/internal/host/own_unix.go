//go:build unix

package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// writableByOthers says by whom a file can be written other than by us and root; empty: by nobody.
func writableByOthers(info fs.FileInfo) string {
	switch {
	case info.Mode().Perm()&0o002 != 0:
		return "it may be written by all users"
	case info.Mode().Perm()&0o020 != 0:
		return "it may be written by its group"
	case !belongsToUs(info):
		return "it belongs to another user"
	}
	return ""
}

// readableByOthers reports whether all users may read a file. A group may: that is how files in /etc are given to a
// service.
func readableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o004 != 0 }

// OnlyOurs reports whether nobody but this user and root can write the file, or put another one in its place: not the
// file, what SQLite keeps beside it, or any folder on the way to it. Links are followed one by one: a link that others can
// turn may have led to another file when the database was opened. Access lists show in the mode of the group.
func OnlyOurs(path string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	const separator = string(filepath.Separator)
	folder, way := separator, strings.Split(path, separator)
	for links := 0; len(way) > 0; {
		name := way[0]
		way = way[1:]
		if name == "" || name == "." {
			continue
		} else if name == ".." {
			folder = filepath.Dir(folder)
			continue
		}
		ours, shared := keepsNames(folder)
		next := filepath.Join(folder, name)
		info, err := os.Lstat(next)
		switch {
		case !ours || err != nil || !belongsToUs(info):
			return false
		case info.IsDir():
			folder = next
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(next)
			if links++; err != nil || links > mostLinks {
				return false
			}
			if filepath.IsAbs(to) {
				folder = separator
			}
			way = append(strings.Split(to, separator), way...)
		default:
			return len(way) == 0 && !shared && onlyOursIn(next)
		}
	}
	return false
}

// mostLinks is how many links the system would follow.
const mostLinks = 40

// onlyOursIn reports the same of the file with what SQLite keeps beside it, in a folder of ours.
func onlyOursIn(file string) bool {
	for _, beside := range []string{"", "-wal", "-shm", "-journal"} {
		info, err := os.Lstat(file + beside)
		if beside != "" && os.IsNotExist(err) {
			continue
		}
		if err != nil || !info.Mode().IsRegular() || writableByOthers(info) != "" {
			return false
		}
	}
	return true
}

// keepsNames reports whether nobody else can rename or remove what is ours in a folder. It is shared where all may add to
// it, as in /tmp.
func keepsNames(folder string) (ours, shared bool) {
	info, err := os.Lstat(folder)
	if err != nil || !belongsToUs(info) {
		return false, false
	}
	shared = writableByOthers(info) != ""
	return !shared || info.Mode()&fs.ModeSticky != 0, shared
}

// belongsToUs reports whether the owner is this user or root.
func belongsToUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}
