// Package crash has only tests: of passes that fail, freeze or die at any of their calls, of passes
// that compete for the same jobs and runs, and of what happens when a guard is missing.
//
//	every_test.go     a fault at each call of a course of passes: it must end as without the fault
//	wire_test.go      the same with connections that break below the driver
//	twin_test.go      the same without one of the guards; the harness must see the harm
//	orders_test.go    two processes on the same rows, with their calls in every order (turns_test.go) that can happen (search_test.go)
//	eight_test.go     eight processes over the same due jobs, with and without guards
//	frozen_test.go    a process that stands still beyond its lease, and goes on
//	pooler_test.go    several processes behind a pooler of connections
//	skip_test.go      somebody who skips times beside a pass that decides
//
// A course plays a scenario (scenario_test.go) in a world (world_test.go), by processes that tick (runner_test.go). Faults (fault_test.go)
// break it. It leaves a ledger (ledger_test.go).
package crash
