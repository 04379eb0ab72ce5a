// Bench measures the program, built as it is released, beside its peers, and prints tables of ratios:
//
//	make bench                             all tables, some minutes
//	make bench BENCH=noop,due              some tables
//	make bench BENCH=due JOBS=10000        another number of jobs due at one instant
//	make bench BENCHFLAGS='-rounds 3'      other flags: scripts/bench/main.go has them all
//	make bench PEERS=                      without pg_cron, where there is no package of it
//
// In each round every contender runs once, in turn, so that other work of the machine affects all of them. A row
// has the median of the rounds, the least and the greatest, and the ratio of the medians to the row with which it
// is compared. Absolute times depend on the machine and its load: compare ratios within one table.
//
// The servers are those of scripts/testservers, which do not wait for disks. All contenders of a table
// use the same server, by TCP and with a password.
//
// # How a peer is measured
//
// The program is measured as a trigger starts it: the whole process, from its start to its end. A
// resident peer, such as River, is started and connected before its time begins, and its time ends when
// the last job's row is there and all jobs are on record as done.
//
//	River            as its own benchmark sets it: FetchCooldown 2 ms, FetchPollInterval 20 ms, 1,000 workers,
//	                 16 connections; completed in batches, which is its default
//	River, defaults  100 workers, as in its documentation, and pgx's default pool
//	graphile-worker  as its page on performance sets it: 24 jobs at a time, a local queue of 500,
//	                 completions in batches
//	pg_cron          each job "* * * * *", from the full minute, with the settings that it comes with. Its
//	                 sessions come by the socket, without a password; its server is one of its own
//	MariaDB's events one event for each job, all from one instant
//	plain SQL        one connection that takes, executes and ends run after run, by the statements for
//	                 workers in store/README.md
//	set-based SQL    one statement that does by SQL what deciding does: runs for all due plans, and the
//	                 plans advanced. It reads no rules and no policies
//
// SQL by hand is no peer. It shows what the records of such a minute cost, and the jobs themselves, without the
// parts that make them safe.
//
// Only this module depends on River and the modules that River needs: the program's go.mod does not know them.
// graphile-worker is fetched with npm. A peer that is not found is named below its table.
package main
