package engine

import "testing"

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
