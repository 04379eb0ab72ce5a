package crash

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// A pass is a finite sequence of calls of the database and of actions elsewhere. The harness breaks a
// course of passes at call k, for each k and in each of these ways. Then it lets clean passes go on
// until it is quiet, and compares the ledger and the effects with those of the unbroken course.
type faultKind string

const (
	killedBefore faultKind = "killed before" // the process is dead; the call did not take place
	killedAfter  faultKind = "killed after"  // the process is dead; the call took place
	cutBefore    faultKind = "cut before"    // the connection breaks; the process goes on
	cutAfter     faultKind = "cut after"     // the connection breaks, and the result is unknown
	refused      faultKind = "refused"       // the engine answers with a serialization failure, a deadlock, or busy
	unanswered   faultKind = "unanswered"    // the call took place, and no answer comes: the caller's patience ends
	// The process stands still while its leases end and other processes go on until it is quiet. Then
	// it goes on as if nothing had happened.
	frozen faultKind = "frozen"
	// The holder of a run whose lease is over comes back, and ends its step. That breaks no call. It
	// is for the twin that lets a decision overwrite that end.
	returns faultKind = "the holder returns"
)

var faultKinds = []faultKind{killedBefore, killedAfter, cutBefore, cutAfter, refused, unanswered, frozen}

// looks is the beginning of the query for runs to cancel. It comes every 1.5 s of real time, so more
// often on a slow machine.
const looks = "SELECT id, fence, cancel_at FROM"

var errKilled = errors.New("injected: the process was killed")

// fault breaks one call of a course.
type fault struct {
	kind  faultKind
	k     int
	match func(storetest.Call) bool // instead of k: the first such call
	busy  error                     // what the engine answers to a refused call
	// held: a process that is frozen within a transaction stops all others, as on SQLite. So it is not
	// frozen there.
	held bool
	back func() // lets the holder come back
	then *fault // a second fault, counted from the first
	// inOrder: the calls are the same in each course, so that the k-th call is always the same one.
	inOrder bool

	mu      sync.Mutex
	all     []storetest.Call // over all processes, so far
	asked   int              // requests on the wire, the same
	open    map[string]int   // transactions, by process
	hit     storetest.Call   // the call that it broke, with its number in its process
	process string           // the process of that call; empty before
	froze   chan struct{}
	thawed  chan struct{}
	once    sync.Once
}

func newFault(kind faultKind, k int, w *world) *fault {
	return &fault{kind: kind, k: k, busy: w.busy, held: w.d.Engine == "sqlite", back: w.comeBack, open: map[string]int{}, froze: make(chan struct{}), thawed: make(chan struct{})}
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

// next is the fault that strikes next, or the last one.
func (f *fault) next() *fault {
	if f.then != nil && f.struck() > 0 {
		return f.then
	}
	return f
}

func (f *fault) before(c *storetest.Calls, call storetest.Call, process string) error {
	if !f.arrives(call, process) {
		f.standStill(process)
		return nil
	}
	switch f.kind {
	case killedBefore:
		c.Kill(errKilled)
		return errKilled
	case cutBefore:
		return fmt.Errorf("injected: %w", syscall.ECONNRESET)
	case refused:
		return storetest.RefusedError{Err: fmt.Errorf("injected: %w", f.busy)}
	case frozen:
		close(f.froze)
		<-f.thawed
	case returns:
		f.back()
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

// standStill holds the other calls of a process that is frozen in one.
func (f *fault) standStill(process string) {
	f.mu.Lock()
	mine := f.kind == frozen && f.process == process
	f.mu.Unlock()
	if mine {
		<-f.thawed
	}
}

// arrives counts a call, and reports whether it is the one to break.
func (f *fault) arrives(call storetest.Call, process string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inOrder && strings.HasPrefix(call.SQL, looks) {
		return false
	}
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

// struck counts the calls that this fault and the second one have broken.
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

// spent reports whether this fault and the second one have nothing left to break.
func (f *fault) spent() bool {
	return f == nil || f.struck() > 0 && f.then.spent()
}

// count is the number of calls so far.
func (f *fault) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all)
}

// freezes returns the faults that have still to freeze a process, in their order.
func (f *fault) freezes() (list []*fault) {
	for ; f != nil; f = f.then {
		if f.kind == frozen && f.struck() == 0 {
			list = append(list, f)
		}
	}
	return list
}

// thaw lets the frozen process go on. If none is frozen yet, the fault freezes none.
func (f *fault) thaw() {
	f.once.Do(func() { close(f.thawed) })
}

func (f *fault) isThawed() bool {
	select {
	case <-f.thawed:
		return true
	default:
		return false
	}
}

// busyError is an answer of the engine that asks the caller to try again.
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
