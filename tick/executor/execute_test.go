package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

var errStop = errors.New("stopped by the test")

// anything is a host where only the tick's own user writes definitions.
var anything = &executor.Host{Own: true}

// execute runs a program as a step of a job of ann.
func execute(ctx context.Context, t *testing.T, h *executor.Host, kind string, spec executor.ProgramSpec) (executor.Result, error) {
	t.Helper()
	return executeWithin(ctx, t, h, kind, spec, 0)
}

// executeWithin does the same, in an attempt that may not take longer than most.
func executeWithin(ctx context.Context, t *testing.T, h *executor.Host, kind string, spec executor.ProgramSpec, most time.Duration) (executor.Result, error) {
	t.Helper()
	x, err := executor.KindOf(kind).Open(nil, h)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	task := &store.Task{Job: store.Job{Name: "dump", Owner: "ann"}}
	task.Run = store.Run{ID: "0a1b", Job: "dump", Owner: "ann", Attempt: 2, Fence: 7, Args: `{"day": "1; touch x", "n": 3}`, ScheduledFor: time.Date(2026, 1, 5, 8, 5, 0, 0, time.UTC)}
	return x.Execute(ctx, executor.Request{Task: task, Spec: raw, Most: most})
}
