package engine

import (
	"fmt"
	"os"
	"path/filepath"
)

// unwritableSQLite looks at all that ownFolder names. A reader of the database does not notice the rights of its files.
func unwritableSQLite(rawURL string) (list []string) {
	path, _, err := sqlitePath(rawURL)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil { // it was there when it was opened
		return nil
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if !mayWrite(name) {
			list = append(list, "the file "+name+modeOf(name))
		}
	}
	if folder := filepath.Dir(path); !mayFill(folder) {
		list = append(list, "the folder "+folder+modeOf(folder))
	}
	return list
}

// modeOf returns the mode of a file in brackets, as ls shows it.
func modeOf(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (%s)", info.Mode())
}
