package tick_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// filling is an executor that stops the growth of the database file when its step ends. It wraps the driver, because
// each connection has this limit for itself.
type filling struct {
	driver.Connector
	mu    sync.Mutex
	conns []driver.Conn
}

func (f *filling) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := f.Connector.Connect(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns = append(f.conns, c)
	return c, err
}

func (f *filling) Execute(ctx context.Context, _ executor.Request) (executor.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		if _, err := c.(driver.ExecerContext).ExecContext(ctx, "PRAGMA max_page_count = 1", nil); err != nil { // not less than the file has
			return executor.Result{}, err
		}
	}
	return executor.Result{}, errors.New(strings.Repeat("this needs another page; ", 1000))
}

// A full disk also ends a pass that has no budget, and is reported as a full disk.
func TestFullDiskEndsAPass(t *testing.T) {
	storetest.Needs(t, "sqlite") // it is about a file
	f := &filling{}
	d := storetest.Open(t, "sqlite", store.Options{Wrap: func(c driver.Connector) driver.Connector { f.Connector = c; return f }})
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{{Executor: "filling", Spec: []byte("{}")}}}}})
	ticktest.Request(t, d, "a")
	tk := ticktest.New(t, d.Store)
	tk.Executors["filling"] = f
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := tk.Run(ctx)
	t.Log(err)
	if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "disk is full") || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}
