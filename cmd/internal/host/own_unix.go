//go:build unix

package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// writableByOthers returns who can write a file besides us and root; empty: nobody can.
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

// readableByOthers reports whether all users may read a file. A group may read it: that is how a service gets
// files in /etc.
func readableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o004 != 0 }

// OnlyOurs reports whether only this user and root can write the file, or put another file in its place. It also
// checks the files that SQLite keeps beside it, and all folders on the way to it. Access lists show in the mode of
// the group.
func OnlyOurs(path string) bool {
	file, shared, why := follow(path)
	return why == "" && !shared && onlyOursIn(file)
}

// replaceable returns the folder or link through which others could put another file in the place of this one;
// empty: there is none.
func replaceable(path string) string {
	_, _, why := follow(path)
	return why
}

// follow returns the file to which a path leads, and whether all users may add files to its folder. why names the
// folder or link through which others could lead the path to another file. Links are followed one by one: a link
// that others can change may lead elsewhere by the time that the file is opened.
func follow(path string) (file string, shared bool, why string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", false, err.Error()
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
		if shared, why = keepsNames(folder); why != "" {
			return "", false, why
		}
		next := filepath.Join(folder, name)
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			return "", false, err.Error()
		case !belongsToUs(info):
			return "", false, next + " belongs to another user"
		case info.IsDir():
			folder = next
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(next)
			if links++; err != nil || links > mostLinks {
				return "", false, next + " is a link that leads nowhere"
			}
			if filepath.IsAbs(to) {
				folder = separator
			}
			way = append(strings.Split(to, separator), way...)
		case len(way) > 0:
			return "", false, next + " is no folder"
		default:
			return next, shared, ""
		}
	}
	return "", false, folder + " is a folder"
}

// mostLinks is how many links the system would follow.
const mostLinks = 40

// onlyOursIn reports the same about a file in a folder of ours, with the files that SQLite keeps beside it.
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

// keepsNames returns why others can rename or remove our files in a folder; empty: they cannot. shared is set if
// all users may add files to it, as in /tmp. In a file system that is mounted read-only, nobody can do that,
// whatever the mode says. Kubernetes mounts its ConfigMaps in this way, with folders that all users may write
// according to their mode.
func keepsNames(folder string) (shared bool, why string) {
	info, err := os.Lstat(folder)
	if err != nil {
		return false, err.Error()
	}
	if !belongsToUs(info) {
		return false, folder + " belongs to another user"
	}
	writable := writableByOthers(info)
	if writable == "" || errors.Is(syscall.Access(folder, 2), syscall.EROFS) {
		return false, ""
	} else if info.Mode()&fs.ModeSticky != 0 {
		return true, ""
	}
	return true, "the folder " + folder + strings.TrimPrefix(writable, "it")
}

// belongsToUs reports whether the owner is this user or root.
func belongsToUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}
