package engine

import (
	"fmt"
	"hash/fnv"
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
	path, err := db.e.holderLock(db.url, holder)
	if err != nil {
		return nil, err
	}
	if release, err = lockFile(path); err != nil {
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
	path, err := db.e.holderLock(db.url, holder)
	return err == nil && locked(path)
}

// sqliteHolderLock is the path of the file whose lock shows that the holder is alive.
func sqliteHolderLock(rawURL, holder string) (string, error) {
	path, _, err := sqlitePath(rawURL)
	h := fnv.New64a()
	_, _ = h.Write([]byte(holder)) // never fails
	return fmt.Sprintf("%s-holder-%016x", path, h.Sum64()), err
}
