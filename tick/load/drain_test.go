package load

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// watchWaits makes each wait for another transaction's row an error. It collects the statements that
// waited, also those that were tried again and succeeded. On PostgreSQL the URL has the shortest lock
// timeout that there is, a millisecond. That is about the time of a transaction that nothing holds up.
// On MariaDB each statement has a timeout of zero. MySQL has a timeout of a second, which is its
// shortest. Statements that skip locked rows wait for nothing.
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
		// PostgreSQL also takes a lock to make a file longer: then it names no tuple. That is no wait for a row.
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

// drain lets n processes execute runs that are all ready. It returns how long they took, how many
// statements waited for a lock, and how often each did.
func drain(t testing.TB, d *storetest.DB, runs, n int, countWaits bool) (took time.Duration, waits int, waited map[string]int) {
	t.Helper()
	url := d.URL
	if countWaits && d.Engine == "postgres" {
		url += "&lock_timeout=1"
	}
	children := make([]ticktest.Child, n)
	for i := range children {
		children[i] = ticktest.Child{URL: url, Engine: d.Server, Now: d.Clock.Now(), Holder: fmt.Sprint("process ", i)}
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

// ready makes queued runs, each of a job of its own.
func ready(t testing.TB, engine string, runs int) *storetest.DB {
	t.Helper()
	d := storetest.Open(t, engine, store.Options{})
	d.Seed(t, storetest.Seed{Jobs: runs, Rules: []string{"every 5m"}, Steps: []store.Step{{Executor: "nothing", Spec: []byte("{}")}}})
	tk := ticktest.New(t, d.Store)
	tk.Limit = -1
	for range 2 {
		ticktest.Pass(t, tk)
		d.Clock.Add(5 * time.Minute)
	}
	d.Clock.Add(-5 * time.Minute)
	d.Analyze(t)
	if n := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'queued'"); n != runs {
		t.Fatalf("%d runs are queued", n)
	}
	return d
}

// Several ticks over the same ready runs: each run is executed once, and no deadlock and no lost
// conflict escapes. No transaction waits for another one, whether it takes, finishes, or decides what
// follows. The only wait left is the moment in which InnoDB looks at a row that it then leaves.
func TestDrainBySeveralTicks(t *testing.T) {
	runs, processes := 600, []int{2, 8}
	if prove.Whole() {
		runs, processes = 20_000, []int{1, 2, 4, 8}
	}
	for _, e := range storetest.Engines(t) {
		for _, n := range processes {
			t.Run(fmt.Sprint(e, "/", n), func(t *testing.T) {
				for try := 1; ; try++ { // a process that gets no processor in this moment makes it longer, but not three times
					_, waits, waited := drain(t, ready(t, e, runs), runs, n, true)
					if waits <= runs/20 {
						return
					}
					if try == 3 {
						t.Fatalf("%d statements waited for a lock: %v", waits, waited)
					}
				}
			})
		}
	}
}
