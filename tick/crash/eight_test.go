package crash

import (
	"cmp"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// guards says which of the guards against doing a thing twice are there.
type guards string

const (
	allGuards  guards = ""
	noLocks    guards = "no locks"         // an engine that parses SKIP LOCKED and skips nothing
	lacking    guards = "no such function" // an engine that has no advisory locks, and says so
	optimistic guards = "optimistic"       // an engine that lets all of them in and says at the end which ones lost
	atCommit   guards = "at COMMIT"        // an engine that says "1 row updated" to all of them, and refuses the losers in the answer to COMMIT
	noGuards   guards = "nothing at all"   // the twin: it shows that the other tests would notice
)

// guard is a part of our statements, and the text that stands there without it.
type guard struct {
	part    *regexp.Regexp
	without string
}

var (
	locks = []guard{{regexp.MustCompile(`FOR UPDATE( SKIP LOCKED)?`), ""}, reserving}
	// Only PostgreSQL has it. An engine that only speaks its protocol may say yes to all.
	reserving = guard{regexp.MustCompile(`pg_catalog\.pg_try_advisory_xact_lock\(.*\)`), "true"}
	// With this name, the server says that it has no such function.
	unknown = guard{regexp.MustCompile(`pg_catalog\.pg_(try_)?advisory_xact_lock\(`), "pg_catalog.no_such_function("}
	// The conditions of the statements: a plan's version, a run's state, fence and holder.
	conditions = []guard{
		{regexp.MustCompile(` AND p\.version = d\.version`), ""},
		{regexp.MustCompile(` AND (r\.)?state( \|\| '')? = '(queued|running)'`), ""},
		fence, holder,
	}
	fence  = guard{regexp.MustCompile(` AND (r\.)?fence = (\$\d+|\?\d*)`), " AND (${1}fence = $2 OR 1 = 1)"}
	holder = guard{regexp.MustCompile(`( OR 1 = 1\)) AND (r\.)?holder = (\$\d+|\?\d*)`), "$1 AND (${2}holder = $3 OR 1 = 1)"} // beside a fence that is gone
	// The unique keys of the tables, and the look for them, which only PostgreSQL needs.
	looking = guard{regexp.MustCompile(`pg_catalog\.to_regclass\([^()]*\) IS NULL`), "false"}
	keys    = []guard{
		looking,
		{regexp.MustCompile(`UNIQUE \(job_id, occurrence\)`), "CHECK (1 = 1)"},
		{regexp.MustCompile(`PRIMARY KEY \(run_id, number\)`), "CHECK (1 = 1)"},
	}
	// No guard: MySQL refuses a statement that names a key which is not there, and the ends would be tried again until the lease is over.
	named = guard{regexp.MustCompile(`(attempts a) FORCE INDEX \(PRIMARY\)`), "$1"}
)

// meddle is the Meddler of a child that runs without the other guards.
func (g guards) meddle(c ticktest.Child, calls *storetest.Calls) func() map[string]int {
	return g.remove(calls, c.Engine)
}

// remove takes the guards that are not there out of all statements before they are sent, also out of
// those that make the tables. It returns a count of each removal.
func (g guards) remove(c *storetest.Calls, engine string) func() map[string]int {
	var gone []guard
	var mu sync.Mutex
	removed := map[string]int{}
	switch g {
	case noLocks:
		gone = locks
	case lacking:
		gone = []guard{unknown}
	case optimistic:
		gone = locks
		c.Options = func(o driver.TxOptions) driver.TxOptions {
			// Snapshots on PostgreSQL. On MariaDB every read is a shared lock, and those that then
			// write get a deadlock.
			o.Isolation = driver.IsolationLevel(map[string]sql.IsolationLevel{"postgres": sql.LevelRepeatableRead, "mariadb": sql.LevelSerializable}[storetest.Dialect(engine)])
			return o
		}
	case atCommit: // PostgreSQL at SERIALIZABLE refuses some of them so, and others at a statement: both are counted
		gone = locks
		c.Options = func(o driver.TxOptions) driver.TxOptions {
			o.Isolation = driver.IsolationLevel(sql.LevelSerializable)
			return o
		}
		c.Failed = func(call storetest.Call, _ error) {
			mu.Lock()
			defer mu.Unlock()
			removed["refused "+call.Kind]++
		}
	case noGuards:
		gone = slices.Concat(locks, conditions, keys, []guard{named})
		c.NoTransactions = true
	}
	c.Rewrite = func(text string) string {
		for _, x := range gone {
			if changed := x.part.ReplaceAllString(text, x.without); changed != text {
				mu.Lock()
				removed[x.part.String()]++
				mu.Unlock()
				text = changed
			}
		}
		return text
	}
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return removed
	}
}

