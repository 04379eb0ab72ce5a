package executor_test

import (
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// A shell would read a part of some names itself, also within double quotes.
func TestTheCommandForAFactThatIsNotKept(t *testing.T) {
	t.Parallel()
	const name = "load $HOME"
	task := &store.Task{Job: store.Job{Steps: []store.Step{{Name: name}}}, Steps: map[string]store.StepFacts{name: {Result: map[string]any{}}}}
	_, err := executor.Expand("${steps."+name+".row.n}", executor.Facts(task))
	if err == nil || !strings.Contains(err.Error(), "--from-step 'load $HOME'`") {
		t.Error(err)
	}
}
