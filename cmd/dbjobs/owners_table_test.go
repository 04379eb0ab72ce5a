package main

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// This shows which login reaches which of ann's things: three roles, and the two that tools have, by every table, view,
// routine and command.
func TestOwnersReachTheirOwn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine == "sqlite" {
			t.Skip("has no logins")
		}
		o := newOwned(t, d)
		roles := []struct{ name, url string }{{"owner", o.asAnn}, {"other", o.asBob}, {"admin", o.asAdmin}, {"ticker", o.asTicker}, {"reader", o.asReader}}
		var text strings.Builder
		w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		row := func(what, right string, outcomes []string) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", o.names.Replace(what), right, strings.Join(outcomes, "\t"))
		}
		var as []*sql.DB
		var names []string
		for _, r := range roles {
			as, names = append(as, storetest.OpenSQL(t, r.url)), append(names, r.name)
		}
		row("what", "right", names)
		for _, table := range o.named("BASE TABLE") {
			trials := o.onTable(table)
			for i, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
				row(table, right, o.each(as, trials[i]))
			}
		}
		for _, view := range o.named("VIEW") {
			trials := o.onView(view)
			for i, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
				row(view, right, o.each(as, trials[i]))
			}
		}
		called := map[string]bool{}
		for _, c := range o.annsCalls() {
			called[c.name] = true
			text, args := c.text(d.Server)
			row(c.name+c.shown(), "EXECUTE", o.each(as, trial{text, args}))
		}
		for name := range arity {
			if !called[name] {
				t.Errorf("nobody calls %s", name)
			}
		}
		said := map[string][]string{}
		for _, i := range []int{4, 1, 0, 3, 2} { // the login that may change nothing comes first, and the one that may remove everything comes last
			for _, args := range annsCommands {
				said[names[i]] = append(said[names[i]], o.tryCommand(roles[i].url, args))
			}
			if names[i] != "admin" {
				o.annsTick()
			}
		}
		for i, args := range annsCommands {
			var outcomes []string
			for _, name := range names {
				outcomes = append(outcomes, said[name][i])
			}
			row(strings.Join(args, " "), "", outcomes)
		}
		_ = w.Flush() // into memory
		golden(t, filepath.Join("testdata", "owners", d.Server+".txt"), text.String())
	})
}

// annsCommands are commands about ann's things. Each login runs each of them. ANN is her name.
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

// annsCalls are calls about ann's things, or calls that make something for the caller.
func (o *owned) annsCalls() []call {
	job := o.ann + "/rollup"
	run := func(state string) (id string) {
		if err := o.SQL.QueryRow("SELECT r.id FROM " + o.Table("runs") + " r JOIN " + o.Table("jobs") + " j ON j.id = r.job_id WHERE j.name IN ('bad', 'held') AND r.state = '" + state + "'").Scan(&id); err != nil {
			o.t.Fatalf("ann has no run that is %s: %v", state, err)
		}
		return id
	}
	held, failed := run("running"), run("failed")
	// A worker that speaks SQL has taken it, and writes no attempts: this adds one, as a tick would.
	o.Exec(o.t, "INSERT INTO "+o.Table("attempts")+" (run_id, number, step, step_name, attempt, fence, holder, started_at) SELECT id, attempts, 1, '', 1, fence, holder, started_at FROM "+
		o.Table("runs")+" WHERE id = '"+held+"' AND NOT EXISTS (SELECT 1 FROM "+o.Table("attempts")+" WHERE run_id = '"+held+"')")
	o.Exec(o.t, "UPDATE "+o.Table("runs")+" SET holder = 'h' WHERE id = '"+held+"'")
	return []call{
		routine("create_schedule", "own", "every 5m"), routine("create_schedule", "own", "every 5m", nil, `{"calendar": "off"}`),
		routine("alter_schedule", "nightly", `{"rule": "every 1h"}`), routine("drop_schedule", "nightly", true), routine("drop_unused_schedules"),
		routine("create_job", "own", "SELECT 1"), routine("create_job", "own", "SELECT 1", nil, `{"owner": "`+o.ann+`"}`), routine("create_job", "own", "SELECT 1", nil, `{"after": "`+job+`"}`),
		routine("create_job", "own", "SELECT 1", nil, `{"on": {"failed": "`+job+`"}}`), routine("create_job", "own", "SELECT 1", nil, `{"schedules": "nightly"}`), routine("create_job", "own", "SELECT 1", nil, `{"group": "few"}`),
		routine("alter_job", job, `{"priority": 3}`), routine("rename_job", job, "mine"), routine("drop_job", o.ann+"/held"), routine("add_step", job, "more", "SELECT 2"),
		routine("alter_step", job, "step 1", `{"sql": "SELECT 3"}`), routine("drop_step", o.ann+"/steps", "one"), routine("add_job_schedule", o.ann+"/held", "nightly"), routine("drop_job_schedule", job, "nightly"),
		routine("pause", job), routine("pause", "nightly", "schedule"), routine("pause", o.ann, "owner"), routine("pause", "t", "tag"), routine("pause", nil, "all"), routine("resume", o.ann+"/both"),
		routine("disable", job), routine("enable", o.ann+"/steps"), routine("abort", job), routine("run_now", job), routine("cancel", held), routine("retry", failed),
		routine("take", "reports"), routine("extend", held, 1), routine("finish", held, 1),
		routine("holds_own", held, 1), routine("end_own", held, 1, 1, "succeeded", nil, nil, "h"), // for the program
	}
}

