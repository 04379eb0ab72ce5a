package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// owned is an installation with owners: ann has a job, and what belongs to one, in each table.
type owned struct {
	*storetest.DB
	t          *testing.T
	names      *strings.Replacer // of the accounts, to ann, bob, ...
	ann, bob   string            // names
	asAnn      string            // URLs
	asBob      string
	asAdmin    string
	asTicker   string
	asReader   string
	dir        string
	lastOutput string
}

// annsFile is what ann has. Her last job waits for both of those before.
const annsFile = `
manifest: anns
calendars: {off: {days: [2026-12-25]}}
schedules:
  nightly: {rule: 30 2 * * *, zone: Europe/Berlin, calendar: off}
groups: {few: {max_running: 1}}
jobs:
  rollup: {schedule: nightly, group: few, tags: [t], sql: SELECT 1}
  bad: {rule: every 1h, sql: SELECT 1 FROM nowhere}
  both: {after: [rollup, bad], sql: SELECT 1}
`

func newOwned(t *testing.T, d *storetest.DB) *owned {
	t.Helper()
	dbjobs(t, d.URL, "", exitDone, "migrate", "--owners")
	o := &owned{DB: d, t: t, dir: t.TempDir()}
	var admin, ticker, reader string
	o.ann, o.asAnn = d.Account(t, "user")
	o.bob, o.asBob = d.Account(t, "user")
	admin, o.asAdmin = d.Account(t, "ticker")
	ticker, o.asTicker = d.Account(t, "ticker")
	reader, o.asReader = d.Account(t, "reader")
	d.Exec(t, "REVOKE dbjobs_ticker FROM "+admin)
	d.Exec(t, "GRANT dbjobs_admin TO "+admin)
	o.names = strings.NewReplacer(o.ann, "ann", o.bob, "bob", admin, "admin", ticker, "ticker", reader, "reader")
	if code := o.run(o.asAnn, annsFile, "apply", "-f", "-"); code != exitDone {
		t.Fatalf("apply as ann: %d: %s", code, o.lastOutput)
	}
	for _, args := range [][]string{{"tick", "--name", o.ann}, {"job", "run-now", "rollup"}, {"job", "run-now", "bad"}, {"tick", "--name", o.ann},
		{"job", "pause", "both"}, {"job", "skip-next", "rollup"}} {
		if code := o.run(o.asAnn, "", args...); code != exitDone {
			t.Fatalf("%q as ann: %d: %s", args, code, o.lastOutput)
		}
	}
	// What takes longer to come about.
	const some = "SELECT id FROM dbjobs.jobs WHERE name = 'both'"
	d.Exec(t, "INSERT INTO dbjobs.gaps (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at) SELECT id, 1, now() - interval '1 day', now(), 'missed', '', now() FROM ("+some+") j")
	d.Exec(t, "INSERT INTO dbjobs.job_ends (job_id, meets, after_job_id, run_id, ended_at) SELECT id, 'x', (SELECT id FROM dbjobs.jobs WHERE name = 'bad'), (SELECT min(id::text)::uuid FROM dbjobs.runs), now() FROM ("+some+") j ON CONFLICT DO NOTHING")
	return o
}

// run runs a command with the URL of a login.
func (o *owned) run(url, stdin string, args ...string) int {
	var out bytes.Buffer
	env := func(name string) (string, bool) {
		v := map[string]string{"DBJOBS_DATABASE_URL": url, "HOME": o.dir}[name]
		return v, v != ""
	}
	code := run(context.Background(), args, strings.NewReader(stdin), &out, io.Writer(&out), env, nil)
	o.lastOutput = o.names.Replace(out.String())
	return code
}

// denied reports whether the server refused a statement for want of a right, or for a policy.
func denied(err error) bool {
	var pe *pgconn.PgError
	var me *mysql.MySQLError
	return errors.As(err, &pe) && pe.Code == "42501" || errors.As(err, &me) && (me.Number == 1142 || me.Number == 1143 || me.Number == 1370)
}

