package engine

import (
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
