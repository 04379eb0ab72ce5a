package main

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// taking are ways to take a run as worker n: the routine, the statements of the page, and a lock in the worker's own
// transaction.
func taking(t *testing.T, engine string) map[string]func(db *sql.DB, n int) (string, error) {
	page := readWorkerSQL(t, engine)
	isPostgres := storetest.Dialect(engine) == "postgres"
	call, find, take := "CALL dbjobs_take('reports', '%d', NULL)", "SELECT id FROM dbjobs_runs WHERE queued_in = 'reports' ORDER BY urgency, ready_at, id LIMIT 1 FOR UPDATE SKIP LOCKED",
		"UPDATE dbjobs_runs SET state = 'running', fence = fence + 1, attempt = attempt + 1, attempts = attempts + 1, holder = 'w', started_at = coalesce(started_at, utc_timestamp(6)), lease_until = utc_timestamp(6) + interval 10 minute WHERE id = '%s'"
	if isPostgres {
		call, find = "SELECT * FROM dbjobs.take('reports', '%d')", "SELECT id FROM dbjobs.runs WHERE state = 'queued' AND queue = 'reports' ORDER BY priority DESC, ready_at, id LIMIT 1 FOR UPDATE SKIP LOCKED"
		take = "UPDATE dbjobs.runs SET state = 'running', fence = fence + 1, attempt = attempt + 1, attempts = attempts + 1, holder = 'w', started_at = coalesce(started_at, now()), lease_until = now() + interval '10 minutes' WHERE id = '%s'"
	}
	return map[string]func(db *sql.DB, n int) (string, error){
		"take": func(db *sql.DB, n int) (id string, err error) {
			rest := make([]any, 7)
			for i := range rest {
				rest[i] = new(any)
			}
			return id, db.QueryRow(fmt.Sprintf(call, n)).Scan(append([]any{&id}, rest...)...)
		},
		"UPDATE": func(db *sql.DB, n int) (string, error) {
			id, _, err := page.as(n).one(db)
			return id, err
		},
		"FOR UPDATE": func(db *sql.DB, _ int) (id string, err error) {
			tx, err := db.Begin()
			if err != nil {
				return "", err
			}
			defer func() { _ = tx.Rollback() }() // after Commit it does nothing
			if err := tx.QueryRow(find).Scan(&id); err != nil {
				return "", err
			}
			if _, err := tx.Exec(fmt.Sprintf(take, id)); err != nil {
				return "", err
			}
			return id, tx.Commit()
		},
	}
}

// TestEightWorkersTakeByRoutine: each run goes to one of eight workers that call take. While there is a run, every call
// gets one, and the statement in take reads no more than it takes. With DBJOBS_PROVE there are 10,000 runs, and the
// times of other ways are logged.
func TestEightWorkersTakeByRoutine(t *testing.T) {
	const workers = 8
	queued, ways := 400, []string{"take"}
	if prove.Whole() {
		queued, ways = 10_000, []string{"UPDATE", "FOR UPDATE", "take", "UPDATE", "FOR UPDATE", "take"}
	}
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			for _, way := range ways {
				d := storetest.Open(t, engine, store.Options{Clock: time.Now})
				if err := routine("create_job", "report", "SELECT 1", nil, `{"queue": "reports"}`).on(d); err != nil {
					t.Fatal(err)
				}
				many(t, d, queued, queued)
				d.SQL.SetMaxIdleConns(workers)
				one := taking(t, engine)[way]
				var mu sync.Mutex
				takers, misses := map[string]int{}, 0
				var wait sync.WaitGroup
				began := time.Now()
				for n := range workers {
					wait.Go(func() {
						for {
							id, err := one(d.SQL, n+1)
							mu.Lock()
							left := queued - len(takers)
							if err == nil {
								takers[id]++
							} else if errors.Is(err, sql.ErrNoRows) && left > workers {
								misses++
							}
							mu.Unlock()
							switch {
							case err == nil, d.Transient(err):
							case errors.Is(err, sql.ErrNoRows) && left == 0:
								return
							case !errors.Is(err, sql.ErrNoRows):
								t.Error(err)
								return
							}
						}
					})
				}
				wait.Wait()
				t.Logf("%-10s %d runs in %v", way, queued, time.Since(began).Round(time.Millisecond))
				if way != "take" {
					continue
				}
				twice := 0
				for _, n := range takers {
					twice += n - 1
				}
				if len(takers) != queued || twice > 0 || misses > 0 {
					t.Errorf("%d of %d runs were taken, %d once more; %d times a worker found none while there was one", len(takers), queued, twice, misses)
				}
			}
		})
	}
}

