package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

var mysqlJobs = jobSQL{
	refuses:         mysqlRefuses,
	textPlaces:      mysqlTextPlaces,
	look:            mysqlLook,
	reset:           resetMySQL,
	lasts:           func(text string) bool { return lastsInMySQL.MatchString(text) },
	stop:            mysqlStop,
	elsewhere:       noSuchMySQLSession,
	transactionOpen: mysqlTransactionOpen,
	savepointGone:   mysqlSavepointGone,
	routineGone:     mysqlRoutineGone,
	unsent:          func(err error) bool { return classifyMySQL(err) == gone },
	undone:          undoneByMySQL,
	forRecord:       mysqlForRecord,
	tableOptions:    " ENGINE = InnoDB", // the default engine for temporary tables may have no transactions
	describe:        describeMySQL,
}

// placesInMySQL matches placeholders. It also matches whole texts, names and comments, so that no
// question mark in them counts as a placeholder.
var placesInMySQL = lazyregexp.New("(?is)'(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|/\\*.*?\\*/|--(?:[^\\S\\n][^\\n]*|\\n|$)|#[^\\n]*|\\?(\\s+AS\\s+CHAR(?:ACTER)?\\b)?")

// mysqlTextPlaces reports for each placeholder whether it is in a CAST(? AS CHAR).
func mysqlTextPlaces(text string) (list []bool) {
	for _, found := range placesInMySQL.FindAllStringSubmatch(text, -1) {
		if found[0][0] == '?' {
			list = append(list, found[1] != "")
		}
	}
	return list
}

func mysqlTransactionOpen(ctx context.Context, conn *sql.Conn) (open bool, err error) {
	err = conn.QueryRowContext(ctx, "SELECT @@in_transaction LIMIT 1").Scan(&open) // otherwise sql_select_limit applies
	var me *mysql.MySQLError
	if errors.As(err, &me) && me.Number == 1193 { // MySQL has no such variable; it refuses SET TRANSACTION while a transaction is open
		me = nil
		_, err = conn.ExecContext(ctx, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
		if open = errors.As(err, &me) && me.Number == 1568; open {
			err = nil
		}
	}
	return open, err
}

// mysqlForRecord undoes SET ROLE, USE and SET. A procedure may set something, too. Plain statements cannot. look is the answer to
// mysqlLook.
func mysqlForRecord(database, look string, _, texts []string) (list []string) {
	has := func(words ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return hasWord(text, words...) || hasWord(text, "call", "execute") })
	}
	_, look, _ = strings.Cut(look, "\n")
	if role, _, ok := strings.Cut(look, "\n"); ok && has("role") { // at first: the other role may not use the database
		list = append(list, "SET ROLE "+role)
	}
	if slices.ContainsFunc(texts, func(text string) bool { return verb(text) == "USE" }) {
		list = append(list, "USE `"+strings.ReplaceAll(database, "`", "``")+"`")
	}
	if has("set") {
		list = append(list, mysqlOfRecord)
	}
	return list
}

var mysqlOfRecord = func() string {
	settings := maps.Clone(mysqlOfEach)
	maps.Copy(settings, mysqlOfStore)
	settings["timestamp"] = "DEFAULT" // the session's clock, which dates the record; secure_timestamp allows this
	var set []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		set = append(set, name+" = "+settings[name])
	}
	return "SET " + strings.Join(set, ", ")
}()

// mysqlStop names the number of a session only to the server that gave it: another server behind the same address may have given it
// to a session of others. No session has the number 0. look is the answer to mysqlLook.
func mysqlStop(number int64, look string) string {
	server, _, _ := strings.Cut(look, "\n")
	return fmt.Sprintf("KILL QUERY IF(%s = x'%x', %d, 0)", mysqlServer, server, number)
}

func noSuchMySQLSession(err error) bool {
	var me *mysql.MySQLError
	return errors.As(err, &me) && me.Number == 1094
}

func mysqlSavepointGone(err error) bool {
	var me *mysql.MySQLError
	return errors.As(err, &me) && me.Number == 1305
}

// mysqlRoutineGone recognizes a routine that was dropped, and the grants on that single routine, which go with it.
func mysqlRoutineGone(err error) bool {
	var me *mysql.MySQLError
	return errors.As(err, &me) && (me.Number == 1305 || me.Number == 1370) && strings.Contains(me.Message, ".dbjobs_")
}

// undoneByMySQL reports whether the engine undid the whole transaction at an error: at a conflict, or because it has no room for
// more locks (1206). A lock timeout (1205) undoes only the statement, unless innodb_rollback_on_timeout is set, so the server is
// asked.
func undoneByMySQL(ctx context.Context, tx *sql.Tx, err error, _ bool) bool {
	var me *mysql.MySQLError
	if !errors.As(err, &me) {
		return false
	}
	if me.Number == 1205 {
		var whole bool
		asked := tx.QueryRowContext(ctx, "SELECT @@innodb_rollback_on_timeout").Scan(&whole)
		return asked == nil && whole
	}
	return me.Number == 1213 || me.Number == 1020 || me.Number == 1206
}

var (
	atLine   = lazyregexp.New(`at line (\d+)$`)
	sqlState = lazyregexp.New(`^[0-9A-Z]{5}$`)
)

func describeMySQL(err error, _ string) (Failure, bool) {
	var me *mysql.MySQLError
	if !errors.As(err, &me) {
		return Failure{}, false
	}
	f := Failure{Code: strconv.Itoa(int(me.Number)), Line: number(atLine, me.Message)}
	if state := string(me.SQLState[:]); sqlState.MatchString(state) {
		f.Code += fmt.Sprintf(" (%s)", state)
	}
	return f, true
}
