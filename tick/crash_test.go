package tick_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// A pass is a finite sequence of calls of the database and of actions elsewhere. The harness breaks a course of passes
// at call k, for each k and in each of these ways, lets clean passes go on until it is quiet, and compares the ledger
// and the effects with those of the unbroken course.
type faultKind string

const (
	killedBefore faultKind = "killed before" // the process is no more; the call did not take place
	killedAfter  faultKind = "killed after"  // it did
	cutBefore    faultKind = "cut before"    // the connection breaks; the process goes on
	cutAfter     faultKind = "cut after"     // the same, and the result is unknown
	refused      faultKind = "refused"       // the engine answers with a serialization failure, a deadlock, or busy
	unanswered   faultKind = "unanswered"    // done and not acknowledged: the caller's patience ends
	// The process stands still while its leases end and others go on until it is quiet; then it goes on as if nothing
	// had happened.
	frozen faultKind = "frozen"
)

var faultKinds = []faultKind{killedBefore, killedAfter, cutBefore, cutAfter, refused, unanswered, frozen}

var errKilled = errors.New("injected: the process was killed")

// fault breaks one call of a course.
type fault struct {
	kind  faultKind
	k     int
	match func(storetest.Call) bool // in the place of k: the first such call
	busy  error                     // what the engine answers to a refused call
	// held: a process that is frozen within a transaction stops all others, as on SQLite. It is not frozen there.
	held bool
	then *fault // a second one, counted from the first

	mu      sync.Mutex
	all     []storetest.Call // over all processes, so far
	open    map[string]int   // transactions, by process
	hit     storetest.Call   // what it broke, as its process numbers it
	process string           // whose call that is; empty before
	froze   chan struct{}
	thawed  chan struct{}
}

func newFault(kind faultKind, k int, w *world) *fault {
	return &fault{kind: kind, k: k, busy: w.busy, held: w.d.Engine == "sqlite", open: map[string]int{}, froze: make(chan struct{}), thawed: make(chan struct{})}
}

// attach puts the fault into the calls of a process.
func (f *fault) attach(c *storetest.Calls, process string) {
	c.Before = func(call storetest.Call) error { return f.next().before(c, call, process) }
	c.After = func(call storetest.Call) error {
		if f.then != nil {
			if err := f.then.after(c, call, process); err != nil {
				return err
			}
		}
		return f.after(c, call, process)
	}
}

// next is the fault that is to strike next, or the last one.
func (f *fault) next() *fault {
	if f.then != nil && f.struck() > 0 {
		return f.then
	}
	return f
}

func (f *fault) before(c *storetest.Calls, call storetest.Call, process string) error {
	if !f.arrives(call, process) {
		return nil
	}
	switch f.kind {
	case killedBefore:
		c.Kill(errKilled)
		return errKilled
	case cutBefore:
		return fmt.Errorf("injected: %w", syscall.ECONNRESET)
	case refused:
		return storetest.Refusal{Err: fmt.Errorf("injected: %w", f.busy)}
	case frozen:
		close(f.froze)
		<-f.thawed
	}
	return nil
}

func (f *fault) after(c *storetest.Calls, call storetest.Call, process string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if call.Kind == storetest.Commit || call.Kind == storetest.Rollback {
		f.open[process]--
	}
	if f.process != process || f.hit.N != call.N {
		return nil
	}
	switch f.kind {
	case killedAfter:
		c.Kill(errKilled)
		return errKilled
	case cutAfter:
		return fmt.Errorf("injected: %w", syscall.ECONNRESET)
	case unanswered:
		return fmt.Errorf("injected: %w", context.DeadlineExceeded)
	}
	return nil
}

// arrives counts a call, and tells whether it is the one to break.
func (f *fault) arrives(call storetest.Call, process string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, call)
	here := f.process == "" && (f.match == nil && len(f.all) == f.k || f.match != nil && f.match(call)) &&
		!(f.kind == frozen && f.held && f.open[process] > 0)
	if here {
		f.hit, f.process = call, process
	}
	if call.Kind == storetest.Begin {
		f.open[process]++
	}
	return here
}

// struck counts the calls that it has broken, with those of the second.
func (f *fault) struck() int {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.process == "" {
		return 0
	}
	return 1 + f.then.struck()
}

// freezes is the fault that is still to freeze a process; nil: none.
func (f *fault) freezes() *fault {
	for ; f != nil; f = f.then {
		if f.kind == frozen && f.struck() == 0 {
			return f
		}
	}
	return nil
}