// TestTakeReadsNoMoreThanItTakes: the statements of take find the run through the index of queued runs, in its order.
func TestTakeReadsNoMoreThanItTakes(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			if err := routine("create_job", "report", "SELECT 1", nil, `{"queue": "reports"}`).on(d); err != nil {
				t.Fatal(err)
			}
			many(t, d, 400, 4000)
			first := "SELECT q.id FROM dbjobs_runs q FORCE INDEX (runs_queued) WHERE q.queued_in = 'reports'%s ORDER BY q.urgency, q.ready_at, q.id LIMIT 1%s"
			statements, want := []string{ // a candidate, the next candidate, its lock, and all in one
				fmt.Sprintf(first, "", ""), fmt.Sprintf(first, " AND (q.urgency > -1 OR q.urgency = -1 AND (q.ready_at > '2026-01-01' OR q.ready_at = '2026-01-01' AND q.id > 'a'))", ""),
				fmt.Sprintf(first, " AND q.urgency = -1 AND q.ready_at = '2026-01-01' AND q.id = 'a'", " FOR UPDATE SKIP LOCKED"), fmt.Sprintf(first, "", " FOR UPDATE SKIP LOCKED"),
			}, ` runs_queued `
			if storetest.Dialect(engine) == "postgres" {
				statements, want = []string{"SELECT q.id FROM dbjobs.runs q WHERE q.state = 'queued' AND q.queue = 'reports' ORDER BY q.priority DESC, q.ready_at, q.id LIMIT 1 FOR UPDATE SKIP LOCKED"}, `using runs_queued on runs`
			}
			for _, st := range statements {
				if plan := planOf(t, d, st); !regexp.MustCompile(want).MatchString(plan) || regexp.MustCompile(`Sort|filesort|Seq Scan`).MatchString(plan) {
					t.Errorf("%s\n%s\nwant %s, and nothing sorted", st, plan, want)
				}
			}
		})
	}
}

// TestRoutinesReadOnlyTheirRun: a routine that gets a run finds it by its key, however many runs there are.
func TestRoutinesReadOnlyTheirRun(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			if storetest.Dialect(engine) != "mariadb" {
				t.Skip("the server does not count what a session reads")
			}
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			if err := routine("create_job", "report", "SELECT 1", nil, `{"queue": "reports"}`).on(d); err != nil {
				t.Fatal(err)
			}
			many(t, d, 400, 4000)
			id := func(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }
			d.Exec(t, "UPDATE dbjobs_runs SET number = 7, state = 'failed', settled_at = created_at WHERE id = '"+id(1)+"'")
			d.Exec(t, "UPDATE dbjobs_runs SET state = 'running', fence = 1, lease_until = ready_at WHERE id = '"+id(2)+"'")
			session, err := d.SQL.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			read := func() (sum int) {
				const counters = "SELECT SUM(variable_value) FROM %s.session_status WHERE variable_name LIKE 'Handler_read%%'"
				from := map[bool]string{false: "information_schema", true: "performance_schema"}[engine == "mysql"]
				if err := session.QueryRowContext(t.Context(), fmt.Sprintf(counters, from)).Scan(&sum); err != nil {
					t.Fatal(err)
				}
				return sum
			}
			nothing := read()
			nothing = read() - nothing
			ends := func(final string) call {
				return routine("end_own", id(2), 1, 1, final, 1, "step 1", "h", 1, 0, 0, "", "", "", "")
			}
			for _, c := range []call{
				routine("retry", id(1)), routine("cancel", id(1)), routine("cancel", "report#7"), routine("cancel", strings.ToUpper("report#"+id(3))), routine("run_now", "report", nil, nil, "key"),
				routine("extend", id(2), 1), routine("holds_own", id(2), 1), ends(store.Succeeded), ends(store.Failed), routine("finish", id(2), 1),
			} {
				before := read()
				text, args := c.text(engine)
				if _, err := session.ExecContext(t.Context(), text, args...); err != nil {
					t.Fatal(c, err)
				}
				if n := read() - before - nothing; n > 400 {
					t.Errorf("%v reads %d rows", c, n)
				}
			}
		})
	}
}

