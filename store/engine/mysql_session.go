package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// mysqlForJobs makes connections that report rows and warnings, and whose sessions can be made like new ones.
type mysqlForJobs struct {
	driver.Connector
	renewal *mysqlRenewal
}

// newMySQLForJobs returns a mysqlForJobs. plain says that the connection is neither encrypted nor compressed.
func newMySQLForJobs(c *mysql.Config, plain bool) (driver.Connector, error) {
	if plain {
		c.DialFunc = dialMySQL
	}
	renewal := newMySQLRenewal(c)
	bare, err := mysql.NewConnector(c)
	return mysqlForJobs{mysqlBounded{bare, c.Timeout}, renewal}, err
}

// Connect connects.
func (c mysqlForJobs) Connect(ctx context.Context) (driver.Conn, error) {
	job := &mysqlJobConn{renewal: c.renewal}
	inner, err := c.Connector.Connect(context.WithValue(ctx, wireOf{}, job))
	if err != nil {
		return nil, err
	}
	job.boundedConn = inner.(*boundedConn)
	return job, nil
}

type mysqlJobConn struct {
	*boundedConn
	wire    *mysqlWire // nil: the commands of the driver are not seen
	renewal *mysqlRenewal
	direct  bool // the session of the server is this connection's own
	along   bool // a renewal may be sent along with a statement
}

// mysqlUnreset is 0 in a session that got its settings at the login, or after a reset. It is larger if
// the settings were set again without a reset.
const mysqlUnreset = "@dbjobs_unreset"

// mysqlLook asks for the number of the session, and for values that show whether the session is like a
// new one. They may show that it is not, although the server has confirmed the reset: a proxy did not
// pass the command on, or it gave another session of the server. The session may also have another
// role, or the account or a proxy may set limits and settings at the login. A reset does not execute
// init_connect again. So on a server that has an init_connect, no session is like another. It must not warn:
// a step that reads no table and warns of nothing would report that warning. MariaDB's type of UUID() does,
// where the other value of IF is empty. The server has the first line, for mysqlStop, and the role the second one, for mysqlForRecord.
const mysqlLook = "SELECT CONNECTION_ID(), CONCAT(" + mysqlServer + ", '\n', " + mysqlRole + ", '\n', CONCAT_WS(',', " + mysqlUnreset +
	", CURRENT_USER(), @@sql_mode, @@time_zone, @@foreign_key_checks, @@unique_checks, " +
	"@@group_concat_max_len, @@lock_wait_timeout, @@innodb_lock_wait_timeout, @@wait_timeout, " +
	"IF(COALESCE(@@global.init_connect, '') = '', '', CONCAT(UUID())) /*M! , @@tx_isolation, @@max_statement_time */))"

// mysqlServer tells a server from others behind the same address.
const mysqlServer = "/*M! CONCAT(@@hostname, ':', @@port, ':', @@server_id) */ /*!80003 @@server_uuid */"

// mysqlRole is the role of a session as SET ROLE takes it; on MySQL these may be several.
const mysqlRole = "/*M! IF(CURRENT_ROLE() IS NULL, 'NONE', QUOTE(CURRENT_ROLE())) */ /*!80003 CURRENT_ROLE() */"

// lastsInMySQL matches statements whose effect the server does not undo: the list of SHOW PROFILES.
var lastsInMySQL = lazyregexp.New(`(?i)profil`)

// mysqlRenewal holds the commands that make sessions like new ones. A reset restores neither the
// database nor the value that the session has for the character set of that database. It also does not
// set the variables that the driver sets at a login.
type mysqlRenewal struct {
	texts    []string       // statements of the driver, after the ping that becomes a reset and before mysqlLook
	commands []mysqlCommand // all commands of a renewal
	joined   []byte
	apart    atomic.Bool // the server failed when all commands were sent in one trip
}

func newMySQLRenewal(c *mysql.Config) *mysqlRenewal {
	set := make([]string, 0, len(c.Params))
	for name, value := range c.Params {
		set = append(set, name+" = "+value)
	}
	r := &mysqlRenewal{texts: []string{"USE `" + strings.ReplaceAll(c.DBName, "`", "``") + "`", "SET " + strings.Join(set, ", ")}}
	r.commands = []mysqlCommand{
		{mysqlPacket(mysqlPing, ""), mysqlPacket(mysqlReset, "")},
		{mysqlPacket(mysqlQuery, r.texts[0]), mysqlPacket(mysqlInitDB, c.DBName)},
		queryOnWire(r.texts[1]),
		queryOnWire(mysqlLook),
	}
	r.joined = joined(r.commands)
	return r
}

// resetMySQL makes a session like a new one, and returns the values of mysqlLook.
func resetMySQL(ctx context.Context, conn *sql.Conn) (number int64, look string, err error) {
	err = conn.Raw(func(c any) error {
		j, ok := c.(*mysqlJobConn)
		if !ok || j.wire == nil {
			return errUnwired
		}
		number, look, err = j.reset(ctx)
		return err
	})
	return number, look, err
}