// busyError is an answer of the engine that tells the caller to try again.
func busyError(t testing.TB, d *storetest.DB) error {
	t.Helper()
	switch d.Engine {
	case "postgres":
		return &pgconn.PgError{Severity: "ERROR", Code: "40001", Message: "could not serialize access"}
	case "mariadb":
		return &mysql.MySQLError{Number: 1213, Message: "Deadlock found when trying to get lock"}
	}
	tx, err := d.SQL.BeginTx(t.Context(), nil) // immediate: it holds the lock for writing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(d.URL, "sqlite:")+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, busy := db.BeginTx(t.Context(), nil)
	if busy == nil {
		t.Fatal("SQLite let two writers in")
	}
	return busy
}

// world is a database in which one course after the other is run.
type world struct {
	t         testing.TB
	d         *storetest.DB
	busy      error
	processes int
	twin      *twin     // nil: with all guards
	began     time.Time // the clock before the first stage
}

func newWorld(t testing.TB, engine string, tw *twin) *world {
	t.Helper()
	w := &world{t: t, twin: tw}
	w.d = storetest.Open(t, engine, store.Options{Wrap: w.calls().Wrap})
	w.d.Exec(t, "CREATE TABLE effects (run varchar(40), step varchar(40), fence int, attempt int)")
	w.busy, w.began = busyError(t, w.d), w.d.Clock.Now()
	return w
}

// calls are those of a process.
func (w *world) calls() *storetest.Calls {
	if w.twin == nil {
		return &storetest.Calls{}
	}
	return &storetest.Calls{Rewrite: w.twin.rewrite, NoTransactions: w.twin.bare}
}

// now is the clock of the processes: each look at it is a millisecond later, so that what comes later has a later instant.
func (w *world) now() time.Time {
	w.d.Clock.Add(time.Millisecond)
	return w.d.Clock.Now()
}

// stage is a moment at which people do something and passes come.
type stage struct {
	name   string
	at     time.Duration // since the beginning
	edit   func(*world)
	decide bool // the passes only decide: what they let go stays queued
}

// run runs a stage: passes, three minutes apart, until it is quiet. Leases end and back-offs are over within that.
func (w *world) run(s *stage, f *fault) error {
	w.d.Clock.Set(w.began.Add(s.at))
	if s.edit != nil {
		s.edit(w)
	}
	return w.passes(s, f, nil)
}

const between = 3 * time.Minute

// passes come until it is quiet, or enough is closed.
func (w *world) passes(s *stage, f *fault, enough <-chan struct{}) error {
	const most = 15
	for range most {
		select {
		case <-enough:
			return nil
		default:
		}
		before := f.struck()
		r, err := w.freezable(s, f)
		broken := before != f.struck()
		if err != nil && !broken {
			return fmt.Errorf("a pass that nothing broke: %w", err)
		}
		if r.CutShort != "" {
			return fmt.Errorf("a pass without a budget says: %s", r.CutShort)
		}
		if r.Decided == 0 && r.Started == 0 && !broken {
			quiet, err := w.quiet(s)
			if err != nil || quiet {
				return err
			}
		}
		w.d.Clock.Add(between)
	}
	return fmt.Errorf("it is not quiet after %d passes", most)
}

// quiet: nothing needs a decision, may be taken, runs, or waits for a time.
func (w *world) quiet(s *stage) (bool, error) {
	p, err := w.d.Probe(context.Background(), "probe", "tick")
	if err != nil {
		return false, err
	}
	p.Queued = p.Queued && !s.decide
	busy := 0
	err = w.d.SQL.QueryRow("SELECT count(*) FROM " + w.d.Table("runs") + " WHERE state = 'running' OR state = 'waiting' AND held_by IS NULL").Scan(&busy)
	return busy == 0 && !p.Anything(), err
}

// freezable runs a pass. While it is frozen, others go on: until it is quiet, or until they wait for what it holds.
func (w *world) freezable(s *stage, f *fault) (tick.Report, error) {
	freezes := f.freezes()
	if freezes == nil {
		return w.pass(s, f)
	}
	var report tick.Report
	var passed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		report, passed = w.pass(s, f)
	}()
	select {
	case <-done:
		return report, passed
	case <-freezes.froze:
	}
	w.dieHolders()
	w.d.Clock.Add(between)
	others, enough := make(chan error, 1), make(chan struct{})
	go func() { others <- w.passes(s, nil, enough) }()
	var err error
	select {
	case err = <-others:
		close(freezes.thawed)
	case <-time.After(300 * time.Millisecond): // the clock does not run on beside the one that is back
		close(enough)
		close(freezes.thawed)
		err = <-others
	}
	<-done
	if err != nil {
		return report, errors.Join(errors.New("while another was frozen"), err)
	}
	return report, passed
}

