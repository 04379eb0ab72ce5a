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

// mysqlForJobs makes connections that report rows and warnings, and whose sessions can be made as new.
type mysqlForJobs struct {
	driver.Connector
	renewal *mysqlRenewal
}

// newMySQLForJobs makes them. plain says that what the driver sends is neither encrypted nor compressed.
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
	wire    *mysqlWire // nil: what the driver sends is not seen
	renewal *mysqlRenewal
	direct  bool // the session of the server is this connection's own
	along   bool // what makes the session as new may go along with a statement
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

// mysqlRenewal is what makes sessions as new. The server resets neither the database nor what it has told the session of that
// one's character set; and a login sets what the driver was given.
type mysqlRenewal struct {
	texts    []string       // of the driver, between the ping that is a reset and the look
	commands []mysqlCommand // all of them
	joined   []byte
	apart    atomic.Bool // the server did not bear that all are sent in one trip
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

// resetMySQL makes a session as new, and says of it what mysqlLook does.
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

// reset makes the session as new. The first time each command waits for the answer to the one before it, and the look shows whether
// the server itself is at the other end. Where it is, the next time they are sent in one trip, and after that along with the last
// statement of an attempt. A proxy, or a server that loses commands which it has not asked for, costs time so, and nothing else.
func (c *mysqlJobConn) reset(ctx context.Context) (number int64, look string, err error) {
	oneTrip := c.direct && !c.renewal.apart.Load()
	switch {
	case c.wire.underway(): // along with the last statement
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

// renew lets the driver send the commands. Its own watch over a context would cost as much as all else it does here.
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

// Verbs of statements that are answered by one packet.
var mysqlShortAnswers = []string{"INSERT", "UPDATE", "DELETE", "REPLACE"}

// renewAlong lets what makes the session as new go along with a statement, which is the last of its attempt, and after which nothing
// is asked. Should it fail, the session ends, as it does after any error.
func (c *mysqlJobConn) renewAlong(ctx context.Context, query string) {
	const most = 8 << 10 // the server reads it before it answers
	if len(query) <= most && oneText.MatchString(query) && slices.Contains(mysqlShortAnswers, verb(query)) &&
		!returning.MatchString(query) && !mysqlMayWarn(query) {
		c.renewBehind(ctx)
	}
}

// renewBehind does so with what the driver sends next, if that is the last of its attempt.
func (c *mysqlJobConn) renewBehind(ctx context.Context) {
	if ctx.Value(last{}) != nil && c.along && !c.renewal.apart.Load() {
		c.wire.expect(c.renewal.commands, c.renewal.joined, true)
	}
}

// Close closes the connection. What was sent along is answered before, or the server would take it for one that broke.
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

// BeginTx begins a transaction, in one trip. None of its statements is sent before both are answered: nothing may take effect
// outside of it.
func (c *mysqlJobConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.wire != nil && c.wire.underway() { // along with a COMMIT that was refused
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

// Commit commits what there is.
func (t mysqlJobTx) Commit() error {
	t.c.renewBehind(t.ctx)
	return t.boundedTx.Commit()
}
