package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// owned is an installation with owners: ann has a job, and each table has rows that belong to her job.
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
	kept       connections
}

// annsFile returns ann's file. Her job both waits for the two jobs before it. Nothing of it is due while a test runs, whatever
// the hour: a run that came by itself would look like an attack.
func annsFile() string {
	later := time.Now().UTC().Add(6 * time.Hour).Format("4 15")
	return `
manifest: anns
calendars: {off: {days: [2036-12-25]}}
schedules:
  nightly: {rule: ` + later + ` * * *, zone: Europe/Berlin, calendar: off}
  idle: {rule: 0 0 29 2 *}
groups: {few: {max_running: 1}}
jobs:
  rollup: {schedule: nightly, group: few, tags: [t], sql: SELECT 1}
  bad: {rule: ` + later + ` * * *, zone: UTC, sql: SELECT 1 FROM nowhere}
  both: {after: [rollup, bad], sql: SELECT 1}
  held: {queue: reports, sql: SELECT 1}
  waits: {queue: reports, sql: SELECT 1}
  steps: {disabled: true, steps: [{name: one, sql: SELECT 1}, {name: two, sql: SELECT 2}]}
`
}

func newOwned(t *testing.T, d *storetest.DB) *owned {
	t.Helper()
	o := &owned{DB: d, t: t, dir: t.TempDir()}
	t.Cleanup(func() { o.kept.close() })
	var admin, ticker, reader string
	if d.Engine == "postgres" {
		dbjobs(t, d.URL, "", exitDone, "migrate", "--owners")
		admin, o.asAdmin = d.Account(t, "ticker")
		d.Exec(t, "REVOKE dbjobs_ticker FROM "+admin)
		d.Exec(t, "GRANT dbjobs_admin TO "+admin)
	} else { // there, the login that migrated is the administrator
		admin, o.asAdmin = d.Account(t, "admin")
		dbjobs(t, d.URL, databaseName(strings.TrimPrefix(mustParse(t, d.URL).Path, "/"))+"\n", exitDone, "uninstall", "--force")
		dbjobs(t, o.asAdmin, "", exitDone, "migrate", "--owners")
		t.Cleanup(func() { // MySQL keeps the account while it owns a view
			s, err := store.Open(context.Background(), o.asAdmin, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Uninstall(context.Background(), true); err != nil && !errors.Is(err, store.ErrSchema) {
				t.Error(err)
			}
		})
	}
	o.ann, o.asAnn = d.Account(t, "user")
	o.bob, o.asBob = d.Account(t, "user")
	ticker, o.asTicker = d.Account(t, "ticker")
	reader, o.asReader = d.Account(t, "reader")
	o.names = strings.NewReplacer(o.ann, "ann", o.bob, "bob", admin, "admin", ticker, "ticker", reader, "reader")
	if d.Engine == "postgres" {
		o.must(o.asAnn, annsFile(), "apply", "-f", "-")
	} else {
		o.must(o.asAdmin, annsFile()+"defaults: {owner: "+o.ann+"}\n", "apply", "-f", "-")
		for _, table := range []string{"schedules", "calendars", "groups"} { // a file gives jobs an owner, but its writer owns the rest
			d.Exec(t, "UPDATE "+d.Table(table)+" SET owner = ?", o.ann)
		}
	}
	o.annsTick()
	anns := *d
	anns.SQL = storetest.OpenSQL(t, o.asAnn)
	asks := func(c call) {
		t.Helper()
		if err := c.on(&anns); err != nil {
			t.Fatalf("ann: %v: %v", c, err)
		}
	}
	asks(routine("run_now", "rollup"))
	asks(routine("run_now", "bad"))
	asks(routine("run_now", "held"))
	o.annsTick()
	asks(routine("take", "reports", nil, 86400))
	asks(routine("run_now", "waits"))
	o.annsTick()
	asks(routine("pause", "both"))
	skips := o.asAnn
	if d.Engine != "postgres" {
		skips = o.asAdmin // there is no routine that skips
	}
	o.must(skips, "", "job", "skip-next", o.ann+"/rollup")
	// These rows would take longer to come about.
	both, bad := "(SELECT id FROM "+d.Table("jobs")+" WHERE name = 'both')", "(SELECT id FROM "+d.Table("jobs")+" WHERE name = 'bad')"
	d.Exec(t, "INSERT INTO "+d.Table("gaps")+" (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at) VALUES ("+both+", "+both+", '2026-01-01', '2026-01-02', 'missed', '', CURRENT_TIMESTAMP)")
	if d.Int(t, "SELECT count(*) FROM "+d.Table("job_ends")) == 0 {
		d.Exec(t, "INSERT INTO "+d.Table("job_ends")+" (job_id, meets, after_job_id, run_id, ended_at) VALUES ("+both+", 'x', "+bad+", (SELECT id FROM "+d.Table("runs")+" WHERE job_id = "+bad+" ORDER BY id LIMIT 1), CURRENT_TIMESTAMP)")
	}
	return o
}

// must runs a command that must succeed.
func (o *owned) must(url, stdin string, args ...string) {
	o.t.Helper()
	if code := o.run(url, stdin, args...); code != exitDone {
		o.t.Fatalf("%q: %d: %s", args, code, o.lastOutput)
	}
}

// annsTick is a tick of ann or, if she may not read the tables, a tick that serves her.
func (o *owned) annsTick() {
	o.t.Helper()
	vars := map[string]string{"DBJOBS_DATABASE_URL": o.asAnn}
	if o.Engine != "postgres" {
		vars = map[string]string{"DBJOBS_DATABASE_URL": o.asTicker, "DBJOBS_CONFIG": fmt.Sprintf("owners: {%q: {url: %q}}", o.ann, o.asAnn)}
	}
	if code := o.runWith(vars, "", "tick", "--name", o.ann); code != exitDone {
		o.t.Fatalf("tick: %d: %s", code, o.lastOutput)
	}
}

// run runs a command with the URL of a login.
func (o *owned) run(url, stdin string, args ...string) int {
	var out bytes.Buffer
	env := func(name string) (string, bool) {
		v := map[string]string{"DBJOBS_DATABASE_URL": url, "HOME": o.dir}[name]
		return v, v != ""
	}
	code := runKept(context.Background(), o.kept.to(url), args, strings.NewReader(stdin), &out, io.Writer(&out), env, nil)
	o.lastOutput = o.names.Replace(out.String())
	return code
}

// denied reports whether the server refused a statement because of a missing right, or because of a policy.
func denied(err error) bool {
	var pe *pgconn.PgError
	var me *mysql.MySQLError
	return errors.As(err, &pe) && pe.Code == "42501" || errors.As(err, &me) && (me.Number == 1142 || me.Number == 1143 || me.Number == 1370)
}

func mustParse(t *testing.T, raw string) *url.URL {
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal("not a URL")
	}
	return u
}

// golden compares a text with the content of a file.
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
