package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
)

// world is a database in which one course after the other is run.
type world struct {
	t         testing.TB
	d         *storetest.DB
	busy      error
	processes int
	twin      *twin     // nil: with all guards
	began     time.Time // the clock before the first stage
	held      store.Task
	abandoned store.Task // its holder died
	programs  programs
	warm      map[int]*runner // the processes that stay, by number
}

// noChance lets each pass sweep the whole history. Otherwise two courses would not make the same calls.
func noChance() float64 { return 0 }

func newWorld(t testing.TB, engine string, tw *twin) *world {
	t.Helper()
	w := &world{t: t, twin: tw}
	w.d = storetest.Open(t, engine, store.Options{Wrap: w.calls().Wrap, Chance: noChance})
	w.d.Exec(t, "CREATE TABLE effects (run varchar(40), step varchar(40), fence int, attempt int)")
	w.busy, w.began = busyError(t, w.d), w.d.Clock.Now()
	return w
}

// calls returns the calls of a new process.
func (w *world) calls() *storetest.Calls {
	if w.twin == nil {
		return &storetest.Calls{}
	}
	return &storetest.Calls{Rewrite: w.twin.rewrite, NoTransactions: w.twin.bare}
}

// now is the clock of the processes. Each look at it is a millisecond later, so that a later event has
// a later instant.
func (w *world) now() time.Time {
	w.d.Clock.Add(time.Millisecond)
	return w.d.Clock.Now()
}

// stage is a moment at which people do something and passes come.
type stage struct {
	name   string
	at     time.Duration // since the beginning
	edit   func(*world)
	decide bool // the passes only decide: the runs that they let go stay queued
	silent bool // the host has a hook for a silence
	beside int  // how many runs they execute side by side; 0 is one, so that the order of calls is always the same
}

// run runs a stage: passes, three minutes apart, until it is quiet. Leases end and back-offs are over within that.
func (w *world) run(s *stage, f *fault) error {
	for x := f; x != nil; x = x.then {
		x.inOrder = s.beside == 0
	}
	w.d.Clock.Set(w.began.Add(s.at))
	if s.edit != nil {
		s.edit(w)
	}
	return w.passes(s, f, nil)
}

// between is the time from one pass to the next. It is enough for a lease to end if the first pass had nothing
// to do. If it had something to do, the time is shorter, so that a course ends before the next occurrences.
const between = 3 * time.Minute

// passes lets passes come until it is quiet. Beside a process that is frozen, they come until enough
// is closed, or until three of them have found nothing that they could do.
func (w *world) passes(s *stage, f *fault, enough <-chan struct{}) error {
	const most = 30
	idle := 0
	for range most {
		select {
		case <-enough:
			return nil
		default:
		}
		before := f.struck()
		r, err := w.freezable(s, f)
		broken := before != f.struck()
		if broken && enough == nil {
			w.unlocked()
		}
		if err != nil && !broken {
			return fmt.Errorf("a pass that nothing broke: %w", err)
		}
		if r.CutShort != "" {
			return fmt.Errorf("a pass without a budget says: %s", r.CutShort)
		}
		if r.Decided == 0 && r.Started == 0 && !broken {
			quiet, err := w.quiet(s)
			if idle++; err != nil || quiet || enough != nil && idle == 3 {
				return err
			}
			w.d.Clock.Add(between)
			continue
		}
		w.d.Clock.Add(between / 10)
	}
	return fmt.Errorf("it is not quiet after %d passes", most)
}

// unlocked waits until the server has noticed that a process died, and has undone its transaction. The other passes skip what is
// locked, and each is minutes later by the clock of the test. On a slow machine, hours would pass for the server's milliseconds.
func (w *world) unlocked() {
	if w.d.Engine == "sqlite" {
		return // its locks are in this process, and are gone
	}
	tx, err := w.d.SQL.BeginTx(context.Background(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, table := range ledgerTables {
		if _, err := tx.Exec("SELECT 1 FROM " + w.place(table) + " FOR UPDATE"); err != nil {
			w.t.Fatal(err)
		}
	}
}

// quiet reports whether nothing needs a decision, may be taken, runs, or waits for a time.
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

// freezable runs a pass. While it is frozen, others go on: until it is quiet, or until they wait for a
// lock of the frozen pass.
func (w *world) freezable(s *stage, f *fault) (tick.Report, error) {
	freezes := f.freezes()
	if len(freezes) == 0 {
		return w.pass(s, f)
	}
	var report tick.Report
	var passed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		report, passed = w.pass(s, f)
	}()
	for len(freezes) > 0 && !freezes[0].isThawed() {
		select {
		case <-done:
			return report, passed
		case <-freezes[0].froze:
		}
		if err := w.others(s, freezes); err != nil {
			for _, f := range freezes {
				f.thaw()
			}
			<-done
			return report, errors.Join(errors.New("while another was frozen"), err)
		}
		freezes = freezes[1:]
	}
	<-done
	return report, passed
}

// others lets passes go on without the one that is frozen: until it is quiet, or until none of their
// calls ends any more. Then it thaws that one.
func (w *world) others(s *stage, freezes []*fault) error {
	w.dieHolders()
	w.d.Clock.Add(between)
	done, enough, counting := make(chan error, 1), make(chan struct{}), newFault("", 0, w)
	go func() { done <- w.passes(s, counting, enough) }()
	for before := -1; ; {
		select {
		case err := <-done:
			freezes[0].thaw()
			return err
		case <-time.After(300 * time.Millisecond):
			now := counting.count()
			if now == before { // they wait for a lock that it holds
				close(enough)               // the clock does not go on beside the process that is back
				for _, f := range freezes { // that process does not stand still a second time, with a lock that they wait for
					f.thaw()
				}
				return <-done
			}
			before = now
		}
	}
}

// dieHolders removes the locks on files that show SQLite's holders alive, as on a file system that has no locks.
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

var ledgerTables = []string{"effects", "schedules", "jobs", "steps", "job_schedules", "job_after", "groups", "calendars", "pauses", "plans", "plan_rules", "group_plans", "job_ends",
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
		"mariadb":  "SELECT column_name FROM information_schema.columns WHERE table_name = '%s' AND table_schema = DATABASE() AND coalesce(generation_expression, '') = ''",
	}[w.d.Engine]
	known := map[string]string{}
	for _, table := range ledgerTables {
		name := w.place(table)
		if w.d.Engine == "postgres" {
			name = table
		}
		list, err := w.strings(fmt.Sprintf(query, name))
		if err != nil || len(list) == 0 {
			w.t.Fatalf("columns of %s: %v, %v", table, list, err)
		}
		slices.Sort(list)
		known[table] = strings.Join(list, ", ")
	}
	columns.Store(w.d.Engine, known)
	return known
}

// strings reads a column.
func (w *world) strings(query string) ([]string, error) {
	rows, err := w.d.SQL.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}
