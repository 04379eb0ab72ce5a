package tick_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
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

// The database answers each look for cancels after 7 s, or refuses one heartbeat. The leases are extended in time all the
// same: between two heartbeats that are recorded, less time passes than a lease lasts.
func TestLeaseIsExtendedBesideSlowLooks(t *testing.T) {
	const lease = 90 * time.Second
	for name, c := range map[string]struct {
		slow    time.Duration
		refused int // the number of the heartbeat
	}{"slow": {slow: 14 * time.Second}, "refused": {refused: 2}, "both": {slow: 7 * time.Second, refused: 2}} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { // an hour takes no time
				var mu sync.Mutex
				var beats []time.Time
				tried, looks := 0, 0
				var calls storetest.Calls
				calls.Before = func(call storetest.Call) error {
					switch {
					case strings.HasPrefix(call.SQL, "SELECT id, fence, cancel_at FROM"):
						mu.Lock()
						looks++
						mu.Unlock()
						time.Sleep(c.slow)
					case strings.Contains(call.SQL, "SET lease_until =") && call.Kind == storetest.Exec:
						mu.Lock()
						defer mu.Unlock()
						if tried++; tried == c.refused {
							return errors.New("broken by the test")
						}
						beats = append(beats, time.Now())
					}
					return nil
				}
				d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
				ticktest.Request(t, d, "job")
				beats = append(beats, time.Now())
				if _, err := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
					time.Sleep(time.Hour)
					return executor.Result{}, nil
				}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				beats = append(beats, time.Now())
				for i, at := range beats[1:] {
					if gap := at.Sub(beats[i]); gap >= lease {
						t.Errorf("no heartbeat for %s, after %d", gap, i)
					}
				}
				if len(beats) < 60 || looks < 60 {
					t.Errorf("%d heartbeats, %d looks for cancels", len(beats), looks)
				}
			})
		})
	}
}

// Heartbeats pass over a run whose row another session has locked. When the row is free, another heartbeat follows soon: the next
// one might come when the lease is over, and a pass would take the run away from a process that is alive.
func TestLeaseIsExtendedAfterALock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var locked atomic.Bool
		calls := storetest.Calls{Rewrite: func(text string) string { // SQLite has no locks of rows
			if locked.Load() && strings.HasPrefix(text, "SELECT id FROM dbjobs_runs WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id") {
				return text + " LIMIT 0"
			}
			return text
		}}
		d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		const lease, lock, soon = 90 * time.Second, 70 * time.Second, 5 * time.Second
		lasts := func(when string, want time.Duration) {
			if r := ticktest.LastRun(t, d, "job"); r.LeaseUntil.Sub(d.Clock.Now()) != want {
				t.Errorf("%s: the lease lasts for %s, want %s", when, r.LeaseUntil.Sub(d.Clock.Now()), want)
			}
		}
		if r, err := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			locked.Store(true)
			time.Sleep(lock)
			d.Clock.Add(lock)
			lasts("locked", lease-lock)
			locked.Store(false)
			time.Sleep(soon)
			lasts("free again", lease)
			return executor.Result{}, nil
		}).Run(t.Context()); err != nil || r.Succeeded != 1 {
			t.Errorf("%v: %+v", err, r)
		}
	})
}

// The last run of a pass ends during a heartbeat. That is no fault, so nothing is logged, which cron would mail.
func TestLeaseOfARunThatEndsDuringAHeartbeat(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var executing atomic.Bool
		calls := storetest.Calls{Before: func(call storetest.Call) error {
			if call.Kind == storetest.Begin && executing.Load() {
				time.Sleep(10 * time.Second)
			}
			return nil
		}}
		d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			executing.Store(true)
			time.Sleep(35 * time.Second)
			executing.Store(false)
			return executor.Result{}, nil
		})
		var log strings.Builder
		tk.Log = slog.New(slog.NewTextHandler(&log, nil))
		if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != 1 || log.Len() > 0 {
			t.Errorf("%v: %+v\n%s", err, r, &log)
		}
	})
}

