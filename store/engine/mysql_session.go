package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// mysqlForJobs makes connections that report rows and warnings, and whose sessions can be made as new.
type mysqlForJobs struct {
	driver.Connector
	begin []string // what a login does after it has told who it is: the statements that do the same
}

// newMySQLForJobs makes them. plain says that what the driver sends is neither encrypted nor compressed.
func newMySQLForJobs(c *mysql.Config, plain bool) (driver.Connector, error) {
	if plain {
		c.DialFunc = dialMySQL
	}
	set := make([]string, 0, len(c.Params))
	for name, value := range c.Params {
		set = append(set, name+" = "+value)
	}
	begin := []string{"USE `" + strings.ReplaceAll(c.DBName, "`", "``") + "`", "SET " + strings.Join(set, ", ")}
	bare, err := mysql.NewConnector(c)
	return mysqlForJobs{mysqlBounded{bare, c.Timeout}, begin}, err
}

// Connect connects.
func (c mysqlForJobs) Connect(ctx context.Context) (driver.Conn, error) {
	job := &mysqlJobConn{begin: c.begin}
	inner, err := c.Connector.Connect(context.WithValue(ctx, wireOf{}, job))
	if err != nil {
		return nil, err
	}
	job.boundedConn = inner.(*boundedConn)
	return job, nil
}

type mysqlJobConn struct {
	*boundedConn
	wire  *mysqlWire // nil: what the driver sends is not seen
	begin []string
}

// mysqlUnreset is 0 in a session that has got its settings at the login, or after it was made as new.
const mysqlUnreset = "@dbjobs_unreset"

// mysqlLook asks for the session's number, and for what differs where a session is not as new though
// the server has said so: a proxy did not pass the command on, or gave another session of the server;
// another role; limits and settings that the account or a proxy sets at the login. What init_connect
// does at the login is not done again, so with that no session is like another.
const mysqlLook = "SELECT CONNECTION_ID(), CONCAT_WS(',', " + mysqlUnreset +
	", CURRENT_USER(), CURRENT_ROLE(), @@sql_mode, @@time_zone, @@foreign_key_checks, @@unique_checks, " +
	"@@group_concat_max_len, @@lock_wait_timeout, @@innodb_lock_wait_timeout, @@wait_timeout, " +
	"IF(COALESCE(@@global.init_connect, '') = '', '', UUID()) /*M! , @@tx_isolation, @@max_statement_time */)"

// lastsInMySQL finds what the server does not undo: the list of SHOW PROFILES.
var lastsInMySQL = lazyregexp.New(`(?i)profil`)

var errUnwired = errors.New("the connection is not one whose commands are seen")

// resetMySQL makes a session as new. The server resets neither the database nor what it has told the
// session of that one's character set.
func resetMySQL(ctx context.Context, conn *sql.Conn) error {
	return conn.Raw(func(c any) error {
		j, ok := c.(*mysqlJobConn)
		if !ok || j.wire == nil {
			return errUnwired
		}
		if err := j.wire.reset(ctx, j); err != nil {
			return err
		}
		for _, text := range j.begin {
			if _, err := j.boundedConn.ExecContext(ctx, text, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// mysqlWire sends the one command that the driver does not have, COM_RESET_CONNECTION, in place of the
// driver's next ping. Each of the two is one byte, and has the same answers, which the driver reads.
type mysqlWire struct {
	net.Conn
	resets bool // the next ping is to be that command
}

const (
	mysqlPing  = "\x01\x00\x00\x00\x0e"
	mysqlReset = "\x01\x00\x00\x00\x1f"
)

// reset sends the command.
func (w *mysqlWire) reset(ctx context.Context, c driver.Pinger) error {
	w.resets = true
	err := c.Ping(ctx)
	if err == nil && w.resets {
		err = errUnwired
	}
	return err
}

// Write writes what the driver sends. What it sends in place of a ping, nobody gets.
func (w *mysqlWire) Write(p []byte) (int, error) {
	if w.resets {
		if string(p) != mysqlPing {
			return 0, fmt.Errorf("%w: %d bytes instead of a ping", errUnwired, len(p))
		}
		w.resets = false
		p = []byte(mysqlReset)
	}
	return w.Conn.Write(p)
}

// SyscallConn lets the driver see that the server has ended the connection.
func (w *mysqlWire) SyscallConn() (syscall.RawConn, error) {
	if c, ok := w.Conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errUnwired
}

// wireOf is in the context in which the driver dials: the connection that the wire is for.
type wireOf struct{}

func dialMySQL(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	job, ok := ctx.Value(wireOf{}).(*mysqlJobConn)
	if err != nil || !ok {
		return c, err
	}
	job.wire = &mysqlWire{Conn: c}
	return job.wire, nil
}