// TestTakePassesOverWhatIsLocked: the runs that another session has locked stay queued, and take takes the next one.
func TestTakePassesOverWhatIsLocked(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			if err := routine("create_job", "report", "SELECT 1", nil, `{"queue": "reports"}`).on(d); err != nil {
				t.Fatal(err)
			}
			many(t, d, 20, 20)
			inOrder := "SELECT id FROM " + d.Table("runs") + " WHERE state = 'queued' AND queue = 'reports' ORDER BY priority DESC, ready_at, id LIMIT 1 OFFSET "
			id := func(place int) (value string) {
				if err := d.SQL.QueryRow(inOrder + fmt.Sprint(place)).Scan(&value); err != nil {
					t.Fatal(err)
				}
				return value
			}
			other, err := d.SQL.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = other.Rollback() }()
			for place := range 6 { // two priorities
				if _, err := other.Exec("SELECT id FROM " + d.Table("runs") + " WHERE id = '" + id(place) + "' FOR UPDATE"); err != nil {
					t.Fatal(err)
				}
			}
			for n, place := range []int{6, 6, 0} { // a run that was taken is no longer in its place
				if n == 2 {
					if err := other.Rollback(); err != nil {
						t.Fatal(err)
					}
				}
				want := id(place)
				if got, err := taking(t, engine)["take"](d.SQL, 1); got != want || err != nil {
					t.Errorf("take %d: %q, %v; want %q", n, got, err, want)
				}
			}
		})
	}
}

// TestTakeTriesAgainAfterADeadlock: take may get into a deadlock with a session that locks more than one run. If it
// loses, and the transaction is its own, it tries again.
func TestTakeTriesAgainAfterADeadlock(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			if engine != "mysql" {
				t.Skip("take locks one row on PostgreSQL; MariaDB shows its routines no deadlock that is met while a row is written")
			}
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			if err := routine("create_job", "report", "SELECT 1", nil, `{"queue": "reports"}`).on(d); err != nil {
				t.Fatal(err)
			}
			many(t, d, 20, 200)
			other, err := d.SQL.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = other.Rollback() }() // after Commit it does nothing
			// While this is locked, take cannot move its run to the runs that are not queued.
			if _, err := other.Exec("SELECT id FROM dbjobs_runs FORCE INDEX (runs_queued) WHERE queued_in IS NULL FOR UPDATE"); err != nil {
				t.Fatal(err)
			}
			type answer struct {
				id  string
				err error
			}
			taken := make(chan answer)
			go func() {
				id, err := taking(t, engine)["take"](d.SQL, 1)
				taken <- answer{id, err}
			}()
			for d.Int(t, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'UPDATE dbjobs_runs r SET%'") == 0 {
				time.Sleep(5 * time.Millisecond)
			}
			// This waits for take, and take waits for this, which has locked fewer rows.
			if _, err := other.Exec("UPDATE dbjobs_runs SET priority = priority + 1 WHERE queued_in = 'reports' ORDER BY urgency, ready_at, id LIMIT 1"); err != nil {
				t.Fatal(err)
			}
			if err := other.Commit(); err != nil {
				t.Fatal(err)
			}
			if got := <-taken; got.err != nil || got.id == "" {
				t.Errorf("took %q, %v", got.id, got.err)
			}
		})
	}
}

