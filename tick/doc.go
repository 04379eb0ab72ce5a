// Package tick is one pass over the database: it decides what became due, executes what may run,
// and ends.
//
// Nothing of dbjobs stays resident. A trigger, such as cron, starts the program each minute. All
// that a pass knows, it reads from the database, and all that it has done is in the database before
// it ends.
//
// This page explains the words, follows one job through a pass, and names the locks and the crash
// windows. A name followed by a file, such as Tick.Run (tick/tick.go), is where to look; a test
// holds that all of them exist.
//
// # Words
//
//	schedule       a named recurrence rule with its time zone; many jobs may use one
//	job            what to do (its steps), when (its schedules), for whom (its owner), and its policies
//	nominal time   the instant at which a rule says that a job is due; it never changes, however late the job runs
//	run            the record of one nominal time, or of one request, that is to be executed
//	gap            the record of nominal times that were decided not to run: job, rule, (from, through], reason
//	step           one part of a job, such as a list of SQL statements; a run executes the steps in order
//	attempt        one try of one step
//	delivery       one handing of a run to a process that executes it; there is another one after a crash, and for each retry
//	fence          the number of a run's delivery; only the holder with the newest number may write to the run
//	lease          how long a delivery is valid without a heartbeat; then the run is delivered again, or lost
//	settled        an ended run is settled once the plan of its job counts it: last state, failures in a row
//	parked         a job that cannot be planned until its definition is repaired; the reason is in its plan
//	occurrence     the key of a run within its job, such as at:TIME or after:RUN; store/occurrence.go has all kinds
//	event          of a job: a run failed, recovered, was late or lost, times were missed, the job was parked or paused; of a trigger: it was silent
//	hook           the job that another one, or the host, names for an event; it has one run for each
//	need           a reason why a job needs a decision now, such as: it is due, it was edited, a run of it ended
//	heartbeat      the sign of life, every 30 s, by which a holder extends its leases; also a URL outside that learns of passes or runs
//	queue          a name; a process takes only the runs of the queues that it serves; a tick serves the queue tick
//	group          a cap on the runs that several jobs have under way at a time
//	plan           the one row of a job that the program keeps: when it is due next, what was decided so far
//	pass           what one call of Tick.Run (tick/tick.go) does
//
// # The pass
//
//	trigger ─> connect ─> probe: one statement reads the clock, the schema, pauses, and whether there is work
//	      ┌────────────────── until nothing is left, or the budget nears its end ──────────────────┐
//	 decide, for jobs that need it, in batches            execute, for runs that are queued
//	   ┌ lock their plans, skip locked ones      ┐          ┌ take runs: new fence, new lease        ┐
//	   │ read their definitions and open runs    │ one      └ COMMIT                                 ┘
//	   │ decide each job: a pure function        │ trans-   execute the steps, several runs at once
//	   │ write runs, gaps and plans in bulk      │ action   ┌ end the step, guarded by the fence     ┐
//	   └ COMMIT                                  ┘          └ COMMIT                                 ┘
//	 ─> delete old history ─> record the pass ─> report ─> exit
//
// A nominal time after the start of the pass, by the database's clock, is for the next pass. So a
// pass ends, however short the schedules are.
//
// # The life of a run
//
//	              ┌─────── retry, cut short, lease expired ──────┐
//	              v                     ┌── given back ──────────┤
//	              │                     v                        │
//	decided ─> waiting ───────────> queued ───────────────> running ────> succeeded ┐
//	           for its time         for a process that      has a fence   failed    │
//	           (jitter, back-off),  serves its queue        and a lease   cancelled ├─> settled ─> deleted
//	           an earlier run,                                            lost      ┘
//	           its group, or
//	           the end of a pause
//
// Only a decision moves a run from waiting to queued, so overlap, groups and pauses are checked in
// one place. A pause, or a request to cancel, takes a queued run back to waiting. A run may end as
// cancelled or failed before it was ever running. Where the lease has expired and an atomic step, the
// last one, is on record, the decision finds that the run has succeeded.
//
// # One due job, in nine stops
//
//  1. The program starts. main and cli.execute (cmd/dbjobs/main.go) read the command line; cobra
//     then calls what cli.tick (cmd/dbjobs/tick.go) has set. That is cli.pass (cmd/dbjobs/tick.go).
//     It leads to cli.openAndRun (cmd/dbjobs/tick.go), which opens the database with cli.openWithin
//     (cmd/dbjobs/database.go), by Open (store/store.go), and then calls Tick.Run (tick/tick.go).
//  2. Tick.begin (tick/begin.go) sends the first statement, Store.Probe (store/probe.go). It finds
//     that some plan is due: the earliest next_run is not after now.
//  3. pass.decideAndExecute (tick/tick.go) goes through the needs, Need (store/plan.go). For the need
//     Due, pass.decideOf (tick/needs.go) reads a page of ids of due jobs with Store.Next
//     (store/plan_next.go), without a lock.
//  4. pass.decidePage (tick/needs.go) calls Store.Decide (store/decide.go). In one transaction,
//     Store.readSnapshots (store/batch.go) locks the plans of the page and reads what the
//     decisions need: one Snapshot (store/plan.go) for each job.
//  5. Store.Decide calls pass.decideJob (tick/needs.go) for each Snapshot, and that calls Job
//     (tick/decide/decide.go), which turns it into a Decision (store/plan.go). Job is a pure
//     function. It asks the rules for nominal times with Rule.Prev and Rule.Next (rules/query.go);
//     decision.applyPolicies (tick/decide/occurrences.go) applies the policies to them, and
//     decision.admit (tick/decide/waiting_runs.go) queues the runs that may start.
//  6. writer.write (store/advance.go) writes all decisions of the page: the new run by insert_queued
//     (store/engine/sql/postgres/queries.sql), gaps by insert_gaps (store/engine/sql/queries.sql),
//     and the plan, with its next due time, by advance_due (store/engine/sql/queries.sql). Then comes
//     COMMIT. From here on the nominal time is decided, exactly once.
//  7. pass.takeAll (tick/workers.go) takes as many runs as may execute at once. If the last runs
//     were short, it also takes some that wait for a place: pass.takeInTurn (tick/queues.go) calls Store.Take
//     (store/take.go). The run becomes running, with a new fence and a lease. Nothing is executed
//     before this COMMIT has succeeded.
//  8. pass.start (tick/workers.go) lets the run wait for a place, and pass.fill (tick/workers.go)
//     gives it one with pass.enter (tick/ahead.go). There, pass.serve and pass.execute
//     (tick/workers.go) call pass.run (tick/work.go), which goes through the steps.
//     For each step, pass.attempt (tick/work.go) calls an executor, such as SQL.Execute
//     (tick/executor/sql.go), and pass.endStep (tick/work.go) records the end. The end of the run goes
//     through pass.recordLater (tick/record.go), or pass.together (tick/record.go) if it did not succeed, to
//     Store.EndSteps (store/step_ends.go), together with those of other runs; a next step or a retry goes to
//     Store.EndStep (store/step_end.go). An atomic step records its end inside its own transaction, with
//     Store.EndStepIn (store/step_end.go). If the run succeeds with this step, only the attempt is recorded there,
//     and the end of the run next, by Store.EndSteps. After the last step the run is succeeded.
//     Where Settlement (tick/decide/settlement.go) has found beforehand that the success of the run changes
//     nothing but the facts of its plan, its end settles it, too: Store.lockSettling (store/settlement.go); on PostgreSQL,
//     the statement finish_attempts (store/engine/sql/postgres/queries.sql) does this.
//  9. Otherwise the pass decides once more for jobs whose run ended: decision.settle
//     (tick/decide/ended_runs.go) counts the run in the job's plan, and makes a waiting run for each
//     job that runs after this one. Where that is an event with a hook, decision.raise
//     (tick/decide/hook.go) notes it, and Batch.raise (store/hook.go) makes the run of the hook.
//     pass.end (tick/tick.go) records the pass with Store.RecordTick (store/probe.go), and Tick
//     (cmd/internal/report/tick.go) prints the report.
//
// While a run executes or waits for a place, pass.beat (tick/heartbeat.go) extends its lease with
// Store.Heartbeat (store/work.go) and looks whether somebody wants the run cancelled. What waits
// when the pass ends is given back with Store.GiveBack (store/give_back.go).
//
// # Locks
//
// Always in this order, and within each kind by key:
//
//  1. plans, by Store.readSnapshots (store/batch.go). The lock of a plan is the right to decide for
//     its job.
//  2. groups, by Store.lockGroups (store/group.go), where the job shares a cap with others. A file that
//     has changed a cap takes this lock alone, after its COMMIT: Store.askAgain (store/group.go).
//  3. runs: those whose lease has expired, by Store.lockExpired (store/batch.go); then those that the
//     decision changes, by Store.lockMoved (store/decide.go).
//  4. definitions, to mark them as planned, by writer.writeRules (store/advance.go), and to remove
//     jobs that are done, by writer.writeDone (store/done.go), and the schedules of jobs that SQL has removed,
//     by writer.writeRemoved (store/done.go). Store.forget (store/forget.go) deletes
//     jobs that were removed long ago, with their plans. Store.Mark (store/mark.go) marks
//     schedules and pauses in a transaction of its own. A command that changes a definition in place,
//     such as Store.AlterJob (store/alter.go), locks its row and nothing before it; one that skips
//     times, Store.Skips (store/skip.go), locks the plan alone.
//
// An end that settles its run, Store.lockSettling (store/settlement.go), locks the plan after the run, and never waits for it.
//
// Plans, runs and definitions are locked with SKIP LOCKED: what another session holds is left to a
// later pass, because waiting for it would delay every job of the batch. Groups are waited for, and
// so is the row that a command changes. Taking a run, ending it,
// and a heartbeat lock runs only. Locks make a pass efficient. What makes it correct are conditions
// that hold without them: the version of a plan, the unique key (job, occurrence) of a run, and the
// fence.
//
// # Crash windows
//
// A process may die between any two statements. These are the places where that matters, and why
// nothing is lost or done twice:
//
//   - Around the COMMIT of a decision, Store.Decide (store/decide.go): either the plan has advanced
//     and the run exists, with the runs of hooks that this raises, or neither.
//   - Around the COMMIT of a silence, Store.Raise (store/hook.go): only the record of the pass ends
//     the silence, and the key of the hook's run makes it one. So a later pass may raise it again.
//   - After the COMMIT of a take, Store.Take (store/take.go): the run has a lease and no holder.
//     One heartbeat after the lease ended, decision.recoverExpired (tick/decide/ended_runs.go) lets
//     the run wait for a new delivery, or ends it as lost. A pass that lives, and had no answer to
//     that COMMIT, gives the run back: pass.recall (tick/queues.go).
//   - While the database is away for longer than a lease, Probe.Back (store/probe.go): no process could extend its leases. The
//     first pass of a trigger that came regularly lets them end one heartbeat later, spareLeases (store/batch.go).
//   - After a step took effect, before its end is recorded, Store.EndStep (store/step_end.go) and
//     Store.EndSteps (store/step_ends.go): the step runs again with the same run id. This is why
//     plain steps run at least once.
//   - Where the machine loses its power after a step took effect in the file of the ledger, sqliteJobConn.syncWithLedger
//     (store/engine/sqlite_sync.go): the effect is synced with its end, or both are gone, and the step runs again.
//   - Where a standby takes over without the COMMIT of a take: it gives the same fence to another process. So whatever ends a step or a
//     run compares the holder, too, Store.EndStep (store/step_end.go), and the first process learns that it holds the run no more.
//   - Around the COMMIT of an atomic step, database.atomic (tick/executor/atomic.go): the effect and the
//     record of its end commit together. This is why atomic steps take effect exactly once.
//   - After that COMMIT, before the end of the run is recorded, Store.EndStepIn (store/step_end.go): the attempt has
//     succeeded, and the run counts as running until its lease ends. Then decision.recoverExpired
//     (tick/decide/ended_runs.go) finds that the run has succeeded.
//   - Where a standby takes over without that COMMIT, Store.EndStep (store/step_end.go): the record of the attempt is gone with
//     the effect, so the run does not end, and is delivered again.
//   - Between the end of a run and the signal of its heartbeat, monitor.watch (tick/monitor.go): the service
//     hears nothing, and misses it.
//   - Between the last decision and the alarm for what is next, Tick.arm (tick/wake.go), and between a change and its
//     alarm, cli.ring (cmd/dbjobs/wake.go): the platform tries again, or the safety trigger comes.
//   - While a program runs, runGroup (tick/executor/process.go): a shell beside the tick, watch
//     (tick/executor/process_watch.go), kills its process group. The run is delivered again.
//   - Around the COMMIT of ends that settle their runs, Store.finishRuns (store/step_ends.go): the end, the run and the
//     plan go together. What could not be settled so is settled by a decision.
//   - Before an ended run is settled: the next pass settles it, decision.settle
//     (tick/decide/ended_runs.go).
//   - While history is deleted, Store.Prune (store/prune.go): a run is deleted together with its
//     attempts. What is left of a job that was removed long ago goes in one transaction, Store.forget
//     (store/forget.go). Other old records go by themselves, Store.Forget (store/forget.go).
//   - While a SQLite file is created, makePrivate (store/engine/sqlite.go): an empty file is a
//     database without tables.
//
// # Where things are
//
//	tick/tick.go      the pass, from the probe to its record; tick/begin.go has the probe, and what it refuses
//	tick/needs.go     the needs, in pages of jobs
//	tick/decide/      the decision for one job, and for groups of jobs that share a cap
//	tick/workers.go   taking runs; tick/ahead.go has what was taken ahead, tick/heartbeat.go extends the leases
//	tick/places.go    what the goroutines share in which runs execute; tick/budget.go has the deadlines
//	tick/wake.go      alarms for what is due next, instead of a trigger of each minute
//	tick/silence.go   the hook of the host for a trigger that was silent
//	tick/work.go      executing runs; tick/record.go records their ends together; tick/monitor.go tells their heartbeats
//	tick/executor/    what a step can do
//	tick/simulate/    the same decisions over a ledger in memory, under a virtual clock
//	tick/ticktest/    what the tests share; tick/crash/ and tick/load/ have those of faults, competition and size
//	store/doc.go      what the database holds, and where the text of a statement is
//	rules/doc.go      how a rule is read and answered
package tick