// the subject of the call
func (c call) shown() string {
	var list []string
	for _, a := range c.args {
		list = append(list, strings.NewReplacer("<nil>", "NULL").Replace(fmt.Sprint(a)))
	}
	return "(" + regexp.MustCompile(`[0-9a-f-]{36}`).ReplaceAllString(strings.Join(list, ", "), "RUN") + ")"
}

// trial is a statement that each login tries.
type trial struct {
	text string
	args []any
}

// each returns the outcome of a trial by each login. Each trial is in a transaction that is rolled back.
func (o *owned) each(as []*sql.DB, a trial) (outcomes []string) {
	for _, db := range as {
		outcomes = append(outcomes, o.outcome(db, a))
	}
	return outcomes
}

// outcome is yes, none (nothing is visible, changed or held), denied, not found, or refused if no login may do this.
func (o *owned) outcome(db *sql.DB, a trial) string {
	tx, err := db.Begin()
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	done, err := false, error(nil)
	if asks := strings.HasPrefix(a.text, "SELECT") || strings.HasPrefix(a.text, "CALL"); asks {
		done, err = o.answered(tx, a)
	} else {
		var res sql.Result
		if res, err = tx.Exec(a.text, a.args...); err == nil {
			n, _ := res.RowsAffected()
			done = n > 0
		}
	}
	var pe *pgconn.PgError
	var me *mysql.MySQLError
	state := ""
	if errors.As(err, &pe) {
		state = pe.Code
	} else if errors.As(err, &me) {
		state = string(me.SQLState[:])
	}
	switch {
	case denied(err), err != nil && slices.ContainsFunc([]string{"only the administrator", "only an administrator", "another login", "other logins"}, func(s string) bool { return strings.Contains(err.Error(), s) }):
		return "denied"
	case state == "JB001":
		return "not found"
	case state[:min(2, len(state))] == "23":
		return "yes" // it exists already, or is used: the login has the right
	case me != nil && (me.Number == 1288 || me.Number == 1471 || me.Number == 1348), state == "55000":
		return "refused" // such a view cannot be written
	case err != nil:
		o.t.Errorf("%s, %q: %v", a.text, a.args, err)
		return "fails"
	case done:
		return "yes"
	}
	return "none"
}

// tellsWhether are calls that return whether, or how often, they did something.
var tellsWhether = regexp.MustCompile(`(take|extend|finish|drop_unused_schedules|holds_own|end_own)\(`)

