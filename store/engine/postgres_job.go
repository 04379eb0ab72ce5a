package engine

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

var postgresJobs = jobSQL{
	textArguments:   true,
	transactionOpen: postgresTransactionOpen,
	reset:           postgresReset,
	tellsOpen:       true,
	lasts:           postgresLasts,
	unsent:          postgresUnsent,
	held:            heldByPooler,
	savepointGone:   postgresSavepointGone,
	routineGone:     postgresRoutineGone,
	describe:        describePostgres,
	forRecord:       postgresForRecord,
	commitsNothing:  postgresCommitsNothing,
}

// Single statements, and the two ends of a DO block whose text is between dollar signs.
var (
	oneStatement = lazyregexp.New(`(?i)^\s*(ANALYZE|CALL|COPY|LOCK|MERGE|REFRESH|TRUNCATE|WITH)\s[^;]*;?\s*$`)
	program      = lazyregexp.New(`(?i)\bPROGRAM\b`) // COPY may start one, and what it has done stays
	beginOfBlock = lazyregexp.New(`(?i)^\s*DO\s+(LANGUAGE\s+\w+\s+)?\$\w*\$`)
	endOfBlock   = lazyregexp.New(`(?i)^\s*(LANGUAGE\s+\w+\s*)?;?\s*$`)
)

// postgresCommitsNothing knows that in a transaction which a client has begun, PostgreSQL refuses COMMIT and ROLLBACK in
// procedures and in DO.
func postgresCommitsNothing(text string) bool {
	if program.MatchString(text) {
		return false
	}
	begin := beginOfBlock.FindString(text)
	if begin == "" {
		return oneStatement.MatchString(text)
	}
	_, after, closed := strings.Cut(text[len(begin):], begin[strings.IndexByte(begin, '$'):])
	return closed && endOfBlock.MatchString(after)
}

func postgresTransactionOpen(_ context.Context, conn *sql.Conn) (open bool, err error) {
	err = conn.Raw(func(c any) error {
		p, ok := c.(*postgresJobConn)
		open = ok && p.pg().TxStatus() != 'I'
		return nil
	})
	return open, err
}

// postgresForRecord undoes SET ROLE and the like, and another encoding. A procedure may set something, too, and so may set_config,
// or an update of pg_settings: what they set may be an argument, or a value of a table.
// What waits for the end of the transaction, such as deferred constraints, is still done in that role.
func postgresForRecord(_, _ string, plain, others []string) (list []string) {
	sets := func(text string) bool { return hasWord(text, "set_config", "pg_settings") }
	all := slices.ContainsFunc(slices.Concat(plain, others), sets)
	has := func(words ...string) bool {
		return all || slices.ContainsFunc(others, func(text string) bool { return hasWord(text, words...) || hasWord(text, "call") || verb(text) == "DO" })
	}
	if has("role", "authorization") {
		list = append(list, "SET CONSTRAINTS ALL IMMEDIATE", "RESET SESSION AUTHORIZATION", "RESET ROLE")
	}
	if has("encoding", "names") {
		list = append(list, "SET LOCAL client_encoding = 'UTF8'")
	}
	return list
}

// postgresUnsent reports whether the error says that the session was idle for too long.
func postgresUnsent(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == "57P05" && severity(pe) != raised
}

func postgresSavepointGone(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && (pe.Code == "3B001" || pe.Code == "25P01")
}

// postgresRoutineGone recognizes a call by the number of a routine (see goesWithCommit) that was made anew, with another number. A
// name is found in every case, as a routine is replaced in one transaction. An error about a name has a place in a text.
func postgresRoutineGone(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == "42883" && pe.Position == 0 && pe.InternalPosition == 0 && pe.Where == ""
}

var inBlock = lazyregexp.New(`(?m)^PL/pgSQL function inline_code_block line (\d+) `)

func describePostgres(err error, text string) (Failure, bool) {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return Failure{}, false
	}
	f := Failure{Code: pe.Code, Severity: severity(pe), Detail: pe.Detail, Hint: pe.Hint}
	if pe.Position > 0 {
		f.Line = lineOf(text, int(pe.Position))
	} else {
		f.Line = number(inBlock, pe.Where)
	}
	return f, true
}

// lineOf returns the line of the nth character of a text. Both count from 1.
func lineOf(text string, position int) int {
	r := []rune(text)
	return 1 + strings.Count(string(r[:min(position-1, len(r))]), "\n")
}
