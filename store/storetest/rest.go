package storetest

import (
	"database/sql/driver"
	"time"

	"modernc.org/sqlite"
)

// SQLite has no function that sleeps. A statement that computes for ever would use a core for as long as
// a test lets it. So all connections of the tests have rest(), which returns 1 after a millisecond.
// SQLite checks between two calls of it, as between any two steps of a statement, whether it is to stop.
func init() {
	sqlite.MustRegisterScalarFunction("rest", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		time.Sleep(time.Millisecond)
		return int64(1), nil
	})
}

// Resting is a query of SQLite that returns one number. It takes longer than any test, and needs no CPU.
const Resting = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + rest() FROM c) SELECT count(*) FROM c"
