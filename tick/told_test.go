package tick_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// numbers is a query that returns the numbers from 1 to n.
func numbers(n int) string {
	return fmt.Sprintf("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < %d) SELECT n FROM c", n)
}

// The output of an SQL attempt has the rows that its statements return, up to 20, with columns in order, and the other
// messages of the engine. It has them also if the attempt fails, and also in one transaction.
func TestSQLTellsRowsAndNotices(t *testing.T) {
	type told struct {
		statements []string
		want       string // of the output; * stands for anything
		rows       int64  // -1: it fails
	}
	both := map[string]told{
		"nothing":        {[]string{"INSERT INTO effects VALUES (1, 'x')"}, "", 1},
		"a word":         {[]string{"INSERT INTO effects VALUES (1, 'not returning'), (2, 'x')"}, "", 2},
		"a row":          {[]string{"SELECT 2 AS b, 'x' AS a, NULL AS c"}, `{"b": 2, "a": "x", "c": null}`, 1},
		"no row":         {[]string{"SELECT 1 AS n FROM effects WHERE n = 99"}, "", 0},
		"several":        {[]string{"INSERT INTO effects VALUES (7, 'y')", "SELECT 1 AS one -- a remark", "SELECT 2 AS two;"}, "{\"one\": 1}\n{\"two\": 2}", 3},
		"many rows":      {[]string{numbers(1000)}, "{\"n\": 1}\n{\"n\": 2}\n*{\"n\": 20}\n… 980 more rows", 1000},
		"text":           {[]string{"SELECT 'line\nend \"quoted\" <&> 語' AS told"}, `{"told": "line\nend \"quoted\" <&> 語"}`, 1},
		"long":           {[]string{"SELECT '" + strings.Repeat("x", 5000) + "' AS told"}, `{"told": "xxx*x…"}`, 1},
		"failure":        {[]string{"SELECT 1 AS n", "SELECT broken"}, "{\"n\": 1}", -1},
		"a with":         {[]string{"WITH w AS (SELECT 5 AS n) SELECT n, n + 1 AS m FROM w ORDER BY n"}, `{"n": 5, "m": 6}`, 1},
		"a word of with": {[]string{"WITH w AS (SELECT 5 AS n) SELECT REPLACE('update', 'up', '') AS n FROM w WHERE 'delete' <> '('"}, `{"n": "date"}`, 1},
		"semicolon":      {[]string{"SELECT 'a; b' AS n /* ; */; -- it; is done"}, `{"n": "a; b"}`, 1},
		"banner":         {[]string{"--\n-- a check\n--\nSELECT 5 AS n", "--\r\nSELECT 6 AS n\r\n--"}, "{\"n\": 5}\n{\"n\": 6}", 2},
		"ordered":        {[]string{"SELECT * FROM (SELECT 1 AS n UNION ALL SELECT 3 UNION ALL SELECT 2) AS q ORDER BY n DESC"}, "{\"n\": 3}\n{\"n\": 2}\n{\"n\": 1}", 3},
	}
	own := map[string]map[string]told{
		"postgres": {
			"returning":      {[]string{"INSERT INTO effects VALUES (3, 'x'), (4, 'y') RETURNING n"}, "{\"n\": 3}\n{\"n\": 4}", 2},
			"notice":         {[]string{"DROP TABLE IF EXISTS nowhere"}, `NOTICE: table "nowhere" does not exist, skipping`, 0},
			"raised":         {[]string{"DO $$ BEGIN RAISE WARNING 'so' USING DETAIL = 'a', HINT = 'b'; END $$"}, "WARNING: so\nDETAIL: a\nHINT: b", 0},
			"many notices":   {[]string{"DO $$ BEGIN FOR i IN 1..100 LOOP RAISE NOTICE '%', i; END LOOP; END $$"}, "NOTICE: 1\n*NOTICE: 20\n… 80 more notices", 0},
			"one text":       {[]string{"SELECT 1 AS a; INSERT INTO effects VALUES (6, 'z'); SELECT 2 AS b"}, "{\"a\": 1}\n{\"b\": 2}", -2},
			"types":          {[]string{`SELECT 1.50::numeric AS d, true AS y, '{"a": [1]}'::jsonb AS j, date '2026-01-02' AS day, 'NaN'::float8 AS nan, '\x00ff'::bytea AS raw`}, `{"d": 1.50, "y": true, "j": {"a": [1]}, "day": "2026-01-02", "nan": "NaN", "raw": "\\x00ff"}`, 1},
			"fails in block": {[]string{"DO $$ BEGIN RAISE NOTICE 'before'; PERFORM 1 / 0; END $$"}, "NOTICE: before\nCONTEXT: *PL/pgSQL function inline_code_block line 1 at PERFORM", -1},
		},
		"mariadb": {
			"returning": {[]string{"INSERT INTO effects VALUES (3, 'x'), (4, 'y') RETURNING n"}, "{\"n\": 3}\n{\"n\": 4}", 2},
			"warning":   {[]string{"DROP TABLE IF EXISTS nowhere"}, "NOTE: Unknown table '*nowhere' (1051)", 0},
			"ignored":   {[]string{"INSERT IGNORE INTO strict VALUES (1), (1)"}, "WARNING: Duplicate entry '1' for key '*PRIMARY' (1062)", 1},
			"prepared":  {[]string{"PREPARE s FROM 'SELECT 5 AS n'", "EXECUTE s", "PREPARE s FROM 'INSERT INTO effects VALUES (3, 4)'", "EXECUTE s"}, `{"n": 5}`, 2},
			"block":     {[]string{"BEGIN NOT ATOMIC SELECT 6 AS n; END"}, `{"n": 6}`, 1},
			"branch":    {[]string{"IF 1 THEN SELECT 7 AS n; END IF", "FOR i IN 1..2 DO SELECT i AS n; END FOR", "CASE WHEN 1 THEN SELECT 3 AS n; END CASE", "IF 0 THEN SELECT 7 AS n; END IF"}, "{\"n\": 7}\n{\"n\": 1}\n{\"n\": 2}\n{\"n\": 3}", 4},
			"repeated":  {[]string{"WHILE @a IS NULL DO SELECT 8 AS n; SET @a = 1; END WHILE", "REPEAT SELECT 9 AS n; SET @b = 1; UNTIL @b END REPEAT"}, "{\"n\": 8}\n{\"n\": 9}", 2},
			"limited":   {[]string{"SET STATEMENT max_statement_time = 9 FOR SELECT 5 AS n", "SET STATEMENT max_statement_time = 9 FOR INSERT INTO effects VALUES (3, 'FOR SELECT')"}, `{"n": 5}`, 2},
			"partition": {[]string{"ALTER TABLE parts CHECK PARTITION ALL"}, `{"Table": "*"Msg_text": "OK"}`, 1},
			"versioned": {[]string{"/*! SELECT 5 AS n */", "/*!40000 SELECT 6 AS n */"}, "{\"n\": 5}\n{\"n\": 6}", 2},
			"handler":   {[]string{"INSERT INTO effects VALUES (5, 'h')", "HANDLER effects OPEN", "HANDLER effects READ FIRST", "HANDLER effects CLOSE"}, `{"n": *`, 2},
			"procedure": {[]string{"CALL rows_of()"}, "{\"a\": 1}\n{\"b\": 2}", 2},
			"changes":   {[]string{"CALL changes()"}, "", 2},
			"loop":      {[]string{"CALL numbers(100)", "SELECT 0 AS n"}, "{\"n\": 1}\n*{\"n\": 20}\n… 81 more rows", 101},
			"no days":   {[]string{"SELECT * FROM days"}, `{"zero": "0000-00-00", "part": "2026-00-00", "at": "2026-02-00 00:00:00"}`, 1},
			"types":     {[]string{"SELECT 1.50 AS d, TIMESTAMP'2026-01-02 03:04:05.5' AS at, DATE'2026-01-02' AS day, X'00ff' AS raw"}, `{"d": 1.50, "at": "2026-01-02 03:04:05.5", "day": "2026-01-02", "raw": "0x00ff"}`, 1},
		},
		"sqlite": {
			"returning": {[]string{"INSERT INTO effects VALUES (3, 'x'), (4, 'y') RETURNING n"}, "{\"n\": 3}\n{\"n\": 4}", 2},
			"with":      {[]string{"WITH w AS (SELECT 5 AS n) INSERT INTO effects SELECT n, 'x' FROM w RETURNING n"}, `{"n": 5}`, 1},
			"names":     {[]string{"WITH replace AS (SELECT 5 AS n), \"delete\" AS (SELECT 6 AS n), values_of(m) AS (SELECT 7) SELECT replace.n, m FROM replace, values_of"}, `{"n": 5, "m": 7}`, 1},
			"changing":  {[]string{"WITH w AS (SELECT 5 AS n) INSERT INTO effects SELECT n, 'x' FROM w"}, "", 1},
			"open":      {[]string{"SELECT '/*' AS n /* a remark, which is open *"}, `{"n": "/*"}`, 1},
			"open; too": {[]string{"SELECT '/*' AS n /* a remark; which is open *"}, `{"n": "/*"}`, 1},
			"explain":   {[]string{"EXPLAIN QUERY PLAN SELECT 1"}, `{"id": *"detail": "SCAN CONSTANT ROW"}`, 1},
			"pragma":    {[]string{"PRAGMA integrity_check"}, `{"integrity_check": "ok"}`, 1},
			"types":     {[]string{"SELECT 1.5 AS d, x'00ff' AS raw, 9e999 AS inf"}, `{"d": 1.5, "raw": "0x00ff", "inf": "+Inf"}`, 1},
			"instants":  {[]string{"SELECT * FROM days"}, `{"at": "2026-01-05T08:05:00.000000Z", "zoned": "2026-01-05 08:05:00+02:00", "day": "2026-01-05 10:00"}`, 1},
			"changed":   {[]string{"UPDATE days SET day = day RETURNING at"}, `{"at": "2026-01-05T08:05:00.000000Z"}`, 1},
		},
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int, told varchar(100))")
		if d.Engine == "sqlite" {
			d.Exec(t, "CREATE TABLE days (at datetime, zoned timestamp, day date)")
			d.Exec(t, "INSERT INTO days VALUES ('2026-01-05T08:05:00.000000Z', '2026-01-05 08:05:00+02:00', '2026-01-05 10:00')")
		}
		if d.Engine == "mariadb" {
			d.Exec(t, "CREATE TABLE strict (n int PRIMARY KEY)")
			d.Exec(t, "CREATE TABLE parts (n int) PARTITION BY HASH (n) PARTITIONS 2")
			d.Exec(t, "CREATE TABLE days (zero date, part date, at datetime)")
			d.Exec(t, "SET sql_mode = ''") // a stricter server takes no such days
			d.Exec(t, "INSERT INTO days VALUES ('0000-00-00', '2026-00-00', '2026-02-00 00:00:00')")
			d.Exec(t, "SET sql_mode = DEFAULT")
			d.Exec(t, "CREATE PROCEDURE rows_of() BEGIN SELECT 1 AS a; SELECT 2 AS b; END")
			d.Exec(t, "CREATE PROCEDURE numbers(most int) BEGIN DECLARE n int DEFAULT 1; WHILE n <= most DO SELECT n; SET n = n + 1; END WHILE; END")
			d.Exec(t, "CREATE PROCEDURE changes() INSERT INTO effects VALUES (1, 'p'), (2, 'p')")
		}
		cases := map[string]told{}
		for _, from := range []map[string]told{both, own[d.Engine]} {
			for name, c := range from {
				if d.Server == "mysql" && slices.Contains([]string{"returning", "block", "branch", "repeated", "limited"}, name) { // it has none of these
					continue
				}
				cases[name] = c
				if name != "warning" && name != "ignored" && name != "partition" { // DDL ends a transaction there, and the rows exist already
					cases[name+", atomic"] = c
				}
			}
		}
		var defs store.Definitions
		for name, c := range cases {
			spec, err := json.Marshal(executor.SQLSpec{SQL: executor.Texts(c.statements...), Atomic: strings.HasSuffix(name, ", atomic")})
			if err != nil {
				t.Fatal(err)
			}
			defs.Jobs = append(defs.Jobs, store.Job{Name: name, Steps: []store.Step{{Executor: "sql", Spec: spec}}})
		}
		ticktest.Apply(t, d, defs)
		for _, j := range defs.Jobs {
			ticktest.Request(t, d, j.Name)
		}
		ticktest.Run(t, d)
		for name, c := range cases {
			a := ticktest.LastRun(t, d, name).Tries[0]
			if failed := a.State == store.Failed; failed != (c.rows == -1) {
				t.Errorf("%s: %s: %s", name, a.State, a.Error)
			}
			if head, tail, _ := strings.Cut(c.want, "*"); !strings.HasPrefix(a.Output, head) || !strings.HasSuffix(a.Output, tail) || c.want == "" && a.Output != "" {
				t.Errorf("%s: told\n%s\nwant\n%s", name, a.Output, c.want)
			}
			if c.rows >= 0 && (a.Rows == nil || *a.Rows != c.rows) {
				t.Errorf("%s: %v rows affected, want %d", name, a.Rows, c.rows)
			}
			for line := range strings.Lines(a.Output) {
				if strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
					t.Errorf("%s: %s is no JSON", name, line)
				}
			}
		}
	})
}