// TestTakeKeepsTheTransactionOfItsCaller: within a transaction, take neither commits the transaction nor rolls it back,
// also if it refuses. On PostgreSQL, a statement can do neither.
func TestTakeKeepsTheTransactionOfItsCaller(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			if storetest.Dialect(engine) != "mariadb" {
				t.Skip("a function is in the statement of its caller")
			}
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			if err := routine("create_job", "report", "SELECT 1", nil, `{"queue": "reports"}`).on(d); err != nil {
				t.Fatal(err)
			}
			many(t, d, 5, 5)
			for _, begin := range []string{"BEGIN", "SET autocommit = 0"} {
				for _, end := range []string{"ROLLBACK", "COMMIT"} {
					d.Exec(t, "UPDATE dbjobs_runs SET state = 'queued' WHERE state = 'running'")
					c, err := d.SQL.Conn(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for _, st := range []string{begin, "CALL dbjobs_take('reports', 'me', NULL)", "CALL dbjobs_take('nothing', 'me', NULL)", "CALL dbjobs_take('reports', 'me', -1)", end, "SET autocommit = 1"} {
						if _, err := c.ExecContext(t.Context(), st); err != nil && !strings.Contains(st, "-1") {
							t.Fatalf("%s: %v", st, err)
						}
					}
					_ = c.Close()
					if n, want := d.Int(t, "SELECT COUNT(*) FROM dbjobs_runs WHERE state = 'running'"), map[string]int{"ROLLBACK": 0, "COMMIT": 1}[end]; n != want {
						t.Errorf("%s … %s: %d runs are taken, want %d", begin, end, n, want)
					}
				}
			}
		})
	}
}

// TestTakeHeedsAFreeze: in a freeze no pass takes queued runs back, so take gives none of them away.
func TestTakeHeedsAFreeze(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			do := func(name string, args ...any) {
				t.Helper()
				if err := routine(name, args...).on(d); err != nil {
					t.Fatal(err)
				}
			}
			do("create_job", "report", "SELECT 1", nil, `{"queue": "reports"}`)
			many(t, d, 1, 1)
			take := taking(t, engine)["take"]
			do("pause", nil, "all")
			if id, err := take(d.SQL, 1); !errors.Is(err, sql.ErrNoRows) {
				t.Errorf("in a freeze: run %s, %v; want none", id, err)
			}
			do("resume", nil, "all")
			if _, err := take(d.SQL, 1); err != nil {
				t.Errorf("after the freeze: %v", err)
			}
		})
	}
}

// TestRetryComesAfterTheTick: what a worker has ended as failed is retried only after a tick has counted the failure.
func TestRetryComesAfterTheTick(t *testing.T) {
	for _, engine := range withRoutines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			if err := routine("create_job", "report", "SELECT 1", nil, `{"queue": "reports"}`).on(d); err != nil {
				t.Fatal(err)
			}
			many(t, d, 1, 1)
			id, err := taking(t, engine)["take"](d.SQL, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := routine("finish", id, 1, "failed", "it broke").on(d); err != nil {
				t.Fatal(err)
			}
			if err := routine("retry", id).on(d); err == nil || !strings.Contains(err.Error(), "but no tick has counted this") {
				t.Errorf("before the tick: %v", err)
			}
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET settled_at = finished_at")
			if err := routine("retry", id).on(d); err != nil {
				t.Errorf("after the tick: %v", err)
			}
		})
	}
}
