package engine

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A server that has no transaction ids left takes no writes, by a code for values that are too large. It is not the fault of the
// row of a job, and no pass can decide anything.
func TestAServerWithoutTransactionIDsTakesNoWrites(t *testing.T) {
	for _, routine := range []string{"GetNewTransactionId", "GetNewMultiXactId"} {
		err := &pgconn.PgError{Code: "54000", Severity: "ERROR", Message: "Datenbank nimmt keine Befehle an", Routine: routine}
		if !postgres.TakesNoWrites(err) || postgresAtFault(err) {
			t.Errorf("%s: takes no writes %t, a row is at fault %t", routine, postgres.TakesNoWrites(err), postgresAtFault(err))
		}
	}
	long := &pgconn.PgError{Code: "54000", Severity: "ERROR", Message: "index row size 2712 exceeds btree version 4 maximum 2704", Routine: "_bt_check_third_page"}
	if postgres.TakesNoWrites(long) || !postgresAtFault(long) {
		t.Error("a row that is too long for an index is at fault itself")
	}
}
