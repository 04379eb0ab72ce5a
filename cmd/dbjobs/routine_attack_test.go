package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// hidden is in all texts that ann writes, and in no text that bob writes. If bob reads it, he has read a text that he
// may not read.
const hidden = "annsown"

// besieged is an installation of ann and bob on MariaDB or MySQL. Bob also has a database of his own.
type besieged struct {
	*owned
	words  *strings.Replacer
	config string // the settings of a host that may log in as both
	logins map[string]*storetest.DB
}

func newBesieged(t *testing.T, d *storetest.DB) *besieged {
	t.Helper()
	b := &besieged{owned: newOwned(t, d), logins: map[string]*storetest.DB{}}
	b.config = fmt.Sprintf("owners: {%q: {url: %q}, %q: {url: %q}}", b.ann, b.asAnn, b.bob, b.asBob)
	bobs := databaseName(strings.TrimPrefix(mustParse(t, d.URL).Path, "/")) + "_bob"
	d.Exec(t, "CREATE DATABASE "+bobs)
	t.Cleanup(func() { d.Exec(t, "DROP DATABASE "+bobs) })
	d.Exec(t, "GRANT ALL ON `"+strings.ReplaceAll(bobs, "_", `\_`)+"`.* TO "+b.bob)
	d.Exec(t, "CREATE TABLE "+bobs+".ran (who varchar(200) NOT NULL DEFAULT (USER()), as_whom varchar(200), what text)")
	d.Exec(t, "CREATE TABLE "+bobs+".inbox (n int)")
	d.Exec(t, "GRANT INSERT ON "+bobs+".inbox TO "+b.ann)
	for _, c := range []call{
		routine("create_schedule", hidden, "every 2h", nil, `{"description": "`+hidden+`"}`, hidden),
		routine("create_job", hidden, "SELECT '"+hidden+"'", nil, `{"description": "`+hidden+`", "tags": ["`+hidden+`"], "queue": "`+hidden+`"}`, hidden),
		routine("run_now", hidden, `{"day": "`+hidden+`"}`, nil, hidden, hidden), routine("alter_job", "rollup", `{"description": "`+hidden+`"}`, hidden),
	} {
		if err := c.on(b.as(b.asAnn)); err != nil {
			t.Fatalf("ann: %v: %v", c, err)
		}
	}
	for _, c := range []call{
		routine("create_schedule", "weekly", "0 3 * * 1"), routine("create_job", "own", "SELECT 1", nil, `{"schedules": "weekly"}`),
		routine("create_job", "after", "SELECT 1", nil, `{"after": "own"}`), routine("run_now", "own"),
	} {
		if err := c.on(b.as(b.asBob)); err != nil {
			t.Fatalf("bob: %v: %v", c, err)
		}
	}
	b.pass()
	one := func(query string) (value string) {
		t.Helper()
		if err := d.SQL.QueryRow(query).Scan(&value); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return value
	}
	admin := mustParse(t, b.asAdmin).User.Username()
	b.words = strings.NewReplacer("{ann}", b.ann, "{bob}", b.bob, "{admin}", admin, "{ticker}", mustParse(t, b.asTicker).User.Username(), "{db}", strings.TrimSuffix(bobs, "_bob"), "{bobs}", bobs,
		"{job}", one("SELECT id FROM dbjobs_jobs WHERE owner = '"+b.ann+"' AND name = 'rollup'"), "{own}", one("SELECT id FROM dbjobs_jobs WHERE owner = '"+b.bob+"' AND name = 'own'"),
		"{run}", one("SELECT r.id FROM dbjobs_runs r JOIN dbjobs_jobs j ON j.id = r.job_id WHERE j.name = 'held' AND r.state = 'running'"),
		"{ended}", one("SELECT r.id FROM dbjobs_runs r JOIN dbjobs_jobs j ON j.id = r.job_id WHERE j.name = 'bad' AND r.state = 'failed'"),
		"{schedule}", one("SELECT id FROM dbjobs_schedules WHERE name = 'nightly'"), "{hers}", "job_id IN (SELECT id FROM dbjobs.jobs WHERE owner = '"+b.ann+"')")
	return b
}

