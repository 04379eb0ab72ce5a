package engine

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// The message of an error may leave out which objects it is about: then the advice has them.
func TestAdviceOnPostgres(t *testing.T) {
	seven := strings.TrimSuffix(strings.Repeat("view v depends on table dbjobs.gaps\n", 7), "\n")
	for _, c := range []struct {
		is   pgconn.PgError
		want string
	}{
		{pgconn.PgError{Code: "2BP01", Detail: "view a depends on table dbjobs.gaps\nview b depends on view a"}, "; view a depends on table dbjobs.gaps, view b depends on view a: drop"},
		{pgconn.PgError{Code: "2BP01", Detail: seven}, " dbjobs.gaps, and 2 more: drop"},
	} {
		if got := adviseOnPostgres(&c.is); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.is.Code, c.is.Detail, got, c.want)
		}
	}
}
