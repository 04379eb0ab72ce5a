package load

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// watchWaits makes each wait for another's row an error, and collects the statements: those too that were tried again and went
// well. On PostgreSQL the URL has the shortest patience that there is, a millisecond, which is about what a transaction
// takes that nothing holds up; MariaDB's statements have none each. Those that skip what is locked wait for nothing.
func watchWaits(c ticktest.Child, calls *storetest.Calls) (waited func() map[string]int) {
	var mu sync.Mutex
	statements := map[string]int{}
	if c.Engine == "mariadb" {
		calls.Rewrite = func(text string) string {
			if strings.Contains(text, "SKIP LOCKED") {
				return text
			}
			return "SET STATEMENT innodb_lock_wait_timeout = 0 FOR " + text
		}
	}
	calls.Failed = func(call storetest.Call, err error) {
		var my *mysql.MySQLError
		var pg *pgconn.PgError
		// Not where a file is made longer, which PostgreSQL takes a lock for too: then no tuple is named.
		if errors.As(err, &my) && (my.Number == 1205 || my.Number == 1213) || errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01") && strings.Contains(pg.Where, "tuple") {
			mu.Lock()
			defer mu.Unlock()
			statements[fmt.Sprintf("%.60s", strings.Join(strings.Fields(call.SQL), " "))]++
		}
	}
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return statements
	}
}

// drain lets n processes work off runs that are all ready, and returns how long they took, how many
// statements waited for a lock, and how often each did.
func drain(t testing.TB, d *storetest.DB, runs, n int, countWaits bool) (took time.Duration, waits int, waited map[string]int) {
	t.Helper()
	url := d.URL
	if countWaits && d.Engine == "postgres" {
		url += "&lock_timeout=1"
	}
	children := make([]ticktest.Child, n)
	for i := range children {
		children[i] = ticktest.Child{URL: url, Engine: d.Engine, Now: d.Clock.Now(), Holder: fmt.Sprint("process ", i)}
		if countWaits {
			// Ticks of one trigger take turns for its line in the ledger, at the end of a pass.
			children[i].Name, children[i].Meddle = children[i].Holder, "waits"
		}
	}
	began := time.Now()
	reports, errs := ticktest.Together(t, children)
	took = time.Since(began)
	waited = map[string]int{}
	shares, ended := []int{}, 0
	for i := range reports {
		if errs[i] != nil {
			t.Errorf("process %d of %d: %v", i, n, errs[i])
		}
		if reports[i].Failed+reports[i].Outdated+reports[i].Waiting > 0 {
			t.Errorf("process %d of %d: %+v", i, n, reports[i].Report)
		}
		shares, ended = append(shares, reports[i].Succeeded), ended+reports[i].Succeeded
		for statement, n := range reports[i].Seen {
			waits += n
			waited[statement] += n
		}
	}
	attempts := d.Int(t, "SELECT count(*) FROM "+d.Table("attempts"))
	succeeded := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'succeeded' AND fence = 1")
	if ended != runs || attempts != runs || succeeded != runs {
		t.Errorf("%d processes: %d runs ended, %d attempts, %d succeeded; want %d", n, ended, attempts, succeeded, runs)
	}
	t.Logf("%d processes: %.0f runs/s, shares %v, %d waits", n, float64(runs)/took.Seconds(), shares, waits)
	return took, waits, waited
}

// ready makes runs that are queued, of as many jobs.
func ready(t testing.TB, engine string, runs int) *storetest.DB {
	t.Helper()
	d := storetest.Open(t, engine, store.Options{})
	d.Seed(t, storetest.Seed{Jobs: runs, Rules: []string{"every 5m"}, Steps: []store.Step{{Executor: "nothing", Spec: []byte("{}")}}})
	tk := ticktest.New(t, d.Store)
	tk.Limit = -1
	for range 2 {
		if _, err := tk.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(5 * time.Minute)
	}
	d.Clock.Add(-5 * time.Minute)
	d.Analyze(t)
	if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'queued'"); n != runs {
		t.Fatalf("%d runs are queued", n)
	}
	return d
}

// Several ticks over the same ready runs: each is executed once, no deadlock and no lost conflict escapes, and nobody
// waits for another's transaction: neither those who take, nor those who finish, nor those who decide what follows. What
// is left is the moment in which InnoDB looks at a row that it then leaves.
func TestDrainBySeveralTicks(t *testing.T) {
	runs, processes := 800, []int{2, 8}
	if os.Getenv("DBJOBS_PROVE") != "" {
		runs, processes = 20_000, []int{1, 2, 4, 8}
	}
	for _, e := range storetest.Engines(t) {
		for _, n := range processes {
			t.Run(fmt.Sprint(e, "/", n), func(t *testing.T) {
				_, waits, waited := drain(t, ready(t, e, runs), runs, n, true)
				if waits > runs/20 { // a holder that is not on the processor holds its moment longer
					t.Errorf("%d statements waited for a lock: %v", waits, waited)
				}
			})
		}
	}
}

