package store

import (
	"fmt"
	"hash/fnv"
)

// Hold makes this process a holder of runs until release is called.
//
// On SQLite a job's open write transaction blocks every heartbeat, so that a lease can end while its holder works.
// There the sign of life is a lock on a file beside the database, which the kernel frees with the process. On a
// server it is the heartbeat alone, and Hold does nothing.
func (s *Store) Hold(h Holder) (release func(), err error) {
	if s.d != sqlite {
		return func() {}, nil
	}
	path, err := s.lifePath(h.Name)
	if err != nil {
		return nil, err
	}
	if release, err = lockFile(path); err != nil {
		return nil, fmt.Errorf("%w: sign of life beside the database: %w", ErrReadOnly, err)
	}
	return release, nil
}

// alive tells whether a holder shows its sign of life; always false where there is none but the heartbeat.
func (s *Store) alive(holder string) bool {
	if s.d != sqlite || holder == "" {
		return false
	}
	path, err := s.lifePath(holder)
	return err == nil && locked(path)
}

func (s *Store) lifePath(holder string) (string, error) {
	path, _, err := sqlitePath(s.url)
	h := fnv.New64a()
	_, _ = h.Write([]byte(holder)) // never fails
	return fmt.Sprintf("%s-holder-%016x", path, h.Sum64()), err
}
