package engine

import (
	"fmt"
	"hash/fnv"
	"path/filepath"
)

// Hold shows that a holder of runs is alive, until release is called.
//
// On SQLite, a job's open write transaction blocks every heartbeat, so a lease can end while its holder
// works. There the sign of life is a lock on a file beside the database; the kernel frees the lock when
// the process ends. On a server the heartbeat is enough, and Hold does nothing.
func (db *DB) Hold(holder string) (release func(), err error) {
	if db.e.holderLock == nil {
		return func() {}, nil
	}
	path, database, err := db.e.holderLock(db.url, holder)
	if err != nil {
		return nil, err
	}
	if release, err = lockFile(path, database); err != nil {
		return nil, fmt.Errorf("%w: lock file beside the database: %w", ErrReadOnly, err)
	}
	return release, nil
}

// Alive reports whether a holder shows by its lock that it is alive. It is always false on engines that
// have only the heartbeat.
func (db *DB) Alive(holder string) bool {
	if db.e.holderLock == nil || holder == "" {
		return false
	}
	path, _, err := db.e.holderLock(db.url, holder)
	return err == nil && locked(path)
}

// sqliteHolderLock is the path of the file whose lock shows that the holder is alive. It is beside the file of the
// database itself, by whatever link a process names that.
func sqliteHolderLock(rawURL, holder string) (path, database string, err error) {
	if database, _, err = sqlitePath(rawURL); err != nil {
		return "", "", err
	}
	if database, err = filepath.EvalSymlinks(database); err != nil {
		return "", "", err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(holder)) // never fails
	return fmt.Sprintf("%s-holder-%016x", database, h.Sum64()), database, nil
}
