package ticktest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Step is a step of statements without arguments.
func Step(name string, statements ...string) store.Step {
	b, err := json.Marshal(executor.SQLSpec{SQL: executor.Texts(statements...)})
	if err != nil {
		panic(err)
	}
	return store.Step{Name: name, Executor: "sql", Spec: b}
}

// StepWith is a step of one statement with arguments.
func StepWith(atomic bool, statement string, args ...any) store.Step {
	one := []executor.Statement{{Text: statement, Args: args}}
	b, err := json.Marshal(executor.SQLSpec{SQL: one, Atomic: atomic})
	if err != nil {
		panic(err)
	}
	return store.Step{Executor: "sql", Spec: b}
}

// AtomicStep is a step whose statements are in one transaction with its end.
func AtomicStep(statements ...string) store.Step {
	b, err := json.Marshal(executor.SQLSpec{SQL: executor.Texts(statements...), Atomic: true})
	if err != nil {
		panic(err)
	}
	return store.Step{Executor: "sql", Spec: b}
}

// Nop is a step that does nothing and succeeds. It is for jobs of which only the policy matters. It
// needs no session, which on PostgreSQL costs more than all that a pass does for a run.
func Nop(name string) store.Step {
	return store.Step{Name: name, Executor: "nothing", Spec: json.RawMessage("{}")}
}

// EveryFiveMinutes is the schedule of most jobs here.
func EveryFiveMinutes() *store.Schedule { return &store.Schedule{Rule: "every 5m"} }

// Hourly is a job that is due on each hour since the epoch.
func Hourly(name string) store.Job {
	return store.Job{Name: name, Own: &store.Schedule{Rule: "every 1h"},
		Steps: []store.Step{Nop("")}}
}

// Grouped is a job of the group in the queue "another", which passes leave to workers.
func Grouped(name, group string, priority int) store.Job {
	return store.Job{Name: name, Group: group, Priority: priority, Queue: "another",
		Own: EveryFiveMinutes(), Steps: []store.Step{Nop("")}}
}

// Doing is an executor that does what the test wants. Its steps are those of Call.
type Doing func(context.Context, executor.Request) (executor.Result, error)

// Execute executes a step: see executor.Executor.
func (f Doing) Execute(ctx context.Context, r executor.Request) (executor.Result, error) {
	return f(ctx, r)
}

// Call is a step that Doing executes.
func Call(name string) store.Step {
	return store.Step{Name: name, Executor: "doing", Spec: json.RawMessage("{}")}
}

// NewDoing returns a tick that executes the steps of Call with f, and steps of SQL.
func NewDoing(t testing.TB, d *storetest.DB, f Doing) *tick.Tick {
	t.Helper()
	tk := New(t, d.Store)
	tk.Executors["doing"] = f
	return tk
}

// Nothing is an executor that does nothing. So a test measures only taking and finishing. Its steps
// are those of Nop.
type Nothing struct{}

// Execute executes a step: see executor.Executor.
func (Nothing) Execute(context.Context, executor.Request) (executor.Result, error) {
	return executor.Result{}, nil
}
