package engine

import (
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"
)

// sqlserver can only be a target: it has none of the store's statements or tables.
var sqlserver = &Engine{
	Name: "sqlserver", KnowsLogins: true, Port: 1433,
	schemes:   []string{"sqlserver"},
	form:      sqlserverForm,
	connector: sqlserverConnector,
	jobs:      sqlserverJobs,
	where:     whereSQLServer,
	classify:  classifySQLServer,
	atFault:   func(error) bool { return false },
	advise:    func(error) string { return "" },
}

const sqlserverForm = "sqlserver://USER:PASSWORD@HOST:PORT?database=NAME"

// sqlserverOptions are the driver's options that a URL may have. Others are refused: the driver would ignore a
// mistyped option, and some options would log, or hold a password where dbjobs does not look for one.
var sqlserverOptions = map[string]bool{
	msdsn.Database: true, msdsn.Encrypt: true, msdsn.TrustServerCertificate: true, msdsn.Certificate: true, msdsn.ServerCertificate: true,
	msdsn.HostNameInCertificate: true, msdsn.TLSMin: true, msdsn.DialTimeout: true, msdsn.KeepAlive: true, msdsn.PacketSize: true, msdsn.AppName: true,
	msdsn.WorkstationID: true, msdsn.ApplicationIntent: true, msdsn.FailoverPartner: true, msdsn.FailOverPort: true, msdsn.MultiSubnetFailover: true,
}

// sqlserverConnector reads sqlserver://user:password@host:port/instance?database=name&option=value, the form of Microsoft's
// own driver.
func sqlserverConnector(raw string, _ Options) (driver.Connector, error) {
	u, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	database := ""
	for name, values := range u.Query() {
		if !sqlserverOptions[strings.ToLower(name)] {
			return nil, &URLError{fmt.Sprintf("option %.100q is not known; there are %s", name, strings.Join(slices.Sorted(maps.Keys(sqlserverOptions)), ", "))}
		}
		if strings.EqualFold(name, msdsn.Database) {
			database = values[0]
		}
	}
	switch {
	case u.Hostname() == "":
		return nil, &URLError{"names no host: want " + sqlserverForm}
	case database == "":
		return nil, &URLError{"names no database: want " + sqlserverForm + " (what stands behind / is the name of an instance)"}
	}
	c, err := msdsn.Parse(raw)
	if err != nil {
		return nil, &URLError{err.Error()}
	}
	if _, named := c.Parameters[msdsn.DialTimeout]; !named {
		c.DialTimeout = 10 * time.Second
	}
	if _, named := c.Parameters[msdsn.AppName]; !named {
		c.AppName = "dbjobs"
	}
	bare := mssql.NewConnectorConfig(c)
	bare.Dialer = wires{net.Dialer{KeepAlive: c.KeepAlive}}
	return sqlserverBounded{bare, c.DialTimeout}, nil
}

// sqlserverBounded bounds the time to connect, also where a server accepts the connection and then says nothing: the
// driver bounds only the accepting.
type sqlserverBounded struct {
	driver.Connector
	timeout time.Duration
}

// Connect connects.
func (c sqlserverBounded) Connect(ctx context.Context) (driver.Conn, error) {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	w := &wire{}
	stop := context.AfterFunc(within, w.close)
	inner, err := c.Connector.Connect(context.WithValue(within, wired{}, w))
	if stopped := !stop(); stopped && ctx.Err() != nil {
		err = ctx.Err()
	} else if stopped {
		err = fmt.Errorf("%w within %s", errSilent, c.timeout)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return &sqlserverJobConn{inner.(*mssql.Conn), w}, nil
}

// wire is the network connection of a session. It is known to this package, and not only to the driver, for two
// reasons: closing it ends a login that gets no answer; and if it breaks while a statement is executed, the driver
// does not report that to a caller who waits for messages.
type wire struct {
	mu    sync.Mutex
	conns []net.Conn // several if a name has several addresses
	over  bool
	lost  error
	tell  func(error) // of the statement under way
}

type wired struct{}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, c := range w.conns {
		_ = c.Close() // none of its answers is needed
	}
}

// watch calls tell once the wire is broken, until done is called.
func (w *wire) watch(tell func(error)) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tell = tell; w.lost != nil {
		tell(w.lost)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tell = nil
	}
}

// wires dials for the driver.
type wires struct{ net.Dialer }

// DialContext dials.
func (d wires) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.Dialer.DialContext(ctx, network, address)
	w, _ := ctx.Value(wired{}).(*wire)
	if err != nil || w == nil || network != "tcp" { // the browser of instances is asked by UDP
		return c, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns = append(w.conns, c); w.over {
		_ = c.Close() // as all of them
	}
	return wiredConn{c, w}, nil
}

type wiredConn struct {
	net.Conn
	w *wire
}

// Read reads.
func (c wiredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		if c.w.lost = err; c.w.tell != nil {
			c.w.tell(err)
		}
	}
	return n, err
}

// sqlserverPlaces replaces each ? of a text by the placeholders of the server: @p1, @p2 and so on. Literals, names
// and comments stay as they are.
func sqlserverPlaces(text string, args int) (string, error) {
	if args == 0 {
		return text, nil
	}
	n := 0
	written := inSQLServer(text, func(found string) string {
		if found != "?" {
			return found
		}
		n++
		return "@p" + strconv.Itoa(n)
	})
	if n != 0 && n != args {
		return "", fmt.Errorf("its text has %d placeholders ?, and there are %d arguments", n, args)
	}
	return written, nil
}

// whereSQLServer names the database, which is among the options.
func whereSQLServer(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "SQL Server"
	}
	return u.Scheme + "://" + u.Host + u.Path + "?database=" + u.Query().Get(msdsn.Database)
}