// answered runs a query or a call, and reports whether it finds one of ann's things, or does something.
func (o *owned) answered(tx *sql.Tx, a trial) (bool, error) {
	rows, err := tx.Query(a.text, a.args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return false, err
	}
	counts := tellsWhether.MatchString(a.text)
	done := len(columns) == 0 || strings.Contains(a.text, "(") && !counts // the others fail if they do nothing
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.NullString)
		}
		if err := rows.Scan(values...); err != nil {
			return false, err
		}
		first := values[0].(*sql.NullString)
		done = done || !counts || first.Valid && first.String != "0" && first.String != "false"
	}
	return done, rows.Err()
}

// tryCommand returns the outcome of a command: yes, or the way in which it was refused.
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

// named returns our tables or our views.
func (o *owned) named(kind string) (names []string) {
	query := "SELECT table_name FROM information_schema.tables WHERE table_schema = 'dbjobs' AND table_type = '" + kind + "' ORDER BY table_name"
	if o.Engine != "postgres" {
		query = "SELECT SUBSTR(table_name, 8) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE 'dbjobs\\_%' AND table_type = '" + kind + "' ORDER BY table_name"
	}
	names = o.list(query)
	slices.Sort(names) // servers compare names in different ways
	return names
}

func (o *owned) list(query string) (list []string) {
	rows, err := o.SQL.Query(query)
	if err != nil {
		o.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			o.t.Fatal(err)
		}
		list = append(list, one)
	}
	if err := rows.Err(); err != nil {
		o.t.Fatal(err)
	}
	return list
}

// columns returns the columns of a table or view that a statement may write.
func (o *owned) columns(table string) []string {
	if o.Engine == "postgres" {
		return o.list("SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = 'dbjobs." + table + "'::regclass AND attnum > 0 AND attgenerated = '' AND attidentity = '' ORDER BY attnum")
	}
	return o.list("SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'dbjobs_" + table + "' AND extra NOT LIKE '%GENERATED%' AND extra NOT LIKE '%auto_increment%' ORDER BY ordinal_position")
}

// onTable tries to read, to forge, to change and to delete one of ann's rows.
func (o *owned) onTable(table string) []trial {
	columns, name := o.columns(table), o.Table(table)
	first := ""
	for _, c := range slices.Sorted(slices.Values(columns)) {
		if first == "" && slices.Contains([]string{"name", "job_id", "subject", "id", "run_id"}, c) {
			first = c
		}
	}
	if table == "installation" {
		first = "migrated_at"
	}
	list := strings.Join(columns, ", ")
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	if err := o.SQL.QueryRow("SELECT " + list + " FROM " + name + " LIMIT 1").Scan(into...); err != nil {
		o.t.Fatalf("ann has no row in %s: %v", table, err)
	}
	forged := trial{"INSERT INTO " + name + " (" + list + ") VALUES (" + strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ") + ")", values}
	if o.Engine == "postgres" {
		var row string
		if err := o.SQL.QueryRow("SELECT row_to_json(x) FROM " + name + " x LIMIT 1").Scan(&row); err != nil {
			o.t.Fatal(err)
		}
		forged = trial{"INSERT INTO " + name + " (" + list + ") SELECT " + list + " FROM json_populate_record(NULL::" + name + ", $1::json)", []any{row}}
	}
	return []trial{{text: "SELECT " + first + " FROM " + name + " LIMIT 1"}, forged, {text: "UPDATE " + name + " SET " + first + " = " + first}, {text: "DELETE FROM " + name}}
}

// onView tries to read one of ann's rows, and to write a view, which nobody can.
func (o *owned) onView(view string) []trial {
	first, name := o.columns(view)[0], o.Table(view)
	return []trial{{text: "SELECT " + first + " FROM " + name}, {text: "INSERT INTO " + name + " (" + first + ") VALUES (NULL)"}, {text: "UPDATE " + name + " SET " + first + " = NULL"}, {text: "DELETE FROM " + name}}
}
