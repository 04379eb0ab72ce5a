// Package decide says what happens with the nominal times and the runs of a job.
//
// It is pure: its results follow from its arguments alone. It reads no clock, does no I/O and does not
// depend on the order of a map. So a decision can be repeated and tested without a database. Package
// store reads what a decision needs, and writes the result in the same transaction, under the lock of
// the job's plan.
//
// # One decision
//
// Job (tick/decide/decide.go) turns a Snapshot (store/plan.go) into a Decision (store/plan.go), in
// this order:
//
//  1. decision.settle (tick/decide/ended_runs.go) counts runs that have ended in the plan: last state,
//     failures in a row. It makes the runs of jobs that run after this one, and pauses the job
//     where on_error or pause_after_failures says so.
//  2. decision.recoverExpired (tick/decide/ended_runs.go) takes runs away from holders whose lease
//     has expired. Such a run is delivered again, or it is lost.
//  3. decision.readRules (tick/decide/active_rules.go) compares the rules of the last plan with
//     those of the definition. The times that an old rule still owed become a gap.
//  4. decision.checkDefinition (tick/decide/decide.go) parks a job whose definition cannot be used.
//  5. decision.occurrences (tick/decide/occurrences.go) decides the nominal times up to now. Each
//     of them becomes a run, or it lies in a gap that has a reason. decision.meet
//     (tick/decide/ended_runs.go) makes the runs of a job that runs after several jobs.
//  6. decision.admit (tick/decide/waiting_runs.go) queues waiting runs, as far as overlap and
//     pauses allow.
//  7. decision.next (tick/decide/decide.go) finds when the job needs a decision again.
//
// Any step may park the job, by decision.park (tick/decide/decide.go), which keeps the first reason: a
// rule may fail only when it is asked for times. Runs of such a job are still settled, recovered and
// queued, but no nominal time is decided until the cause is gone.
//
// Groups (tick/decide/group.go) completes the decisions of jobs that share a cap. It sees all of
// these jobs together, because one job must not take the place of another job whose turn it is.
//
// # Where things are
//
//	tick/decide/decide.go            one decision, step by step
//	tick/decide/ended_runs.go        runs that have ended, and runs whose lease has expired
//	tick/decide/active_rules.go      the job's rules, and what has changed in them
//	tick/decide/windows.go           the stretches of time in which nominal times are due
//	tick/decide/occurrences.go       the policies missed, overlap, max_runs and jitter
//	tick/decide/waiting_runs.go      which runs are queued, and which wait
//	tick/decide/pauses.go            pauses, and the instant up to which nominal times are decided
//	tick/decide/repeat_after.go      jobs that run some time after their last run has ended
//	tick/decide/retry_until_next.go  steps that are tried until the next occurrence
//	tick/decide/start_schedule.go    a start schedule becomes not_before
//	tick/decide/remove_when_done.go  jobs that are removed when nothing is left to do
//	tick/decide/skip.go              nominal times that somebody has skipped
//	tick/decide/hook.go              events, and the hooks that they raise
//	tick/decide/group.go             caps that jobs share
//	tick/decide/settlement.go        what the next decision would write if the run succeeds
//	tick/decide/attempt.go           what follows an attempt of a step
//	tick/decide/pass.go              what the decisions of one pass share; tick/decide/rule_cache.go keeps the rules
//	tick/decide/nominal.go           nominal times for tick/decide/backfill.go and tick/decide/forecast.go
//	tick/decide/model/               the same decisions written a second time, one nominal time after the other
package decide