// Who reaches what of ann's: three roles, and the two that tools have, by every table.
func TestOwnersReachTheirOwn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("no row security")
		}
		o := newOwned(t, d)
		roles := []struct{ name, url string }{{"owner", o.asAnn}, {"other", o.asBob}, {"admin", o.asAdmin}, {"ticker", o.asTicker}, {"reader", o.asReader}}
		var text strings.Builder
		w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		fmt.Fprint(w, "what\tright")
		for _, r := range roles {
			fmt.Fprintf(w, "\t%s", r.name)
		}
		fmt.Fprintln(w)
		cells := map[string][]string{}
		tables := o.tables()
		for _, r := range roles {
			db := storetest.OpenSQL(t, r.url)
			for _, table := range tables {
				for i, outcome := range o.tryTable(db, table) {
					key := table + "\t" + []string{"SELECT", "INSERT", "UPDATE", "DELETE"}[i]
					cells[key] = append(cells[key], outcome)
				}
			}
		}
		for _, table := range tables {
			for _, verb := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
				fmt.Fprintf(w, "%s\t%s\t%s\n", table, verb, strings.Join(cells[table+"\t"+verb], "\t"))
			}
		}
		said := map[string][]string{}
		for _, r := range []struct{ name, url string }{roles[4], roles[1], roles[0], roles[2], roles[3]} { // who may change nothing comes first
			for _, args := range annsCommands {
				said[r.name] = append(said[r.name], o.tryCommand(r.url, args))
			}
			if code := o.run(o.asAnn, "", "tick", "--name", o.ann); code != exitDone {
				t.Fatalf("tick: %s", o.lastOutput)
			}
		}
		for i, args := range annsCommands {
			fmt.Fprintf(w, "%s\t", o.names.Replace(strings.Join(args, " ")))
			for _, r := range roles {
				fmt.Fprintf(w, "\t%s", said[r.name][i])
			}
			fmt.Fprintln(w)
		}
		_ = w.Flush() // into memory
		golden(t, filepath.Join("testdata", "owners", d.Engine+".txt"), text.String())
	})
}

// annsCommands are about what is ann's, each said by everybody. ANN is her name.
var annsCommands = [][]string{
	{"job", "list"}, {"job", "show", "ANN/rollup"}, {"job", "history", "ANN/rollup"}, {"schedule", "list"}, {"schedule", "show", "nightly"},
	{"calendar", "list"}, {"calendar", "show", "off"}, {"run", "list"}, {"run", "show", "ANN/rollup"}, {"errors"}, {"upcoming"}, {"export", "--manifest", "anns"}, {"status"},
	{"job", "alter", "ANN/rollup", "--priority", "1"}, {"job", "step", "add", "ANN/rollup", "--name", "more", "--sql", "SELECT 2"},
	{"job", "step", "drop", "ANN/rollup", "more"}, {"job", "rename", "ANN/bad", "worse"}, {"job", "rename", "ANN/worse", "bad"},
	{"job", "resume", "ANN/both"}, {"job", "pause", "ANN/both"},
	{"job", "pause", "--owner", "ANN"}, {"job", "resume", "--owner", "ANN"}, {"job", "pause", "--tag", "t"}, {"job", "resume", "--tag", "t"},
	{"job", "skip-next", "ANN/rollup"}, {"job", "replan", "ANN/rollup"}, {"job", "run-now", "ANN/rollup"},
	{"run", "retry", "ANN/bad"}, {"run", "cancel", "ANN/bad"}, {"job", "abort", "ANN/rollup"}, {"job", "enable", "ANN/rollup"}, {"job", "disable", "ANN/both"}, {"job", "enable", "ANN/both"},
	{"schedule", "alter", "nightly", "--rule", "30 3 * * *"}, {"schedule", "pause", "nightly"}, {"schedule", "resume", "nightly"}, {"schedule", "rename", "nightly", "daily"}, {"schedule", "rename", "daily", "nightly"},
	{"job", "create", "new", "--owner", "ANN", "--sql", "SELECT 1"}, {"job", "remove", "ANN/new"},
	{"job", "create", "follower", "--after", "ANN/rollup", "--sql", "SELECT 1"}, {"job", "create", "hooked", "--on-failed", "ANN/rollup", "--sql", "SELECT 1"},
	{"job", "create", "sharer", "--schedule", "nightly", "--sql", "SELECT 1"}, {"job", "create", "member", "--group", "few", "--sql", "SELECT 1"},
	{"freeze"}, {"unfreeze"}, {"migrate", "--owners=false"}, {"uninstall", "--force"},
}

