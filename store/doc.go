// Package store is the database: the only package that sends dbjobs' own SQL.
//
// There is one Store (store/store.go) for all engines. What differs between engines has a room of
// its own, store/engine, with the schema and all statements.
//
// The words (plan, run, gap, fence, lease, ...) are explained in tick/doc.go, which also follows
// one job from the trigger to the recorded run, and gives the order of locks.
//
// # What the tables hold
//
// There are three kinds of tables. Each column is explained in the schema, such as
// store/engine/sql/postgres/schema/0001_tables.sql. Besides them, the one row of the table
// installation has the version of the schema.
//
//	definitions   schedules, calendars, jobs, steps, job_schedules, job_after, groups, pauses
//	              written by people: commands, apply, plain SQL; the program writes planned, calendar_version and parked,
//	              pauses a job after failures, and removes jobs that are done, or were removed long ago, and pauses that are over
//	plans         plans, plan_rules, group_plans, job_ends
//	              written by the program, while it has the lock of the job's plan
//	ledger        runs, attempts, gaps, changes, ticks
//	              written by the program; a worker in any language may update the run that it holds
//
// No foreign key leads from plans or ledger to definitions: a definition may go while its history
// stays.
//
// # How an edit is noticed
//
// People may edit definitions with plain SQL, and no trigger is installed. Two columns make edits
// visible:
//
//   - plan_input is computed by the database from all columns that a decision depends on.
//   - planned is the value of plan_input from which the job was last planned. The program writes
//     it.
//
// Rows of job_schedules and job_after have no plan_input: planned is the id that they lead to.
//
// A calendar is one row, with its days as a text, so that each edit of it changes plan_input.
// Store.SeeCalendars (store/calendar_edit.go) gives the calendar's version to the schedules that name it,
// and that makes these stale. Plans contain the days, so a decision reads no calendar, but for a
// schedule that may have changed. Where it reads other days than those of the version, the next pass
// gives the version again: writer.seeAgain (store/calendar_edit.go).
//
// A partial index finds the rows where the two differ: the needs need_job, need_link, need_schedule
// and need_pause of Need (store/plan.go). The next pass decides for the jobs of those rows, and
// then sets planned to the plan_input that it has read: writer.writeRules (store/advance.go) for
// jobs and their links, Store.Mark (store/mark.go) for schedules and pauses. What was due before
// the edit is judged by the old policies: readPlanned (store/planned.go) reads them back from planned.
// Therefore a change of the expression of plan_input makes all jobs stale once.
//
// # Where the text of a statement is
//
// Go code names a statement: tx.Query(ctx, "batch_plans", ...). runner.prepare
// (store/engine/run.go) looks it up. Its translated text is in store/engine/testdata, one file for
// each engine. To find its source:
//
//  1. store/engine/sql/queries.sql has the statements that all engines share, each after a line
//     "-- name: batch_plans".
//  2. store/engine/sql/postgres/queries.sql (or mysql, sqlite) has those that an engine needs in
//     other words. A statement there replaces the shared one of the same name.
//  3. Statements.translate (store/engine/statement.go) expands macros such as @now and @skip, which
//     are the engine's (as in store/engine/postgres.go), in the variable shared
//     (store/engine/shared.go) or in the variable words (store/store.go), and replaces
//     dbjobs.NAME by the engine's name of the table, and :name by the engine's placeholder. It also
//     removes comments, and writes pg_catalog. before functions on PostgreSQL.
//  4. statement.bind (store/engine/statement.go) puts the arguments in order. On MySQL and MariaDB
//     it writes a list with one ? for each value; on PostgreSQL a list is the text of an array.
//
// Views and routines are in the folders views and routines beside these files: see engine.Repeatable. A line of a routine that
// names a policy, as by @column, stands for one line for each policy: see eachPolicy (store/policy_routine.go).
//
// # Where things are
//
//	engine/                            engines, their SQL, transactions, trying again, errors
//	store.go                           opening, and what is asked of the engine
//	plan.go, decide.go, batch.go       which jobs need a decision; reading what a decision needs
//	passed_over.go                     jobs that wait, because another session has locked something
//	open_runs.go                       of them, the runs, also of a job for which many wait
//	advance.go, mark.go, planned.go    writing decisions; marking definitions as planned
//	take.go, give_back.go, work.go     delivering runs, taking that back, heartbeats
//	step_end.go, step_ends.go          ending steps and runs, by themselves and together
//	settlement.go                      settling a run with its end, where no decision is needed
//	output.go, step_facts.go           what attempts tell, and what later steps read of that
//	hook.go                            events of jobs, and the runs that they make
//	after.go, ends.go                  which jobs run after which; ends of runs that wait for those of other jobs
//	apply.go and apply_*.go, change.go writing definitions, in batches, with the change log
//	alter.go, rename.go,
//	remove_schedule.go                 changing one definition in place
//	skip.go                            nominal times to come that are not to run
//	read.go, schedule_read.go          reading definitions
//	ledger_read.go, state.go           reading for commands
//	migrate.go                         the schema and its version
//	secret/                            keeping passwords out of errors and records
//	storetest/                         running a test on each engine
package store
