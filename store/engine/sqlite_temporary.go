package engine

import (
	"os"
	"path/filepath"
	"strings"
)

// temporaryFolders are the folders in which SQLite looks.
func temporaryFolders() []string {
	return []string{os.Getenv("SQLITE_TMPDIR"), os.Getenv("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp", "."}
}

// sqliteTemporaries is the setting for the temporary files of a database: its own folder, where SQLite finds none of the usual ones.
// The files have no name there, as elsewhere. Where that folder, too, is read-only, they are in memory.
//
// SQLite writes sorts, results and VACUUM into such files when they grow beyond some megabytes. In a container whose root is
// read-only there is no usual folder, and a statement would fail with an I/O error as soon as the data has grown.
func sqliteTemporaries(path string, usual []string) string {
	for _, folder := range usual {
		if folder != "" && mayFill(folder) {
			return ""
		}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if folder, err := filepath.Abs(filepath.Dir(path)); err == nil && mayFill(folder) {
		return "PRAGMA temp_store_directory = '" + strings.ReplaceAll(folder, "'", "''") + "'" // for the whole process
	}
	return "PRAGMA temp_store = MEMORY"
}
