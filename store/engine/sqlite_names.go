package engine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sqliteProblem says what is wrong with the names of a file, and what to do; empty: nothing. SQLite keeps the log of the file (-wal)
// beside the name by which a process has opened it, symbolic links apart. Processes that open one file in two folders, or by two names,
// do not see the other's log, and not its locks on it: each of them does all runs, and they damage the file.
func sqliteProblem(rawURL string) string {
	path, _, err := sqlitePath(rawURL)
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	if n := hardLinks(path); n > 1 {
		return fmt.Sprintf("the file %s has %d names (hard links). SQLite keeps a log for each name, so processes that use different ones do all runs twice, and damage the file: "+
			"leave one name, and make the others symbolic links", path, n)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo") // of Linux
	if err == nil && mounted(mounts, path) {
		return fmt.Sprintf("the file %s is mounted without its folder. SQLite keeps its log beside it, so processes that see the file in another folder do all runs twice, and damage it, "+
			"and the log is lost with the container: mount the folder", path)
	}
	return ""
}

// mounted reports whether a path is a mount, by the lines of mountinfo (proc_pid_mountinfo(5)).
func mounted(mountinfo []byte, path string) bool {
	escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(path)
	for line := range bytes.Lines(mountinfo) {
		if fields := bytes.Fields(line); len(fields) > 4 && string(fields[4]) == escaped {
			return true
		}
	}
	return false
}
