package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// The message of an error may leave out what its reader has to do, or to which of his objects: then the advice has it.
func TestAdviceOnPostgres(t *testing.T) {
	seven := strings.TrimSuffix(strings.Repeat("view v depends on table dbjobs.gaps\n", 7), "\n")
	for _, c := range []struct {
		is   pgconn.PgError
		want string
	}{
		{pgconn.PgError{Code: "2BP01", Detail: "view a depends on table dbjobs.gaps\nview b depends on view a"}, "; view a depends on table dbjobs.gaps, view b depends on view a: drop"},
		{pgconn.PgError{Code: "2BP01", Detail: seven}, " dbjobs.gaps, and 2 more: drop"},
		{pgconn.PgError{Code: "08P01", Message: "unsupported startup parameter: statement_timeout"}, "leave it out"},
		{pgconn.PgError{Code: "08P01", Message: "unsupported startup parameter in options: work_mem"}, "leave it out"},
		{pgconn.PgError{Code: "08P01", Message: "no more connections allowed (max_client_conn)"}, "raise that setting"},
		{pgconn.PgError{Code: "08P01", Message: "server login has been failing, try again later (server_login_retry)"}, "the log of PgBouncer"},
	} {
		if got := adviseOnPostgres(&c.is); !strings.Contains(got, c.want) {
			t.Errorf("%s %s%s: %q, want %q", c.is.Code, c.is.Message, c.is.Detail, got, c.want)
		}
	}
}

// A session that the server ended before it read a statement did nothing, so the statement is sent again. transaction_timeout also
// ends a statement that is being executed: that would take as long again, and the connection is not at fault.
func TestTimeoutsOfPostgres(t *testing.T) {
	db, err := New("postgres://u:p@127.0.0.1:1/d", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code    string
		again   bool
		setting string
	}{
		{"57P05", true, "idle_session_timeout"}, {"25P03", true, "idle_in_transaction_session_timeout"},
		{"25P04", false, "transaction_timeout"}, {"57014", false, "statement_timeout"},
	} {
		err := &pgconn.PgError{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: c.code, Message: "terminating connection"}
		sent := 0
		_, _ = insist(t.Context(), db.runner, writing, func() (int, error) {
			sent++
			return 0, err
		})
		told := db.interrupted(t.Context(), db.Wrap("asking", err))
		if again := sent > 1; again != c.again || db.e.Broken(err) != c.again || db.e.Transient(told) != c.again || errors.Is(told, ErrUnreachable) != c.again {
			t.Errorf("%s: sent %d times; broken %t, transient %t: %v", c.code, sent, db.e.Broken(err), db.e.Transient(told), told)
		}
		if !strings.Contains(told.Error(), c.setting+forLogin) {
			t.Errorf("%s: no advice: %v", c.code, told)
		}
	}
}