// eight lets eight processes start at once on due jobs. Half of the jobs have an atomic step, half
// have a plain one.
func eight(t *testing.T, engine string, g guards, jobs int) (d *storetest.DB, reports []ticktest.ChildReport, errs []error) {
	t.Helper()
	var calls storetest.Calls
	removed := g.remove(&calls, engine)
	d = storetest.Open(t, engine, store.Options{Wrap: calls.Wrap})
	d.Exec(t, "CREATE TABLE effects (run varchar(40), kind varchar(10))")
	placeholder := "?"
	if engine == "postgres" {
		placeholder = "$1"
	}
	effect := func(kind string) store.Step {
		return ticktest.StepWith(kind == "atomic", "INSERT INTO effects VALUES ("+placeholder+", '"+kind+"')", "${run_id}")
	}
	d.Seed(t, storetest.Seed{Jobs: jobs, Rules: []string{"every 5m"}, Steps: []store.Step{effect("atomic"), effect("plain")}})
	if r := ticktest.Run(t, d); r.Decided != jobs || r.Made != 0 {
		t.Fatalf("plan: %+v", r)
	}
	d.Clock.Add(5 * time.Minute)
	children, gate := make([]ticktest.Child, 8), ""
	if g == noGuards { // no process waits for another one: all have read the same plans before any of them writes
		gate = "^INSERT INTO " + d.Table("runs")
	}
	for i := range children {
		children[i] = ticktest.Child{URL: d.URL, Engine: engine, Now: d.Clock.Now(), Holder: fmt.Sprintf("process %d", i), Batch: jobs / 4, Meddle: string(g), Gate: gate}
	}
	reports, errs = ticktest.Together(t, children)
	total := removed()
	for _, r := range reports {
		for part, n := range r.Seen {
			total[part] += n
		}
	}
	t.Logf("taken out, and refused by the engine: %v", total)
	for _, x := range map[guards][]guard{noLocks: locks, lacking: {unknown}, optimistic: locks, atCommit: locks, noGuards: slices.Concat(locks, conditions, keys)}[g] {
		has := engine != "sqlite" || !slices.Contains(locks, x)
		if x == reserving || x == looking {
			has = engine == "postgres"
		}
		if has && total[x.part.String()] == 0 {
			t.Errorf("no statement has %s: the test removes nothing", x.part)
		}
	}
	return d, reports, errs
}

// ledger is what eight processes left.
type ledger struct{ runs, occurrences, succeeded, effects, affected, attempts int }

func readLedger(t *testing.T, d *storetest.DB) ledger {
	t.Helper()
	runs := d.Table("runs")
	return ledger{
		runs:        d.Int(t, "SELECT count(*) FROM "+runs),
		occurrences: d.Int(t, "SELECT count(*) FROM (SELECT DISTINCT job_id, occurrence FROM "+runs+") AS x"),
		succeeded:   d.Int(t, "SELECT count(*) FROM "+runs+" WHERE state = 'succeeded'"),
		effects:     d.Int(t, "SELECT count(*) FROM effects"),
		affected:    d.Int(t, "SELECT count(DISTINCT run) FROM effects"),
		attempts:    d.Int(t, "SELECT count(*) FROM "+d.Table("attempts")),
	}
}

// outrun is the error of a pass that lost each time that it tried to take runs: others took them. An engine that lets
// all processes in does this to a few passes among thousands of runs.
var outrun = regexp.MustCompile(`(?m)^(exit status 1: )?start runs: .*40001`)

// Every occurrence has one ledger row and took effect once, whichever of the guards the engine really has.
func TestEightTicks(t *testing.T) {
	variants := map[string][]guards{"sqlite": {allGuards}, "postgres": {allGuards, noLocks, lacking, optimistic, atCommit}, "mariadb": {allGuards, noLocks, optimistic}}
	for _, e := range storetest.Engines(t) {
		for _, g := range variants[storetest.Dialect(e)] {
			t.Run(e+"/"+cmp.Or(string(g), "all guards"), func(t *testing.T) {
				jobs := 32
				if g != allGuards { // the losers try again, and again
					jobs = 16
				}
				if prove.Whole() && g != atCommit { // at COMMIT, one of two that only read the same page loses
					jobs = 2000
				}
				d, reports, errs := eight(t, e, g, jobs)
				var shares []int
				for i, err := range errs {
					if err != nil && g == optimistic && prove.Whole() && outrun.MatchString(err.Error()) {
						t.Logf("process %d gave up, as the others did its work: %v", i, err)
					} else if err != nil {
						t.Errorf("process %d: %v", i, err)
					}
					shares = append(shares, reports[i].Succeeded)
				}
				t.Logf("runs executed by each process: %v", shares)
				if got, want := readLedger(t, d), (ledger{jobs, jobs, jobs, jobs, jobs, jobs}); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			})
		}
	}
}

// The twin: without any guard, occurrences have several rows and take effect several times. A few jobs usually
// show it, since each of their occurrences gets a row from each process. If they do not, more jobs are tried.
func TestEightTicksWithoutGuardsDouble(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			var l ledger
			for _, jobs := range []int{8, 24, 50, 150} {
				d, _, _ := eight(t, e, noGuards, jobs)
				l = readLedger(t, d)
				t.Logf("%d jobs: %+v", jobs, l)
				if l.runs > l.occurrences && l.effects > l.affected {
					return
				}
			}
			if l.runs <= l.occurrences {
				t.Errorf("no occurrence has two ledger rows: %+v", l)
			}
			if l.effects <= l.affected {
				t.Errorf("no run took effect twice: %+v", l)
			}
		})
	}
}
