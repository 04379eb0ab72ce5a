package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// sqliteTemporary gives connections a place for their temporary files. SQLite writes sorts, results and VACUUM there when they grow
// beyond some megabytes. In a container whose root is read-only there is none of the folders in which SQLite looks, and a statement
// would fail with an I/O error as soon as the data has grown.
type sqliteTemporary struct {
	driver.Connector
	setting string // empty: SQLite finds a folder
}

// Connect connects.
func (c sqliteTemporary) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil || c.setting == "" {
		return conn, err
	}
	whole, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, errors.Join(errors.New("the driver's connections lack a method that dbjobs needs"), conn.Close())
	}
	if _, err := whole.ExecContext(ctx, c.setting, nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// temporaryFolders are the folders in which SQLite looks.
func temporaryFolders() []string {
	return []string{os.Getenv("SQLITE_TMPDIR"), os.Getenv("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp", "."}
}

// sqliteTemporaries is the setting for the temporary files of a database: its own folder, where SQLite finds none of the usual ones.
// The files go without a name there, as elsewhere. Where that folder, too, is read-only, they are in memory.
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
