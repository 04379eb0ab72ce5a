package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/scripts/prove"
)

// hostileText has characters that control a terminal: escapes that set its title and clear it, a bell, a return, a
// backspace, a control character of eight bits, and marks that reverse the direction of the text after them.
const hostileText = "\x1b]0;owned\a\x1b[2J\r\b\x7f\u009b31m\u202eabc\u2066"

// unprinted are the commands that print nothing of a database, with the reason.
var unprinted = map[string]string{
	"dbjobs apply": "needs a file", "dbjobs diff": "needs a file", "dbjobs import": "reads no database of dbjobs",
	"dbjobs rule": "needs no database", "dbjobs completion": "prints a script", "dbjobs version": "prints its own version",
	"dbjobs config": "prints the host's own file", "dbjobs report": "writes a file", "dbjobs schema": "prints what is built in",
}

// tellers are the commands that print most of the content of a database.
var tellers = map[string]bool{"list": true, "show": true, "history": true, "status": true, "errors": true, "missed": true, "pauses": true,
	"export": true, "check": true, "doctor": true, "upcoming": true, "simulate": true, "tick": true}

// TestHostileText: whatever a text of the database contains, no command sends it to the terminal unchanged. Without
// DBJOBS_PROVE, only the tables of the commands in tellers meet each column. Each of the other lines, which include
// JSON, runs in every fifth round. In the short form, each line runs in every tenth round.
func TestHostileText(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	file := filepath.Join(base, "jobs.yaml")
	if err := os.WriteFile(file, []byte(`
manifest: jobs
groups: {etl: 2}
schedules:
  nightly: {rule: 30 2 * * *, zone: Europe/Berlin, description: at night}
jobs:
  rollup: {schedule: nightly, tags: [a], group: etl, description: sums, retry: 1, sql: SELECT 1 FROM nowhere, on: {failed: tell}}
  tell: {sql: SELECT 1}
  good: {rule: every 5m, sql: SELECT 2, keep: {runs: 3}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(w *warm, home string, args ...string) (string, int) {
		of := map[string]string{"HOME": home}
		env := func(name string) (string, bool) { value, ok := of[name]; return value, ok }
		var out, talk bytes.Buffer
		code := runKept(t.Context(), w, args, strings.NewReader(""), &out, &talk, env, nil)
		return out.String() + talk.String(), code
	}
	for _, args := range []string{"apply -f " + file, "job run-now rollup --reason because", "job run-now good", "tick", "job pause good --reason why", "job run-now rollup"} {
		if out, code := do(nil, base, strings.Fields(args)...); code != exitDone {
			t.Fatalf("%s: code %d, %s", args, code, out)
		}
	}
	planted, lines, every := 0, printing(), 5
	if testing.Short() {
		every = 10
	}
	ran := map[string]bool{}
	for round, columns := range inTurn(textColumns(t, base)) {
		home := t.TempDir()
		if err := os.CopyFS(home, os.DirFS(base)); err != nil {
			t.Fatal(err)
		}
		db := openHome(t, home)
		for _, column := range columns {
			if plant(t, db, column) {
				planted++
			}
		}
		db.Close()
		connection := new(warm)
		for i, args := range lines {
			teller := !testing.Short() && !slices.Contains(args, "--json") && (tellers[args[0]] || len(args) > 1 && tellers[args[1]])
			if !teller && (i+round)%every != 0 && !prove.Whole() {
				continue
			}
			ran[strings.Join(args, " ")] = true
			out, _ := do(connection, home, args...)
			if bad := steers(out); bad != "" {
				t.Errorf("%q: dbjobs %s prints %s:\n%q", columns, strings.Join(args, " "), bad, out)
				break
			}
		}
		connection.close()
	}
	if len(ran) != len(lines) {
		t.Errorf("%d command lines ran, of %d", len(ran), len(lines))
	}
	if planted < 30 {
		t.Errorf("only %d columns take the text", planted)
	}
}

// printing are the command lines that print the content of a database.
func printing() (lines [][]string) {
	eachCommand(allCommands(), func(cmd *cobra.Command) {
		for prefix := range unprinted {
			if cmd.CommandPath() == prefix || strings.HasPrefix(cmd.CommandPath(), prefix+" ") {
				return
			}
		}
		if cmd.HasSubCommands() || cmd.Name() == "remove" || cmd.Name() == "uninstall" {
			return
		}
		args := strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "dbjobs "))
		switch {
		case strings.Contains(cmd.Use, "RUN"):
			args = append(args, "rollup")
		case strings.Contains(cmd.Use, "NAME") && args[0] == "schedule":
			args = append(args, "nightly")
		case strings.Contains(cmd.Use, "NAME"):
			args = append(args, "rollup")
		}
		lines = append(lines, args)
		if cmd.Flag("json") != nil {
			lines = append(lines, append(append([]string{}, args...), "--json"))
		}
	})
	return lines
}

// steers names the first character of an output that is not plain text.
func steers(out string) string {
	for i, r := range out {
		_, size := utf8.DecodeRuneInString(out[i:])
		if r == utf8.RuneError && size == 1 || r != '\n' && !unicode.IsPrint(r) {
			return fmt.Sprintf("%q at %d", out[i:i+size], i)
		}
	}
	return ""
}

func openHome(t *testing.T, home string) *sql.DB {
	db, err := sql.Open("sqlite", filepath.Join(home, ".local/share/dbjobs/dbjobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// textColumns returns the text columns of all tables, as table and column.
func textColumns(t *testing.T, home string) (list [][2]string) {
	rows, err := openHome(t, home).QueryContext(t.Context(), `SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c
		WHERE m.type = 'table' AND m.name LIKE 'dbjobs%' AND c.hidden = 0 AND upper(c.type) LIKE '%TEXT%' ORDER BY 1, 2`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c [2]string
		if err := rows.Scan(&c[0], &c[1]); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// inTurn returns one column of each table, then another one of each, and so on. So the text that is planted in one
// table does not hide the text of another table.
func inTurn(list [][2]string) (rounds [][][2]string) {
	of := map[string]int{}
	for _, c := range list {
		n := of[c[0]]
		if of[c[0]]++; n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], c)
	}
	return rounds
}

// plant appends the text to the values of the column. It reports whether the database accepts it.
func plant(t *testing.T, db *sql.DB, column [2]string) bool {
	_, err := db.ExecContext(t.Context(), fmt.Sprintf("UPDATE %s SET %s = coalesce(%[2]s, '') || ?", column[0], column[1]), hostileText)
	return err == nil
}