// BenchmarkWork works off 20,000 ready runs by one to eight processes, beside the SQL of a worker made for the purpose,
// in one process: four connections that each take four runs, and finish them one by one, and know of no jobs, steps,
// leases or decisions. Ratios are of rates within the same run: of/sql to that worker, of/one to one process.
func BenchmarkWork(b *testing.B) {
	const runs = 20_000
	for _, e := range storetest.Engines(b) {
		var best, one time.Duration
		measure := func(b *testing.B, fn func(d *storetest.DB) time.Duration) (took time.Duration) {
			for range b.N {
				b.StopTimer()
				d := ready(b, e, runs)
				b.StartTimer()
				took += fn(d)
			}
			took /= time.Duration(b.N)
			b.ReportMetric(runs/took.Seconds(), "runs/s")
			return took
		}
		b.Run(e+"/sql", func(b *testing.B) {
			best = measure(b, func(d *storetest.DB) time.Duration { return workBySQL(b, d, runs) })
		})
		for _, n := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprint(e, "/processes=", n), func(b *testing.B) {
				took := measure(b, func(d *storetest.DB) time.Duration { took, _, _ := drain(b, d, runs, n, false); return took })
				if n == 1 {
					one = took
				}
				b.ReportMetric(best.Seconds()/took.Seconds(), "of/sql")
				b.ReportMetric(one.Seconds()/took.Seconds(), "of/one")
			})
		}
	}
}

// workBySQL works the runs off without us.
func workBySQL(b *testing.B, d *storetest.DB, runs int) time.Duration {
	b.Helper()
	runsTable, attempts, now := d.Table("runs"), d.Table("attempts"), ticktest.Literal(d, d.Clock.Now())
	queued, skip, quoted := "state = 'queued' AND queue = 'tick' ORDER BY priority DESC", " FOR UPDATE SKIP LOCKED", "'%s'"
	switch d.Engine {
	case "mariadb":
		queued = "queued_in = 'tick' ORDER BY urgency"
	case "sqlite":
		skip = ""
	}
	d.SQL.SetMaxIdleConns(4)
	began, done := time.Now(), make(chan int)
	for range 4 {
		go func() {
			ended := 0
			defer func() { done <- ended }()
			for {
				ids, err := takeBySQL(d, []string{"SELECT id FROM " + runsTable + " WHERE " + queued + ", ready_at, id LIMIT 4" + skip,
					"UPDATE " + runsTable + " SET state = 'running', fence = fence + 1, holder = 'sql', started_at = " + now + ", lease_until = " + now +
						", attempt = 1, attempts = 1 WHERE id IN (%s)",
					"INSERT INTO " + attempts + " (run_id, number, step, step_name, attempt, fence, holder, started_at) SELECT id, 1, 1, 'step 1', 1, 1, 'sql', " + now +
						" FROM " + runsTable + " WHERE id IN (%s)"})
				if err != nil {
					b.Error(err)
				}
				if len(ids) == 0 {
					return
				}
				for _, id := range ids {
					err := inTransaction(d, func(tx *sql.Tx) error {
						_, err := tx.Exec("UPDATE " + runsTable + " SET state = 'succeeded', finished_at = " + now + ", lease_until = NULL WHERE state = 'running' AND fence = 1 AND id = " + fmt.Sprintf(quoted, id))
						if err == nil {
							_, err = tx.Exec("UPDATE " + attempts + " SET state = 'succeeded', finished_at = " + now + " WHERE number = 1 AND run_id = " + fmt.Sprintf(quoted, id))
						}
						return err
					})
					if err != nil {
						b.Error(err)
					}
					ended++
				}
			}
		}()
	}
	all := 0
	for range 4 {
		all += <-done
	}
	took := time.Since(began)
	if n := d.Int(b, "SELECT count(*) FROM "+runsTable+" WHERE state = 'succeeded'"); n != runs || all != runs {
		b.Errorf("%d runs ended, %d counted: want %d", n, all, runs)
	}
	return took
}

// takeBySQL selects, and runs the other statements for what it found.
func takeBySQL(d *storetest.DB, statements []string) (ids []string, err error) {
	err = inTransaction(d, func(tx *sql.Tx) error {
		rows, err := tx.Query(statements[0])
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		if err := rows.Err(); err != nil || len(ids) == 0 {
			return err
		}
		for _, st := range statements[1:] {
			if _, err := tx.Exec(fmt.Sprintf(st, "'"+strings.Join(ids, "', '")+"'")); err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err
}

func inTransaction(d *storetest.DB, fn func(*sql.Tx) error) error {
	tx, err := d.SQL.BeginTx(context.Background(), &sql.TxOptions{Isolation: d.Store.Engine().Isolation})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}
