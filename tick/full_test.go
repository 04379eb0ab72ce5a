package tick_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// filling is an executor that stops the growth of the database file when its step ends, until the disk has room again. It
// wraps the driver, because each connection has this limit for itself.
type filling struct {
	driver.Connector
	mu       sync.Mutex
	conns    []driver.Conn
	pages    int           // the limit, also of connections that are made later; 0: none yet
	roomIn   time.Duration // 0: never
	executed int
}

func (f *filling) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns = append(f.conns, c)
	if f.pages > 0 {
		err = limit(c, f.pages)
	}
	return c, err
}

func (f *filling) Execute(context.Context, executor.Request) (executor.Result, error) {
	f.executed++
	if f.roomIn > 0 {
		time.AfterFunc(f.roomIn, func() { _ = f.bound(1 << 20) })
	}
	if err := f.bound(1); err != nil { // the file does not get less than it has
		return executor.Result{}, err
	}
	return executor.Result{}, errors.New(strings.Repeat("this needs another page; ", 1000))
}

func (f *filling) bound(pages int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages = pages
	var all error
	for _, c := range f.conns {
		all = errors.Join(all, limit(c, pages))
	}
	return all
}

func limit(c driver.Conn, pages int) error {
	_, err := c.(driver.ExecerContext).ExecContext(context.Background(), fmt.Sprintf("PRAGMA max_page_count = %d", pages), nil)
	return err
}

// A pass waits for room on a full disk for as long as a lease lasts: if it gets room, the end of a step is recorded, and it
// is not executed again. If not, the pass ends, at the end of its budget or without one, and says that the disk is full.
func TestFullDisk(t *testing.T) {
	storetest.Needs(t, "sqlite") // it is about a file
	for name, c := range map[string]struct{ roomIn, budget time.Duration }{
		"stays full":                {},
		"stays full until the end":  {budget: 40 * time.Second},
		"has room again":            {roomIn: 30*time.Second + time.Millisecond},
		"has room before that time": {roomIn: 30*time.Second + time.Millisecond, budget: 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { // minutes take no time, and the driver works while all else waits
				f := &filling{roomIn: c.roomIn}
				d := storetest.Open(t, "sqlite", store.Options{Wrap: func(to driver.Connector) driver.Connector { f.Connector = to; return f }})
				ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", MaxDeliveries: 1, Steps: []store.Step{{Executor: "filling", Spec: []byte("{}")}}}}})
				ticktest.Request(t, d, "a")
				tk := ticktest.New(t, d.Store)
				tk.Budget = c.budget
				tk.Executors["filling"] = f
				began := time.Now()
				_, err := tk.Run(t.Context())
				if took := time.Since(began); took > 3*time.Minute {
					t.Errorf("it took %s", took)
				}
				if c.roomIn == 0 {
					if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "disk is full") {
						t.Error(err)
					}
					return
				}
				if got := ticktest.States(t, d, "a"); err != nil || f.executed != 1 || !slices.Equal(got, []string{store.Failed}) {
					t.Errorf("executed %d times: %v; %v", f.executed, got, err)
				}
			})
		})
	}
}
