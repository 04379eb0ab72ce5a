//go:build unix

package main

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
)

// pgcron is PostgreSQL with the extension pg_cron, beside which dbjobs is measured. An extension is found
// only where its server is, so both are of the same packages.
var pgcron = &engine{
	parcel: parcel{
		name:        "pgcron",
		title:       "PostgreSQL with pg_cron",
		env:         "DBJOBS_TEST_PGCRON",
		advice:      "install both (Debian: apt-get install postgresql-15-cron), or measure without it: make bench PEERS=",
		metapackage: "postgresql-15-cron",
		packages:    regexp.MustCompile(`^(postgresql-\d+(-cron)?|lib.*)$`),
	},
	schemes:   postgres.schemes,
	query:     postgres.query,
	usualPort: postgres.usualPort,
	minimum:   postgres.minimum,
	find: func(root string) []installation {
		return slices.DeleteFunc(findPostgres(root), func(i installation) bool {
			library, _ := filepath.Glob(filepath.Join(filepath.Dir(i.server), "..", "lib", "pg_cron.so")) // the pattern is well-formed
			return len(library) == 0
		})
	},
	mark: postgres.mark,
	init: func(ctx context.Context, s *server) error {
		if err := initPostgres(ctx, s); err != nil {
			return err
		}
		argv := slices.Concat([]string{s.inst.server, "--single", "-D", s.data(), "-F"}, pgcronArgs(s), []string{"-c", "exit_on_error=true", database})
		return s.run(ctx, "CREATE EXTENSION pg_cron\nGRANT USAGE ON SCHEMA cron TO "+account+"\nGRANT ALL ON ALL TABLES IN SCHEMA cron TO "+account+"\n", argv...)
	},
	args:  func(s *server) []string { return append(postgresArgs(s), pgcronArgs(s)...) },
	ready: postgresReady,
	forks: postgres.forks,
	stop:  postgres.stop,
}

// pgcronArgs let the extension connect by the socket, where no password is asked for.
func pgcronArgs(s *server) []string {
	return []string{"-c", "shared_preload_libraries=pg_cron", "-c", "cron.database_name=" + database, "-c", "cron.host=" + s.dir}
}
