package storetest

import (
	"context"
	"database/sql/driver"
	"sync"
)

// Connections keeps the connections that a store makes to its database, by Options.Wrap.
type Connections struct {
	driver.Connector
	mu  sync.Mutex
	all []driver.Conn
}

// Wrap is for Options.Wrap.
func (c *Connections) Wrap(inner driver.Connector) driver.Connector {
	c.Connector = inner
	return c
}

// Connect makes a connection, and keeps it.
func (c *Connections) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.all = append(c.all, conn)
	}
	return conn, err
}

// All returns the connections that were made so far, also those that are closed by now.
func (c *Connections) All() []driver.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[:len(c.all):len(c.all)]
}
