package tick_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Nobody waits for the record of a success. A run that was delivered again meanwhile is reported as delivered again,
// not as succeeded. It does not stop the other ends that are recorded with it.
func TestSuccessesRecordedLater(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		queued(t, d, 6)
		again := make(chan string, 1)
		again <- ""
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			if <-again == "" {
				d.Exec(t, "UPDATE "+d.Table("runs")+" SET fence = fence + 1 WHERE id = '"+r.Task.Run.ID+"'")
			}
			again <- r.Task.Run.ID
			return executor.Result{}, nil
		})
		tk.Concurrency, tk.Queues = 2, []string{"others"}
		r, err := tk.Work(t.Context())
		if err != nil || r.Started != 6 || r.Succeeded != 5 || r.Outdated != 1 {
			t.Fatalf("%v: %+v", err, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = '"+store.Succeeded+"'"); n != 5 {
			t.Errorf("%d runs have succeeded", n)
		}
	})
}

// The answer to the record of a success is lost, and comes so late that a heartbeat before it no longer finds the run. The run is
// reported as succeeded, and not as delivered again, also where no answer comes in time when the pass looks at the run.
func TestSuccessWhoseAnswerIsLost(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var executed, lost, looked atomic.Bool
		calls := storetest.Calls{After: func(c storetest.Call) error {
			if c.Kind != storetest.Commit || !executed.Load() || lost.Swap(true) {
				return nil
			}
			time.Sleep(15 * time.Second) // a heartbeat comes meanwhile
			return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}, Before: func(c storetest.Call) error {
			if !lost.Load() || !strings.Contains(c.SQL, "WHERE r.id >= ") || looked.Swap(true) {
				return nil
			}
			return context.DeadlineExceeded
		}}
		d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			time.Sleep(20 * time.Second)
			executed.Store(true)
			return executor.Result{}, nil
		})
		if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != 1 || r.Outdated != 0 || !looked.Load() {
			t.Errorf("looked %t, %v: %+v", looked.Load(), err, r)
		}
	})
}

// The answer to the record of a success is lost, and the database is away for longer than the lease. When the pass ends, it looks
// once more at the run, which has succeeded: it does not tell that the end is not recorded.
func TestSuccessWhoseAnswerIsLostForLong(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var executed, lost, away atomic.Bool
		calls := storetest.Calls{After: func(c storetest.Call) error {
			if c.Kind != storetest.Commit || !executed.Load() || lost.Swap(true) {
				return nil
			}
			away.Store(true)
			time.AfterFunc(10*time.Minute, func() { away.Store(false) })
			return store.ErrUnreachable
		}, Before: func(storetest.Call) error {
			if away.Load() {
				return store.ErrUnreachable
			}
			return nil
		}}
		d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "short", Steps: []store.Step{ticktest.Call("")}}, {Name: "long", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "short")
		ticktest.Request(t, d, "long")
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			if r.Task.Job.Name == "long" {
				time.Sleep(20 * time.Minute)
			}
			executed.Store(true)
			return executor.Result{}, nil
		})
		tk.Concurrency = 2
		r, err := tk.Run(t.Context()) // it says that the database was out of reach when it looked for more runs
		if unended, is := errors.AsType[*tick.UnendedError](err); is || r.Succeeded != 2 || !lost.Load() {
			t.Errorf("%v, %v: %+v", unended, err, r)
		}
	})
}

// The same, after another run whose end is really not on record: the pass names only that one, and looks at the next one.
func TestSuccessWhoseAnswerIsLostBehindARunThatIsOpen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var executed, lost, away, open atomic.Bool
		var id string
		calls := storetest.Calls{After: func(c storetest.Call) error {
			if c.Kind != storetest.Commit || !executed.Load() || lost.Swap(true) {
				return nil
			}
			away.Store(true)
			time.AfterFunc(10*time.Minute, func() { away.Store(false); open.Store(false) })
			return store.ErrUnreachable
		}, Before: func(c storetest.Call) error {
			if away.Load() || open.Load() && strings.Contains(fmt.Sprint(c.Args), id) {
				return store.ErrUnreachable
			}
			return nil
		}}
		d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
		takes := map[string]time.Duration{"open": time.Second, "short": 3 * time.Second, "long": 20 * time.Minute}
		for _, name := range []string{"open", "short", "long"} {
			ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: name, Steps: []store.Step{ticktest.Call("")}}}})
			ticktest.Request(t, d, name)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "open"})
		if err != nil {
			t.Fatal(err)
		}
		id = runs[0].ID
		tk := ticktest.NewDoing(t, d, func(_ context.Context, r executor.Request) (executor.Result, error) {
			time.Sleep(takes[r.Task.Job.Name])
			switch r.Task.Job.Name {
			case "open":
				open.Store(true)
			case "short":
				executed.Store(true)
			}
			return executor.Result{}, nil
		})
		tk.Concurrency = len(takes)
		r, err := tk.Run(t.Context())
		if r.Succeeded != 2 || !lost.Load() || err == nil || strings.Count(err.Error(), "its lease is over") != 1 || !strings.Contains(err.Error(), "run "+id) {
			t.Errorf("run %s is open: %v: %+v", id, err, r)
		}
	})
}

// The server limits the size of a statement, such as by max_allowed_packet. Ends that together are too large are recorded in
// several statements, and their runs are not executed again.
func TestEndsTooLargeForOneStatement(t *testing.T) {
	tooLarge := map[string]error{
		"postgres": storetest.RefusedError{Err: &pgconn.PgError{Code: "54000", Message: "out of memory"}},
		"mariadb":  storetest.RefusedError{Err: &mysql.MySQLError{Number: 1153, Message: "Got a packet bigger than 'max_allowed_packet' bytes"}},
	}
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		const runs, most = 12, 3 * store.MostOutput
		queued(t, d, runs)
		var calls storetest.Calls
		calls.Before = func(call storetest.Call) error {
			if size(call.Args) > most {
				return tooLarge[d.Engine]
			}
			return nil
		}
		tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
		tk.Executors["doing"] = ticktest.Doing(func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{Output: strings.Repeat("\"", store.MostOutput)}, nil
		})
		tk.Queues = []string{"others"}
		if r, err := tk.Work(t.Context()); err != nil || r.Succeeded != runs {
			t.Fatalf("%v: %+v", err, r)
		}
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")+" WHERE state = '"+store.Succeeded+"'"); n != runs {
			t.Errorf("%d attempts have succeeded", n)
		}
	})
}

// size is that of the texts among the arguments of a statement.
func size(args []driver.NamedValue) (n int) {
	for _, a := range args {
		if text, is := a.Value.(string); is {
			n += len(text)
		}
	}
	return n
}