// as returns the database for a login.
func (b *besieged) as(url string) *storetest.DB {
	if b.logins[url] == nil {
		d := *b.DB
		d.SQL = storetest.OpenSQL(b.t, url)
		b.logins[url] = &d
	}
	return b.logins[url]
}

// pass is a pass of the tick that serves both.
func (b *besieged) pass() {
	b.t.Helper()
	if code := b.runWith(map[string]string{"DBJOBS_DATABASE_URL": b.asTicker, "DBJOBS_CONFIG": b.config}, "", "tick"); code != exitDone && code != exitFailed {
		b.t.Fatalf("tick: %d: %s", code, b.lastOutput)
	}
}

// digest returns all of ann's rows.
func (b *besieged) digest() string {
	b.t.Helper()
	var lines []string
	for _, table := range b.named("BASE TABLE") {
		rows, known := annsRows[table]
		if !known {
			b.t.Fatalf("%s: say in annsRows which rows are ann's", table)
		}
		query := "SELECT * FROM dbjobs_" + table + " WHERE " + strings.ReplaceAll(b.words.Replace(rows), "dbjobs.", "dbjobs_")
		answer, err := b.SQL.Query(query)
		if err != nil {
			b.t.Fatalf("%s: %v", query, err)
		}
		for _, line := range textOf(b.t, answer) {
			lines = append(lines, table+" "+line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// textOf returns the text of an answer, and of the answers that follow it.
func textOf(t *testing.T, rows *sql.Rows) (lines []string) {
	t.Helper()
	err := eachRow(t, rows, func(row []cell) {
		line := ""
		for _, c := range row {
			line += c.column + "=" + c.plainText() + " "
		}
		lines = append(lines, line)
	})
	return append(lines, fmt.Sprint(err))
}

// try runs an attack in a new session of bob, statement by statement, also after errors, and returns the answers that
// he got.
func (b *besieged) try(k attack) (told []string) {
	db := storetest.OpenSQL(b.t, b.asBob)
	defer db.Close()
	c, err := db.Conn(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	for _, st := range k.statements {
		rows, err := c.QueryContext(b.t.Context(), b.words.Replace(st))
		if err != nil {
			told = append(told, err.Error())
			continue
		}
		told = append(told, textOf(b.t, rows)...)
	}
	return told
}

// bob has the rights that `--print-grants user` gives, and all rights in his own database. Whatever he runs, in a
// session or as the text of a job: ann's rows stay, he reads none of them, everything that ran was bob's, and the next
// pass serves her. See TestBobReachesNothingOfAnns for PostgreSQL.
func TestBobReachesNothingByRoutines(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "mariadb" {
			t.Skip("has row security, or no logins")
		}
		b := newBesieged(t, d)
		want := b.digest()
		if !strings.Contains(want, hidden) {
			t.Fatal("ann has nothing to hide")
		}
		judge := func(name string, told []string) {
			t.Helper()
			if got := b.digest(); got != want {
				t.Errorf("%s: %q: ann's rows were\n%s\nand are\n%s", name, told, onlyIn(want, got), onlyIn(got, want))
				want = got
			}
			if s := strings.Join(told, "\n"); strings.Contains(s, hidden) {
				t.Errorf("%s: bob reads %s", name, s)
			}
		}
		attacks := b.attacks()
		for _, k := range attacks {
			told := b.try(k)
			judge(k.name, told)
			t.Logf("%s: %.300q", k.name, told)
		}
		for d.Int(t, b.words.Replace("SELECT COUNT(*) FROM information_schema.events WHERE event_schema = '{bobs}'")) > 0 {
			time.Sleep(20 * time.Millisecond) // after an event has run, it is gone
		}
		judge("an event", nil)
		for _, table := range []string{"jobs", "schedules", "pauses", "changes"} {
			if n := d.Int(t, "SELECT COALESCE(MAX(id), 0) FROM dbjobs_"+table); n >= 4_000_000 {
				t.Errorf("%s: bob has chosen the number %d", table, n)
			}
		}
		b.apart()
		b.asJobs(append([]attack{{"calls", annsByCall}, {"calls of inner routines", innerByCall}}, routineAttacks...), judge)
		b.apart()
		// Everybody else goes on, whatever bob has made.
		for _, c := range []call{routine("run_now", "rollup"), routine("create_job", "new", "SELECT 1"), routine("pause", "new"), routine("drop_job", "new")} {
			if err := c.on(b.as(b.asAnn)); err != nil {
				t.Errorf("ann: %v: %v", c, err)
			}
		}
		succeeded := "SELECT count(*) FROM dbjobs_runs WHERE state = 'succeeded' AND job_id = " + b.words.Replace("{job}")
		before := d.Int(t, succeeded)
		b.pass()
		if n := d.Int(t, succeeded); n != before+1 {
			t.Errorf("%d runs of ann's succeeded, want %d: %s", n, before+1, b.lastOutput)
		}
		ran, err := d.SQL.Query(b.words.Replace("SELECT who, as_whom, what FROM {bobs}.ran WHERE who NOT LIKE '{bob}@%' AND NOT (what = 'event' AND who LIKE 'event_scheduler@%') OR as_whom NOT LIKE '{bob}@%'"))
		if err != nil {
			t.Fatal(err)
		}
		if lines := textOf(t, ran); len(lines) != 1 {
			t.Errorf("of bob's ran as somebody else: %q", lines)
		}
	})
}

// The name of an account may have an @, as where a directory knows the logins. Such a login is not that of the name before it.
func TestALoginWithAnAtSignIsAnother(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "mariadb" {
			t.Skip("a login is a name without a host, or there are none")
		}
		b := newBesieged(t, d)
		u := mustParse(t, b.asAnn)
		password, _ := u.User.Password()
		name := b.ann + "@x"
		d.Exec(t, "CREATE USER '"+name+"'@'%' IDENTIFIED BY '"+password+"'")
		t.Cleanup(func() { d.Exec(t, "DROP USER '"+name+"'@'%'") })
		grant := func(kind string) {
			t.Helper()
			grants, err := store.Grants(kind, d.URL, name+"@%", true)
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range storetest.Statements(grants) {
				d.Exec(t, statement)
			}
		}
		grant("user")
		u.User = url.UserPassword(name, password)
		other := b.as(u.String())
		if n := other.Int(t, "SELECT count(*) FROM dbjobs_v_jobs"); n != 0 {
			t.Errorf("%d jobs of others are shown", n)
		}
		before := b.digest()
		if err := routine("pause", "rollup").on(other); err == nil || b.digest() != before {
			t.Errorf("a job of ann's is paused: %v", err)
		}
		if err := routine("create_job", "mine", "SELECT 1").on(other); err != nil {
			t.Error(err)
		}
		if err := routine("create_schedule", "mine", "every 5m").on(other); err != nil {
			t.Error(err)
		}
		for _, table := range []string{"jobs", "schedules"} {
			if n := d.Int(t, "SELECT count(*) FROM dbjobs_"+table+" WHERE name = 'mine' AND owner = '"+name+"'"); n != 1 {
				t.Errorf("%d %s are its own", n, table)
			}
		}
		grant("ticker") // the program gives the same owner
		b.must(u.String(), "manifest: its\nzone: UTC\nschedules: {its: every 5m}\ncalendars: {its: [2036-12-26]}\ngroups: {its: 2}\njobs: {its: {sql: SELECT 1}}\n", "apply", "-f", "-")
		for _, table := range []string{"jobs", "schedules", "calendars", "groups"} {
			if n := d.Int(t, "SELECT count(*) FROM dbjobs_"+table+" WHERE name = 'its' AND owner = '"+name+"'"); n != 1 {
				t.Errorf("%d %s of its file are its own", n, table)
			}
		}
		for _, statement := range readPage(t, databasePage).section("A job by SQL").blocks()[0].statements() { // and so does the database
			other.Exec(t, strings.ReplaceAll(statement, "dbjobs.", d.Table("")))
		}
		if n := d.Int(t, "SELECT count(*) FROM dbjobs_jobs j JOIN dbjobs_schedules s ON s.job_id = j.id WHERE j.name = 'tidy' AND j.owner = '"+name+"' AND s.owner = j.owner"); n != 1 {
			t.Errorf("%d jobs by plain SQL are its own", n)
		}
	})
}

// apart checks that no job of one of them follows, uses or shares a thing of the other.
func (b *besieged) apart() {
	b.t.Helper()
	for _, query := range []string{
		"SELECT COUNT(*) FROM dbjobs_job_after a JOIN dbjobs_jobs x ON x.id = a.job_id JOIN dbjobs_jobs y ON y.id = a.after_job_id WHERE x.owner <> y.owner",
		"SELECT COUNT(*) FROM dbjobs_job_schedules l JOIN dbjobs_jobs x ON x.id = l.job_id JOIN dbjobs_schedules y ON y.id = l.schedule_id WHERE x.owner <> y.owner",
		"SELECT COUNT(*) FROM dbjobs_jobs x JOIN dbjobs_groups y ON y.name = x.group_name WHERE x.owner <> y.owner",
		"SELECT COUNT(*) FROM dbjobs_schedules x JOIN dbjobs_calendars y ON y.name = x.calendar WHERE x.owner <> y.owner",
		"SELECT COUNT(*) FROM dbjobs_jobs WHERE '" + b.ann + "/rollup' IN (on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused)",
	} {
		if n := b.Int(b.t, query); n != 0 {
			b.t.Errorf("%d rows: %s", n, query)
		}
	}
}

// asJobs runs the attacks as the texts of bob's jobs. The atomic ones end with the attack.
func (b *besieged) asJobs(attacks []attack, judge func(string, []string)) {
	t := b.t
	t.Helper()
	for i, k := range attacks {
		for _, atomic := range []bool{false, true} {
			texts := make([]string, len(k.statements))
			for n, st := range k.statements {
				texts[n] = b.words.Replace(st)
			}
			options, err := json.Marshal(map[string]any{"steps": []any{map[string]any{"sql": b.words.Replace("INSERT INTO {bobs}.ran (as_whom, what) VALUES (CURRENT_USER(), 'before')")},
				map[string]any{"sql": texts, "atomic": atomic}}, "queue": "tick"})
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("attack %d %v", i, atomic)
			for _, c := range []call{routine("create_job", name, nil, nil, string(options)), routine("run_now", name)} {
				if err := c.on(b.as(b.asBob)); err != nil {
					t.Fatalf("%s: %v", k.name, err)
				}
			}
		}
	}
	b.pass()
	rows, err := b.as(b.asBob).SQL.QueryContext(context.Background(), "SELECT job, state, error FROM dbjobs_v_runs UNION ALL SELECT job, step_name, error FROM dbjobs_v_errors UNION ALL SELECT job, step_name, output FROM dbjobs_v_attempts")
	if err != nil {
		t.Fatal(err)
	}
	judge("the texts of jobs", append(textOf(t, rows), b.lastOutput))
	if n := b.Int(t, "SELECT count(*) FROM dbjobs_runs r JOIN dbjobs_jobs j ON j.id = r.job_id WHERE j.name LIKE 'attack %' AND NOT r.state IN ('succeeded', 'failed')"); n != 0 {
		t.Errorf("%d of bob's runs have not ended: %s", n, b.lastOutput)
	}
	if n := b.Int(t, b.words.Replace("SELECT count(*) FROM {bobs}.ran WHERE what = 'before'")); n != 2*len(attacks) {
		t.Errorf("%d of bob's %d jobs ran", n, 2*len(attacks))
	}
}