// tryCommand says what became of a command: yes, or how it was refused.
func (o *owned) tryCommand(url string, args []string) string {
	said := make([]string, len(args))
	for i, a := range args {
		said[i] = strings.ReplaceAll(a, "ANN", o.ann)
	}
	code := o.run(url, databaseName(strings.TrimPrefix(mustParse(o.t, o.URL).Path, "/"))+"\n", said...)
	out := o.lastOutput
	switch {
	case code == exitDone && (len(args) == 1 || args[1] == "list" || args[0] == "export"):
		for _, name := range []string{"rollup", "nightly", "off", "nowhere", "frozen", "freeze", "everything"} {
			if strings.Contains(out, name) {
				return "yes"
			}
		}
		return "nothing"
	case code == exitDone:
		return "yes"
	case strings.Contains(out, "not found"), strings.Contains(out, "there is no "):
		return "not found"
	case strings.Contains(out, "lacks a right"), strings.Contains(out, "may not"), strings.Contains(out, "only an administrator"), strings.Contains(out, "row security"):
		return "denied"
	}
	o.t.Logf("%q: %d: %s", args, code, out)
	return fmt.Sprintf("exit %d", code)
}

func mustParse(t *testing.T, raw string) *url.URL {
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal("not a URL")
	}
	return u
}

// golden compares a text with that of a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *updateGolden {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%v: %s has\n%s\nand now it is\n%s", err, path, want, got)
	}
}

func (o *owned) tables() (names []string) {
	rows, err := o.SQL.Query("SELECT relname FROM pg_class WHERE relnamespace = 'dbjobs'::regnamespace AND relkind = 'r' ORDER BY relname")
	if err != nil {
		o.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			o.t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		o.t.Fatal(err)
	}
	return names
}

// tryTable tries to read, to forge, to change and to delete a row of ann's, each in a transaction that is rolled back.
func (o *owned) tryTable(db *sql.DB, table string) (outcomes []string) {
	var columns, first, row string
	err := o.SQL.QueryRow(`SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum), min(quote_ident(attname)) FILTER (WHERE attname IN ('name', 'job_id', 'subject', 'id', 'run_id')), '' FROM pg_attribute
		WHERE attrelid = ('dbjobs.' || $1)::regclass AND attnum > 0 AND attgenerated = '' AND attidentity = ''`, table).Scan(&columns, &first, &row)
	if err != nil {
		o.t.Fatal(err)
	}
	if table == "installation" {
		first = "migrated_at"
	}
	if err := o.SQL.QueryRow("SELECT row_to_json(x) FROM dbjobs." + table + " x LIMIT 1").Scan(&row); err != nil {
		o.t.Fatalf("ann has no row in %s: %v", table, err)
	}
	attempt := func(statement string, args ...any) string {
		tx, err := db.Begin()
		if err != nil {
			o.t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		res, err := tx.Exec(statement, args...)
		var pe *pgconn.PgError
		switch {
		case denied(err):
			return "denied"
		case errors.As(err, &pe) && pe.Code == "23505":
			return "yes" // it is there already: the policy has let it through
		case err != nil:
			o.t.Fatalf("%s: %v", statement, err)
		}
		if n, _ := res.RowsAffected(); n > 0 {
			return "yes"
		}
		return "none"
	}
	return []string{
		attempt("SELECT " + first + " FROM dbjobs." + table + " LIMIT 1"),
		attempt("INSERT INTO dbjobs."+table+" ("+columns+") SELECT "+columns+" FROM json_populate_record(NULL::dbjobs."+table+", $1::json)", row),
		attempt("UPDATE dbjobs." + table + " SET " + first + " = " + first),
		attempt("DELETE FROM dbjobs." + table),
	}
}