// reset makes the session like a new one. The first time, each command waits for the answer to the one before
// it, and mysqlLook shows whether the server itself is at the other end. If it is, the next renewal sends all
// commands in one trip. The renewals after that go along with the last statement of an attempt. With a proxy,
// or a server that loses commands which it does not expect yet, this costs time and nothing else.
func (c *mysqlJobConn) reset(ctx context.Context) (number int64, look string, err error) {
	oneTrip := c.direct && !c.renewal.apart.Load()
	switch {
	case c.wire.underway(): // they were sent along with the last statement
	case oneTrip:
		c.wire.expect(c.renewal.commands, c.renewal.joined, false)
	default:
		c.wire.expect(c.renewal.commands, nil, false)
	}
	number, look, err = c.renew(ctx)
	var answer *mysql.MySQLError
	switch {
	case err == nil:
		c.along, c.direct = oneTrip, number == c.wire.number
	case oneTrip && !errors.As(err, &answer):
		c.renewal.apart.Store(true)
	}
	return number, look, err
}

// renew lets the driver send the commands. The driver's own watch over a context would cost as much as
// all else that the driver does here.
func (c *mysqlJobConn) renew(ctx context.Context) (number int64, look string, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.wire.Close() }) // the driver finds it closed
	defer stop()
	ctx = context.WithoutCancel(ctx)
	if err = c.Ping(ctx); err != nil {
		return 0, "", err
	}
	for _, text := range c.renewal.texts {
		if _, err := c.boundedConn.ExecContext(ctx, text, nil); err != nil {
			return 0, "", err
		}
	}
	err = c.each(ctx, mysqlLook, func(v []driver.Value) {
		var n sql.Null[int64]
		var what sql.NullString
		_ = n.Scan(v[0]) // a number, and a text
		_ = what.Scan(v[1])
		number, look = n.V, what.String
	})
	return number, look, err
}

// mysqlShortAnswers lists the verbs of statements that are answered by one packet.
var mysqlShortAnswers = []string{"INSERT", "UPDATE", "DELETE", "REPLACE"}

// renewAlong lets a renewal go along with a statement that is the last of its attempt. Nothing may be
// asked after the statement. If it fails, the session ends, as it does after any error.
func (c *mysqlJobConn) renewAlong(ctx context.Context, query string) {
	const most = 8 << 10 // the server reads it before it answers
	if len(query) <= most && oneText.MatchString(query) && slices.Contains(mysqlShortAnswers, verb(query)) &&
		!returning.MatchString(query) && !mysqlMayWarn(query) {
		c.renewBehind(ctx)
	}
}

// renewBehind lets a renewal go along with the next command of the driver, if that is the last of its attempt.
func (c *mysqlJobConn) renewBehind(ctx context.Context) {
	if ctx.Value(last{}) != nil && c.along && !c.renewal.apart.Load() {
		c.wire.expect(c.renewal.commands, c.renewal.joined, true)
	}
}

// Close closes the connection. Before that, it reads the answers to commands that were sent along.
// Otherwise the server would count the connection as one that broke.
func (c *mysqlJobConn) Close() error {
	if c.wire != nil && c.wire.underway() {
		ctx, cancel := context.WithTimeout(context.Background(), renewal)
		_, _, _ = c.renew(ctx) // the connection ends anyway
		cancel()
	}
	if c.wire != nil {
		c.wire.expect(nil, nil, false)
	}
	return c.boundedConn.Close()
}

// The statements of the driver that begin a transaction of an atomic step.
var (
	mysqlBegin       = []mysqlCommand{queryOnWire("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"), queryOnWire("START TRANSACTION")}
	mysqlBeginJoined = joined(mysqlBegin)
)

// BeginTx begins a transaction, in one trip. No statement of the transaction is sent before both
// commands are answered, because nothing may take effect outside of the transaction.
func (c *mysqlJobConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.wire != nil && c.wire.underway() { // they were sent along with a COMMIT that was refused
		if _, _, err := c.renew(ctx); err != nil {
			return nil, driver.ErrBadConn
		}
	}
	if c.along && sql.IsolationLevel(o.Isolation) == sql.LevelReadCommitted && !o.ReadOnly {
		c.wire.expect(mysqlBegin, mysqlBeginJoined, false)
	}
	if _, err := c.boundedConn.BeginTx(ctx, o); err != nil {
		return nil, err
	}
	return mysqlJobTx{boundedTx{ctx, c.boundedConn}, c}, nil
}

type mysqlJobTx struct {
	boundedTx
	c *mysqlJobConn
}

// Commit commits the transaction. A renewal may go along with the COMMIT.
func (t mysqlJobTx) Commit() error {
	t.c.renewBehind(t.ctx)
	return t.boundedTx.Commit()
}