// The database is away for ten minutes while a run executes. The log says so every half a minute, and not at each try.
func TestLeaseWhileTheDatabaseIsAway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var away atomic.Bool
		calls := storetest.Calls{Before: func(storetest.Call) error {
			if away.Load() {
				return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return nil
		}}
		d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Call("")}}}})
		ticktest.Request(t, d, "job")
		tk := ticktest.NewDoing(t, d, func(context.Context, executor.Request) (executor.Result, error) {
			away.Store(true)
			time.Sleep(10 * time.Minute)
			away.Store(false)
			return executor.Result{}, nil
		})
		var log strings.Builder
		tk.Log = slog.New(slog.NewTextHandler(&log, nil))
		if r, err := tk.Run(t.Context()); err != nil || r.Succeeded != 1 {
			t.Errorf("%v: %+v", err, r)
		}
		if n := strings.Count(log.String(), "msg=heartbeat"); n < 15 || n > 20 {
			t.Errorf("%d warnings in ten minutes\n%s", n, &log)
		}
	})
}

// A program has ended well while the server restarts, while its standby has not yet taken over, or while it is too slow for its own
// timeout: longer than a few tries take. Its end is recorded all the same, and it is not executed again.
func TestLeaseOutlivesARestart(t *testing.T) {
	t.Parallel()
	away := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	standby := map[string]error{
		"postgres": storetest.RefusedError{Err: &pgconn.PgError{Code: "25006", Message: "cannot execute UPDATE in a read-only transaction"}},
		"mariadb":  storetest.RefusedError{Err: &mysql.MySQLError{Number: 1290, Message: "running with the --read-only option"}},
	}
	proxy := map[string]error{ // as PgBouncer and ProxySQL tell it, whose connection to the client stays
		"postgres": storetest.RefusedError{Err: &pgconn.PgError{Code: "08P01", Message: "query_wait_timeout", Severity: "FATAL"}},
		"mariadb": storetest.RefusedError{Err: &mysql.MySQLError{Number: 9001, SQLState: [5]byte([]byte("HY000")),
			Message: "Max connect timeout reached while reaching hostgroup 0 after 10000ms"}},
	}
	slow := map[string]error{ // no fault of the row, and of no other kind
		"postgres": storetest.RefusedError{Err: &pgconn.PgError{Code: "57014", Message: "canceling statement due to statement timeout"}},
		"mariadb":  storetest.RefusedError{Err: &mysql.MySQLError{Number: 1969, Message: "Query execution was interrupted (max_statement_time exceeded)"}},
	}
	for name, failure := range map[string]func(engine string) error{
		"restart": func(string) error { return away },
		"standby": func(engine string) error { return standby[strings.Replace(engine, "mysql", "mariadb", 1)] },
		"proxy":   func(engine string) error { return proxy[strings.Replace(engine, "mysql", "mariadb", 1)] },
		"slow":    func(engine string) error { return slow[strings.Replace(engine, "mysql", "mariadb", 1)] },
	} {
		t.Run(name, func(t *testing.T) {
			ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
				var back atomic.Pointer[time.Time] // nil: the database is there
				var calls storetest.Calls
				calls.Before = func(call storetest.Call) error {
					if at := back.Load(); at != nil && time.Now().Before(*at) && call.Kind != storetest.Rollback {
						return failure(d.Engine)
					}
					return nil
				}
				steps := []store.Step{ticktest.Call("a"), ticktest.Call("b")}
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", MaxDeliveries: 1, Steps: steps}}})
				ticktest.Request(t, d, "job")
				tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
				executed := 0
				tk.Executors["doing"] = ticktest.Doing(func(context.Context, executor.Request) (executor.Result, error) {
					executed++
					at := time.Now().Add(3 * time.Second)
					back.Store(&at)
					return executor.Result{}, nil
				})
				_, err := tk.Run(t.Context())
				if got := ticktest.States(t, d, "job"); executed != 2 || !slices.Equal(got, []string{store.Succeeded}) {
					t.Errorf("executed %d times: %v; %v", executed, got, err)
				}
			})
		})
	}
}