// A timeout also stops a query that has returned rows already, and would look for more rows for ever.
func TestAQueryIsStoppedBetweenItsRows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		endless := "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c WHERE n = 1 OR n < 0"
		if d.Engine == "mariadb" { // it limits recursion
			endless = "SELECT 1 UNION ALL SELECT SLEEP(600)"
		}
		step := ticktest.Step("", endless)
		step.Timeout = store.Duration(300 * time.Millisecond)
		opens := ticktest.Step("opens", "SELECT 1") // the session, however long a busy server takes for it
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{opens, step}}}})
		ticktest.Request(t, d, "job")
		ticktest.Run(t, d)
		if a := ticktest.LastRun(t, d, "job").Tries[1]; a.State != store.Failed || !strings.Contains(a.Error, "timeout after 300ms") {
			t.Errorf("%s: %s", a.State, a.Error)
		}
	})
}

// A check fails because of the rows that its statements return. In one transaction, nothing then takes effect.
func TestCheckFailsByRows(t *testing.T) {
	insert, some, none := "INSERT INTO effects VALUES (1)", "SELECT 1 AS n", "SELECT 1 AS n FROM effects WHERE n = 99"
	type check struct {
		statements []string
		failIf     string
		want       string // the error; empty: it succeeds
	}
	cases := map[string]check{
		"some of rows":       {[]string{insert, some}, "rows", "the check found rows, 1 of them (fail_if: rows)"},
		"none of rows":       {[]string{insert, none}, "rows", ""},
		"some of no-rows":    {[]string{insert, some}, "no-rows", ""},
		"none of no-rows":    {[]string{insert, none}, "no-rows", "the check found no row (fail_if: no-rows)"},
		"nothing to count":   {[]string{insert}, "no-rows", "fail_if: none of its statements returns rows that can be counted"},
		"not given":          {[]string{insert, some}, "", ""},
		"a remark before it": {[]string{insert, "/* all ; */ -- of it\n" + some}, "", ""},
	}
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		d.Exec(t, "CREATE TABLE effects (n int)")
		var defs store.Definitions
		effects := 0
		for name, c := range cases {
			for _, atomic := range []bool{false, true} {
				spec, err := json.Marshal(executor.SQLSpec{SQL: executor.Texts(c.statements...), Atomic: atomic, FailIf: c.failIf})
				if err != nil {
					t.Fatal(err)
				}
				if !atomic || c.want == "" {
					effects++
				}
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprintf("%s, %t", name, atomic), Steps: []store.Step{{Executor: "sql", Spec: spec}}})
			}
		}
		ticktest.Apply(t, d, defs)
		for _, j := range defs.Jobs {
			ticktest.Request(t, d, j.Name)
		}
		ticktest.Run(t, d)
		for _, j := range defs.Jobs {
			name, _, _ := strings.Cut(j.Name, ",")
			a := ticktest.LastRun(t, d, j.Name).Tries[0]
			if want := cases[name].want; (a.State == store.Failed) != (want != "") || !strings.Contains(a.Error, want) {
				t.Errorf("%s: %s: %q, want %q", j.Name, a.State, a.Error, want)
			}
			if strings.HasPrefix(name, "some") && a.Output != `{"n": 1}` {
				t.Errorf("%s: output %q", j.Name, a.Output)
			}
		}
		if n := d.Int(t, "SELECT count(*) FROM effects"); n != effects {
			t.Errorf("%d effects, want %d", n, effects)
		}
	})
}
