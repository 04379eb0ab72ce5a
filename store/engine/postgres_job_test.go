package engine

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Only what is certain counts: of any other text, an attempt that has lost its session may have committed a part.
func TestPostgresCommitsNothing(t *testing.T) {
	for text, want := range map[string]bool{
		"CALL refresh()": true, " call refresh( 1 ) ; ": true, "REFRESH MATERIALIZED VIEW v": true, "WITH x AS (SELECT 1) SELECT * FROM x": true,
		"DO $$ BEGIN PERFORM 1; COMMIT; END $$": true, "do language plpgsql $a$ BEGIN; END; $a$;": true, "DO $$ BEGIN END $$ LANGUAGE plpgsql": true,
		"COPY t TO PROGRAM 'x'": false, "DO $$ BEGIN COPY t TO PROGRAM 'x'; END $$": false, "COPY t FROM '/x'": true, "ANALYZE t": true, "COMMIT": false, "CREATE TABLE t (n int)": false, "CALL a(); COMMIT": false, "DO $$ BEGIN END $$; COMMIT": false, "DO $$ BEGIN END $$; COMMIT; DO $$ BEGIN END $$": false,
		"DO $a$ $$; COMMIT; SELECT $$ $a$": true, "DO $$ BEGIN": false, "DO 'BEGIN END'": false, "END": false, "ABORT": false, "PREPARE TRANSACTION 'x'": false,
		"CALL a() /* ; */": false, "-- x\nCALL a()": false, "EXECUTE x": false, "SET x = 1": false, "": false,
	} {
		if got := postgresCommitsNothing(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// Only a call by number counts: an error about a name has a place in a text, and one of a trigger says in which function it is.
func TestRoutineOfPostgresThatIsMadeAnew(t *testing.T) {
	for want, list := range map[bool][]pgconn.PgError{
		true: {{Code: "42883", Message: "function with OID 16831 does not exist"}},
		false: {{Code: "42883", Message: "function rollup() does not exist", Position: 8},
			{Code: "42883", Message: "function rollup() does not exist", InternalPosition: 8, InternalQuery: "SELECT rollup()", Where: "PL/pgSQL function late() line 1 at PERFORM"},
			{Code: "42883", Message: "no", Where: "PL/pgSQL function late() line 1 at RAISE"},
			{Code: "42501", Message: "permission denied for function record_attempt"}},
	} {
		for _, e := range list {
			if got := postgresRoutineGone(&e); got != want {
				t.Errorf("%+v: %t", e, got)
			}
		}
	}
}
