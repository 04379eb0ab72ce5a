package tick_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// The output of an attempt is on record, in whichever way its end is recorded: with the ends of others, with the begin
// of the next step, with a retry, in the transaction of an atomic step, or as a failure. Characters that an engine
// could not keep are replaced there, and no password is there.
func TestOutputIsKeptWithTheAttempt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		told := func(step string, try int) string {
			return fmt.Sprintf("%s %d: \x00 \xff <&> 語\n\x1b postgres://u:verysecret@h/d\n", step, try)
		}
		tk := ticktest.NewDoing(t, d, func(ctx context.Context, r executor.Request) (executor.Result, error) {
			name := r.Task.StepAt(r.Task.Run.Step).Name
			res := executor.Result{Output: told(name, r.Task.Run.Attempt)}
			switch {
			case name == "silent":
				return executor.Result{}, nil
			case name == "fails", r.Task.Run.Attempt == 1:
				return res, errors.New("no")
			case name == "atomic":
				tx, err := d.SQL.BeginTx(ctx, nil)
				if err != nil {
					return res, err
				}
				defer func() { _ = tx.Rollback() }()
				if err := r.EndIn(ctx, tx, res); err != nil {
					return res, err
				}
				res.Ended = true
				return res, tx.Commit()
			}
			return res, nil
		})
		defs := store.Definitions{Jobs: []store.Job{
			{Name: "works", Steps: []store.Step{ticktest.Call("first"), ticktest.Call("atomic"), ticktest.Call("silent"), ticktest.Call("last")}},
			{Name: "fails", Steps: []store.Step{ticktest.Call("fails")}},
		}}
		for i := range defs.Jobs {
			defs.Jobs[i].Retry = store.Retry{Attempts: new(store.Attempts(2)), Backoff: new(store.Duration(time.Second)), Jitter: new(0)}
		}
		ticktest.Apply(t, d, defs)
		for _, j := range defs.Jobs {
			ticktest.Request(t, d, j.Name)
		}
		for range 5 {
			ticktest.Pass(t, tk)
			d.Clock.Add(time.Minute)
		}
		for job, want := range map[string][]string{
			"works": {"first 1 failed", "first 2 succeeded", "atomic 1 failed", "atomic 2 succeeded", "silent 1 succeeded", "last 1 failed", "last 2 succeeded"},
			"fails": {"fails 1 failed", "fails 2 failed"},
		} {
			tries := ticktest.LastRun(t, d, job).Tries
			if len(tries) != len(want) {
				t.Fatalf("%s: %+v", job, tries)
			}
			for i, a := range tries {
				text := strings.NewReplacer("\x00", "\uFFFD", "\xff", "\uFFFD", "verysecret", "[hidden]").Replace(told(a.StepName, a.Attempt))
				if a.StepName == "silent" {
					text = ""
				}
				if got := fmt.Sprintf("%s %d %s", a.StepName, a.Attempt, a.State); got != want[i] || a.Output != text {
					t.Errorf("%s: output %q, want %s: %q", got, a.Output, want[i], text)
				}
			}
		}
	})
}

// Outputs of any size, of any number of runs, are recorded by writes of a bounded size.
func TestOutputsOfManyRunsTogether(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		many := 30
		if d.Engine == "mariadb" { // by default, it takes at most 16 MB at once
			many = 190
		}
		text := strings.Repeat("\x01", 5*store.MostOutput) // six bytes each, in JSON
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{Output: text}, nil
		})
		tk.Concurrency = many
		var defs store.Definitions
		for i := range many {
			defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job ", i), Own: ticktest.Hourly("").Own, Steps: []store.Step{ticktest.Call("loud")}})
		}
		ticktest.Apply(t, d, defs)
		ticktest.DecideOnly(t, d)
		d.Clock.Add(time.Hour)
		ticktest.Pass(t, tk)
		if n := d.Int(t, fmt.Sprintf("SELECT count(*) FROM %s WHERE state = 'succeeded' AND length(output) BETWEEN 16000 AND %d", d.Table("attempts"), store.MostOutput)); n != many {
			t.Errorf("%d attempts with output, want %d", n, many)
		}
	})
}