// The database was away for longer than a lease, and a pass comes before the heartbeats of processes that live. It takes no run
// from them: they have another half a minute. A run whose process is dead is recovered after that.
func TestLeaseOutlivesAnOutage(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		names := []string{"lives", "dead"}
		var defs store.Definitions
		for _, name := range names {
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, MaxDeliveries: 1, Steps: []store.Step{ticktest.Call("")}})
		}
		ticktest.Apply(t, d, defs)
		for range 10 { // a trigger of each minute
			ticktest.DecideOnly(t, d)
			d.Clock.Add(time.Minute)
		}
		var alive []string
		for _, name := range names {
			ticktest.Request(t, d, name)
		}
		ticktest.DecideOnly(t, d)
		h := store.Holder{Name: "h", Lease: 90 * time.Second}
		tasks, err := d.Take(t.Context(), tick.OwnQueue, 2, h)
		if err != nil || len(tasks) != 2 {
			t.Fatal(err, tasks)
		}
		for i := range tasks {
			if tasks[i].Job.Name == "lives" {
				alive = append(alive, tasks[i].Run.ID)
			}
		}
		are := func(when, lives, dead string) {
			t.Helper()
			ticktest.DecideOnly(t, d)
			for name, want := range map[string]string{"lives": lives, "dead": dead} {
				if r := ticktest.LastRun(t, d, name); r.State != want || r.Fence != 1 {
					t.Errorf("%s: %s is %s, fence %d; want %s", when, name, r.State, r.Fence, want)
				}
			}
		}
		d.Clock.Add(5 * time.Minute)
		are("back again", store.Running, store.Running)
		d.Clock.Add(time.Second)
		are("another pass", store.Running, store.Running)
		d.Clock.Add(15 * time.Second)
		if signs, err := d.Heartbeat(t.Context(), alive, h); err != nil || !signs[alive[0]].Extended {
			t.Errorf("%v: %v", err, signs)
		}
		d.Clock.Add(30 * time.Second)
		are("later", store.Running, store.Lost)
	})
}

// The connection breaks between two steps, while the facts of the first are read for the second. That uses up no attempt.
func TestLeaseAgainBetweenSteps(t *testing.T) {
	ticktest.OnServers(t, func(t *testing.T, d *storetest.DB) {
		pass, broken := 0, 0
		var calls storetest.Calls
		calls.Before = func(call storetest.Call) error {
			if pass == 1 && strings.Contains(call.SQL, "GROUP BY e.step_name") {
				broken++
				return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
			}
			return nil
		}
		d.Exec(t, "CREATE TABLE effects (job varchar(20), n int, told varchar(500))")
		steps := []store.Step{ticktest.Step("ask", "SELECT 1 AS n"), note(d, false, "job", "${steps.ask.rows}")}
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: steps}}})
		ticktest.Request(t, d, "job")
		tk := ticktest.New(t, ticktest.OpenBeside(t, d, "", store.Options{Wrap: calls.Wrap}))
		for pass = 1; pass <= 2; pass++ {
			ticktest.Pass(t, tk)
			d.Clock.Add(10 * time.Second)
		}
		if got, want := noted(t, d, "job"), "succeeded | 1"; got != want || broken == 0 {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// away is an executor during which the database goes away, for good. No call is answered from then on.
type away struct{ gone atomic.Bool }

func (a *away) Execute(context.Context, executor.Request) (executor.Result, error) {
	a.gone.Store(true)
	return executor.Result{}, nil
}

// Where the database stays away for longer than the lease, another pass may have recovered the run: the pass does not say
// that the run still shows as running.
func TestRunWhoseLeaseIsOver(t *testing.T) {
	storetest.Needs(t, "sqlite") // any will do, and only SQLite works in a bubble
	for name, budget := range map[string]time.Duration{"its lease ends": 20 * time.Second, "and its lease is over": 0} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				x := &away{}
				calls := storetest.Calls{Before: func(storetest.Call) error {
					if x.gone.Load() {
						return store.ErrUnreachable
					}
					return nil
				}}
				d := storetest.Open(t, "sqlite", store.Options{Wrap: calls.Wrap})
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{{Executor: "away", Spec: []byte("{}")}}}}})
				ticktest.Request(t, d, "a")
				tk := ticktest.New(t, d.Store)
				tk.Executors["away"], tk.Budget = x, budget
				_, err := tk.Run(t.Context())
				if _, is := errors.AsType[*tick.UnendedError](err); !is || !strings.Contains(err.Error(), name) {
					t.Errorf("%v; want that %s", err, name)
				}
				x.gone.Store(false)
			})
		})
	}
}