// dieHolders takes away the locks on files that show SQLite's holders alive, as where the file system has none.
func (w *world) dieHolders() {
	if w.d.Engine != "sqlite" {
		return
	}
	files, err := filepath.Glob(strings.TrimPrefix(w.d.URL, "sqlite:") + "-holder-*")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.t.Error(err)
		}
	}
}

// pass is one process: it connects, runs a pass one run at a time, so that the order of calls is the same always, and ends.
func (w *world) pass(s *stage, f *fault) (tick.Report, error) {
	w.processes++
	holder := fmt.Sprint("process ", w.processes)
	calls := w.calls()
	if f != nil {
		f.attach(calls, holder)
	}
	ctx := context.Background()
	st, err := store.Open(ctx, w.d.URL, store.Options{Clock: w.now, Wrap: calls.Wrap})
	if err != nil {
		return tick.Report{}, err
	}
	defer st.Close()
	x, err := executor.NewSQL(st)
	if err != nil {
		return tick.Report{}, err
	}
	defer x.Close()
	tk := &tick.Tick{Store: st, Name: "test", Holder: holder, Version: "test", Now: time.Now, Concurrency: 1, StartupID: "boot 1",
		Executors: executor.Registry{"sql": x, "act": acting{w, calls}}}
	if s.decide {
		tk.Limit = -1
	}
	return tk.Run(ctx)
}

// snapshot and restore keep copies of all tables beside them, so that a course can begin at any stage.
func (w *world) snapshot(name string) {
	for table, columns := range w.tables() {
		w.d.Exec(w.t, "DROP TABLE IF EXISTS "+name+"_"+table)
		w.d.Exec(w.t, fmt.Sprintf("CREATE TABLE %s_%s AS SELECT %s FROM %s", name, table, columns, w.place(table)))
	}
}

func (w *world) restore(name string) {
	tx, err := w.d.SQL.BeginTx(context.Background(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for table, columns := range w.tables() {
		for _, st := range []string{"DELETE FROM " + w.place(table), fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s_%s", w.place(table), columns, columns, name, table)} {
			if _, err := tx.Exec(st); err != nil {
				w.t.Fatalf("%s: %v", st, err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) place(table string) string {
	if table == "effects" {
		return table
	}
	return w.d.Table(table)
}

var ledgerTables = []string{"effects", "schedules", "jobs", "steps", "job_schedules", "groups", "pauses", "plans", "plan_rules", "group_plans",
	"runs", "attempts", "gaps", "changes", "ticks"}

// columns are the tables' columns, without those that the engine computes.
var columns sync.Map

func (w *world) tables() map[string]string {
	if known, ok := columns.Load(w.d.Engine); ok {
		return known.(map[string]string)
	}
	query := map[string]string{
		"sqlite":   "SELECT name FROM pragma_table_xinfo('%s') WHERE hidden = 0",
		"postgres": "SELECT column_name FROM information_schema.columns WHERE table_name = '%s' AND table_schema IN ('dbjobs', 'public') AND is_generated = 'NEVER'",
		"mariadb":  "SELECT column_name FROM information_schema.columns WHERE table_name = '%s' AND table_schema = DATABASE() AND is_generated = 'NEVER'",
	}[w.d.Engine]
	known := map[string]string{}
	for _, table := range ledgerTables {
		name := w.place(table)
		if w.d.Engine == "postgres" {
			name = table
		}
		rows, err := w.d.SQL.Query(fmt.Sprintf(query, name))
		if err != nil {
			w.t.Fatal(err)
		}
		var list []string
		for rows.Next() {
			var c string
			if err := rows.Scan(&c); err != nil {
				w.t.Fatal(err)
			}
			list = append(list, c)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(list) == 0 {
			w.t.Fatalf("columns of %s: %v, %v", table, list, err)
		}
		slices.Sort(list)
		known[table] = strings.Join(list, ", ")
	}
	columns.Store(w.d.Engine, known)
	return known
}
