package main

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// an attack is a list of statements that bob runs in one session. The words in braces stand for names and ids: see
// attacked.
type attack struct {
	name       string
	statements []string
}

// annsRows has, for each table, the condition for ann's rows. Rows that are for all owners count as hers, too.
var annsRows = map[string]string{
	"jobs": "owner = '{ann}'", "steps": "{hers}", "job_schedules": "{hers}", "job_after": "{hers}", "job_ends": "{hers}", "plans": "{hers}", "plan_rules": "{hers}", "runs": "{hers}", "gaps": "{hers}",
	"attempts": "run_id IN (SELECT id FROM dbjobs.runs WHERE {hers})", "schedules": "owner = '{ann}'", "calendars": "owner = '{ann}'", "groups": "owner = '{ann}'", "group_plans": "name = 'few'",
	"pauses":  "scope IN ('tag', 'all') OR subject = '{ann}' OR scope = 'job' AND subject_id IN (SELECT id FROM dbjobs.jobs WHERE owner = '{ann}')",
	"changes": "changed_by <> '{bob}' AND subject NOT LIKE '{bob}/%' OR kind = 'job' AND subject_id IN (SELECT id FROM dbjobs.jobs WHERE owner = '{ann}')", "ticks": "name = '{ann}'", "installation": "true",
}

// attacked is an installation of ann and bob. It replaces the words in braces by names and ids.
type attacked struct {
	*owned
	words  *strings.Replacer
	config string // the settings of a host that may log in as both
}

func newAttacked(t *testing.T, d *storetest.DB) *attacked {
	t.Helper()
	a := &attacked{owned: newOwned(t, d)}
	a.config = fmt.Sprintf("owners: {%q: {url: %q}, %q: {url: %q}}", a.ann, a.asAnn, a.bob, a.asBob)
	if code := a.run(a.asBob, "schedules: {weekly: {rule: 0 3 * * 1}}\ngroups: {bobs: {max_running: 1}}\njobs: {own: {schedule: weekly, group: bobs, sql: SELECT 1}, after: {after: [own], sql: SELECT 1}, meet: {after: [own, after], sql: SELECT 1}}", "apply", "-f", "-"); code != exitDone {
		t.Fatalf("apply as bob: %s", a.lastOutput)
	}
	for _, args := range [][]string{{"tick", "--name", a.bob}, {"job", "run-now", "own"}, {"tick", "--name", a.bob}} {
		if code := a.run(a.asBob, "", args...); code != exitDone {
			t.Fatalf("%q as bob: %s", args, a.lastOutput)
		}
	}
	d.Exec(t, "CREATE TABLE public.ran (who text DEFAULT session_user, what text)")
	d.Exec(t, "GRANT INSERT ON public.ran TO PUBLIC")
	d.Exec(t, "GRANT CREATE ON SCHEMA public TO "+a.bob) // everybody may do so on PostgreSQL up to 14

	a.pass() // the waiting decisions for ann's jobs are made
	one := func(query string) (value string) {
		t.Helper()
		if err := d.SQL.QueryRow(query).Scan(&value); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return value
	}
	// A run of ann's job that is under way.
	if code := a.run(a.asAnn, "", "job", "run-now", "bad", "--arg", "day="+hidden); code != exitDone {
		t.Fatalf("run-now as ann: %s", a.lastOutput)
	}
	const running = "SELECT r.id FROM dbjobs.runs r JOIN dbjobs.jobs j ON j.id = r.job_id WHERE j.name = 'bad' AND r.settled_at IS NULL"
	d.Exec(t, "UPDATE dbjobs.runs SET state = 'running', fence = 1, attempts = 1, started_at = now(), lease_until = now() + interval '1 day' WHERE id IN ("+running+")")
	d.Exec(t, "INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, started_at) "+strings.Replace(running, "r.id", "r.id, 1, 1, 'step 1', 1, 1, 'x', now()", 1))
	a.words = strings.NewReplacer("{ann}", a.ann, "{bob}", a.bob, "{ticker}", one("SELECT usename FROM pg_user WHERE usename = '"+mustParse(t, a.asTicker).User.Username()+"'"),
		"{job}", one("SELECT id FROM dbjobs.jobs WHERE owner = '"+a.ann+"' AND name = 'rollup'"), "{own}", one("SELECT id FROM dbjobs.jobs WHERE owner = '"+a.bob+"' AND name = 'own'"),
		"{meet}", one("SELECT id FROM dbjobs.jobs WHERE name = 'meet'"), "{after}", one("SELECT id FROM dbjobs.jobs WHERE name = 'after'"),
		"{run}", one(running),
		"{schedule}", one("SELECT id FROM dbjobs.schedules WHERE name = 'nightly'"), "{weekly}", one("SELECT id FROM dbjobs.schedules WHERE name = 'weekly'"),
		"{hers}", "job_id IN (SELECT id FROM dbjobs.jobs WHERE owner = '"+a.ann+"')")
	return a
}

// digest returns all of ann's rows, as an administrator sees them.
func (a *attacked) digest() string {
	a.t.Helper()
	var b strings.Builder
	for _, table := range a.named("BASE TABLE") {
		rows, known := annsRows[table]
		if !known {
			a.t.Fatalf("%s: say in annsRows which rows are ann's", table)
		}
		var text sql.NullString
		if err := a.SQL.QueryRow(a.words.Replace("SELECT string_agg(x::text, E'\n' ORDER BY x::text) FROM dbjobs." + table + " x WHERE " + rows)).Scan(&text); err != nil {
			a.t.Fatalf("%s: %v", table, err)
		}
		for line := range strings.Lines(text.String) {
			fmt.Fprintf(&b, "%s %s\n", table, strings.TrimSpace(line))
		}
	}
	return b.String()
}

// try runs an attack in a session of bob, statement by statement, also after errors.
func (a *attacked) try(db *sql.DB, k attack) (errs []string) {
	c, err := db.Conn(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, st := range k.statements {
		if _, err := c.ExecContext(a.t.Context(), a.words.Replace(st)); err != nil {
			errs = append(errs, err.Error())
		}
	}
	_, _ = c.ExecContext(a.t.Context(), "ROLLBACK")
	return errs
}

// pass is a pass of the tick that serves both.
func (a *attacked) pass() {
	a.t.Helper()
	if code := a.runWith(map[string]string{"DBJOBS_DATABASE_URL": a.asTicker, "DBJOBS_CONFIG": a.config}, "", "tick"); code != exitDone && code != exitFailed {
		a.t.Fatalf("tick: %d: %s", code, a.lastOutput)
	}
}

// bob has all rights of an ordinary user, and may make objects in the schema public. Whatever he runs, in his own
// session or as the text of a job: ann's rows stay, everything that ran was bob's, and the next pass serves her.
func TestBobReachesNothingOfAnns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("has no row security: see TestRoutinesReachTheCallersJobs")
		}
		a := newAttacked(t, d)
		bob := storetest.OpenSQL(t, a.asBob)
		want := a.digest()
		unchanged := func(name string, errs ...string) {
			t.Helper()
			if got := a.digest(); got != want {
				t.Errorf("%s: %q: ann's rows were\n%s\nand are\n%s", name, errs, onlyIn(want, got), onlyIn(got, want))
				want = got
			}
		}
		attacks := a.attacks()
		for _, k := range attacks {
			errs := a.try(bob, k)
			unchanged(k.name, errs...)
			if len(errs) > 0 {
				t.Logf("%s: %s", k.name, errs[len(errs)-1])
			}
		}
		// The same attacks as the texts of jobs. The atomic ones end with the attack.
		var file strings.Builder
		file.WriteString("manifest: attacks\njobs:\n")
		for i, k := range attacks {
			for _, atomic := range []string{"", ", atomic: true"} {
				list := make([]string, len(k.statements))
				for n, st := range k.statements {
					list[n] = fmt.Sprintf("%q", a.words.Replace(st))
				}
				fmt.Fprintf(&file, "  a%d%s: {steps: [{sql: \"INSERT INTO public.ran (what) VALUES ('before')\"}, {sql: [%s]%s}]}\n", i, strings.TrimPrefix(atomic, ", atomic: "), strings.Join(list, ", "), atomic)
			}
		}
		if code := a.run(a.asBob, file.String(), "apply", "-f", "-"); code != exitDone {
			t.Fatalf("apply as bob: %s", a.lastOutput)
		}
		if _, err := bob.Exec("SELECT dbjobs.run_now(name) FROM dbjobs.jobs WHERE manifest = 'attacks' ORDER BY id"); err != nil {
			t.Fatal(err)
		}
		want = a.digest()
		a.pass()
		unchanged("the texts of jobs", a.lastOutput)
		if n := d.Int(t, "SELECT count(*) FROM dbjobs.runs r JOIN dbjobs.jobs j ON j.id = r.job_id WHERE j.owner = '"+a.bob+"' AND r.args::text LIKE '%"+hidden+"%'"); n != 0 {
			t.Errorf("%d of bob's runs have the arguments of ann's", n)
		}
		if n := d.Int(t, "SELECT count(*) FROM dbjobs.runs r JOIN dbjobs.jobs j ON j.id = r.job_id WHERE manifest = 'attacks' AND NOT r.state IN ('succeeded', 'failed')"); n != 0 {
			t.Errorf("%d of bob's runs have not ended", n)
		}
		if n := d.Int(t, "SELECT count(*) FROM public.ran WHERE what = 'before'"); n != 2*len(attacks) {
			t.Errorf("%d of bob's %d jobs ran", n, 2*len(attacks))
		}
		a.try(bob, attack{"a search path of the login", []string{"ALTER ROLE {bob} SET search_path = public, pg_catalog", "ALTER ROLE {ticker} SET search_path = public, pg_catalog", "ALTER ROLE {ann} SET search_path = public, pg_catalog"}})
		// Everybody else goes on, whatever bob has made.
		for _, args := range [][]string{{"job", "run-now", "rollup"}, {"job", "create", "new", "--sql", "SELECT 1"}, {"job", "pause", "new"}, {"job", "remove", "new"}} {
			if code := a.run(a.asAnn, "", args...); code != exitDone {
				t.Errorf("%q as ann: %s", args, a.lastOutput)
			}
		}
		succeeded := "SELECT count(*) FROM dbjobs.runs WHERE state = 'succeeded' AND job_id = " + a.words.Replace("{job}")
		before := d.Int(t, succeeded)
		a.pass()
		if n := d.Int(t, succeeded); n != before+1 {
			t.Errorf("%d runs of ann's succeeded, want %d: %s", n, before+1, a.lastOutput)
		}
		for _, login := range []string{a.asAdmin, a.asAnn} {
			for _, args := range [][]string{{"status"}, {"doctor"}, {"job", "list"}} {
				a.run(login, "", args...)
			}
		}
		var ran sql.NullString
		if err := d.SQL.QueryRow("SELECT string_agg(DISTINCT what || ' as ' || who, ', ') FROM public.ran WHERE who <> '" + a.bob + "'").Scan(&ran); err != nil {
			t.Fatal(err)
		}
		if ran.Valid {
			t.Errorf("something of bob's ran as somebody else: %s", ran.String)
		}
		if n := d.Int(t, "SELECT count(*) FROM public.ran WHERE what = 'deferred'") + d.Int(t, "SELECT count(*) FROM public.ran WHERE what = 'held'"); n == 0 {
			t.Error("neither the deferred trigger nor the cursor ran: the attempt is none")
		}
	})
}

// If a user can choose the number of a row, he writes for the job that gets the number next: a step of bob would run as
// ann.
func TestBobLeavesNothingForAJobToCome(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("has no row security")
		}
		a := newAttacked(t, d)
		bob := storetest.OpenSQL(t, a.asBob)
		next := d.Int(t, "SELECT max(id) FROM dbjobs.jobs")
		for id := next + 1; id < next+20; id++ {
			n := fmt.Sprint(id)
			for _, begin := range []string{"INSERT INTO dbjobs.jobs (id, name) VALUES (" + n + ", 'x" + n + "')", "UPDATE dbjobs.jobs SET id = " + n + " WHERE name = 'own'",
				"INSERT INTO dbjobs.jobs (id, name) OVERRIDING SYSTEM VALUE VALUES (" + n + ", 'x" + n + "')"} {
				a.try(bob, attack{"a number to come", []string{begin,
					"INSERT INTO dbjobs.steps (job_id, position, name, executor, spec) VALUES (" + n + ", 2, 'evil', 'sql', '{\"sql\": [\"INSERT INTO public.ran (what) VALUES (''step'')\"]}')",
					"INSERT INTO dbjobs.pauses (scope, subject_id, subject, paused_by) VALUES ('job', " + n + ", 'x', session_user)",
					"DELETE FROM dbjobs.jobs WHERE id = " + n}})
			}
		}
		if code := a.run(a.asAnn, "", "job", "create", "new", "--sql", "SELECT 1"); code != exitDone {
			t.Errorf("create as ann: %s", a.lastOutput)
		}
		a.run(a.asAnn, "", "job", "run-now", "new")
		a.pass()
		if n := d.Int(t, "SELECT count(*) FROM public.ran"); n != 0 {
			t.Errorf("a step of bob's has run as part of ann's job")
		}
		if n := d.Int(t, "SELECT count(*) FROM dbjobs.runs r JOIN dbjobs.jobs j ON j.id = r.job_id WHERE j.name = 'new' AND r.state = 'succeeded'"); n != 1 {
			t.Errorf("ann's new job has not run: %s", a.lastOutput)
		}
	})
}

// If a job of bob's kept the name of a group or a calendar that is gone, ann's would get it when she makes one of that name: then his
// run takes the place in her group for ever, and his plan has her days. So she cannot have that name.
func TestBobLiesInWaitForNoName(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("has no row security")
		}
		a := newAttacked(t, d)
		bob := storetest.OpenSQL(t, a.asBob)
		for _, statement := range []string{
			"INSERT INTO dbjobs.groups (name, max_running) VALUES ('etl', 1)", "INSERT INTO dbjobs.jobs (name, group_name) VALUES ('hog', 'etl')", "DELETE FROM dbjobs.groups WHERE name = 'etl'",
			"INSERT INTO dbjobs.calendars (name, days) VALUES ('de', ''), ('eu', '')", "INSERT INTO dbjobs.schedules (name, rule, calendar) VALUES ('spy', 'every 5m', 'de')",
			"INSERT INTO dbjobs.schedules (job_id, rule, calendar) SELECT id, 'every 5m', 'eu' FROM dbjobs.jobs WHERE name = 'hog'", "DELETE FROM dbjobs.calendars",
			"INSERT INTO dbjobs.groups (name, max_running) VALUES ('etl', 1)", "DELETE FROM dbjobs.groups WHERE name = 'etl'", // his own names are his
		} {
			if _, err := bob.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		for name, file := range map[string]string{"group etl": "groups: {etl: 1}", "calendar de": "calendars: {de: [2036-12-26]}", "calendar eu": "calendars: {eu: [2036-12-26]}"} {
			if code := a.run(a.asAnn, "manifest: more\nzone: UTC\n"+file+"\n", "apply", "-f", "-"); code == exitDone || !strings.Contains(a.lastOutput, "of another owner") {
				t.Errorf("ann makes the %s: %d: %s", name, code, a.lastOutput)
			}
			kind, plain, _ := strings.Cut(name, " ")
			if _, err := storetest.OpenSQL(t, a.asAnn).ExecContext(t.Context(), "UPDATE dbjobs."+kind+"s SET name = $1", plain); !denied(err) {
				t.Errorf("ann renames one to the %s: %v", name, err)
			}
		}
		if _, err := bob.ExecContext(t.Context(), "SELECT dbjobs.drop_job('hog')"); err != nil { // nobody could find what keeps the name
			t.Fatal(err)
		}
		a.must(a.asAnn, "manifest: more\nzone: UTC\ngroups: {etl: 1}\n", "apply", "-f", "-")
		if _, err := bob.ExecContext(t.Context(), "UPDATE dbjobs.jobs SET removed_at = NULL WHERE name = 'hog'"); !denied(err) {
			t.Errorf("bob's job comes back into ann's group: %v", err)
		}
		a.must(a.asAdmin, "manifest: all\nzone: UTC\ngroups: {etl: 1}\ncalendars: {de: [2036-12-26]}\n", "apply", "-f", "-") // who sees all may connect all
	})
}

// The log has the decisions that a pass makes by itself under the name dbjobs. This is also true for a pass of the
// owner, whom row security binds.
func TestAnOwnersTickPausesItsJob(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("has no row security")
		}
		o := newOwned(t, d)
		for _, c := range [][]string{{"job", "create", "breaks", "--on-error", "pause", "--sql", "SELECT 1 FROM nowhere"}, {"job", "run-now", "breaks"}} {
			if code := o.run(o.asBob, "", c...); code != exitDone {
				t.Fatalf("%q: %s", c, o.lastOutput)
			}
		}
		for range 2 {
			o.run(o.asBob, "", "tick", "--name", o.bob)
		}
		if n := d.Int(t, "SELECT count(*) FROM dbjobs.pauses WHERE paused_by = 'dbjobs itself'") + d.Int(t, "SELECT count(*) FROM dbjobs.changes WHERE changed_by = 'dbjobs itself' AND action = 'pause'"); n != 2 {
			t.Errorf("the job is not paused: %s", o.lastOutput)
		}
	})
}

// All owners share the names of schedules, calendars and groups. Bob, who does not see ann's, gets this as the answer.
func TestANameOfAnotherOwner(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "postgres" {
			t.Skip("has no row security")
		}
		o := newOwned(t, d)
		for kind, file := range map[string]string{"schedule": "schedules: {idle: 0 0 1 1 *}", "calendar": "calendars: {off: [2036-12-26]}", "group": "groups: {few: 2}"} {
			want := "another login has a " + kind + " with this name"
			if code := o.run(o.asBob, "manifest: bobs\nzone: UTC\n"+file+"\n", "apply", "-f", "-"); code != exitUsage || !strings.Contains(o.lastOutput, want) || !strings.Contains(o.lastOutput, kind+"s.") {
				t.Errorf("%s: %d: %s", file, code, o.lastOutput)
			}
		}
	})
}

// runWith runs a command with more variables than the URL.
func (o *owned) runWith(vars map[string]string, stdin string, args ...string) int {
	var out strings.Builder
	env := func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
	vars = maps.Clone(vars)
	vars["HOME"] = o.dir
	code := run(context.Background(), args, strings.NewReader(stdin), &out, &out, env, nil)
	o.lastOutput = o.names.Replace(out.String())
	return code
}

// attacks returns all attacks, including those that are the same for each table.
func (a *attacked) attacks() (list []attack) {
	for _, table := range slices.Sorted(maps.Keys(annsRows)) {
		column, condition := a.column(table), a.words.Replace(annsRows[table])
		list = append(list,
			attack{"read " + table, []string{"INSERT INTO public.ran (what) SELECT 'read' FROM dbjobs." + table + " WHERE 1 / (CASE WHEN " + condition + " THEN 1 ELSE 1 END) = 1 LIMIT 1"}},
			attack{"change " + table, []string{"UPDATE dbjobs." + table + " SET " + column + " = " + column + " WHERE " + condition}},
			attack{"delete from " + table, []string{"DELETE FROM dbjobs." + table + " WHERE " + condition}},
			attack{"truncate " + table, []string{"TRUNCATE dbjobs." + table}},
			attack{"drop " + table, []string{"DROP TABLE dbjobs." + table + " CASCADE", "ALTER TABLE dbjobs." + table + " DISABLE ROW LEVEL SECURITY", "DROP POLICY own ON dbjobs." + table}},
			attack{"trigger on " + table, []string{"CREATE TRIGGER bobs BEFORE INSERT OR UPDATE ON dbjobs." + table + " FOR EACH ROW EXECUTE FUNCTION public.bobs()", "CREATE RULE bobs AS ON INSERT TO dbjobs." + table + " DO INSTEAD NOTHING"}})
	}
	return append(list, postgresAttacks...)
}

func (a *attacked) column(table string) (name string) {
	if err := a.SQL.QueryRow("SELECT attname FROM pg_attribute WHERE attrelid = ('dbjobs.' || $1)::regclass AND attnum > 0 AND attgenerated = '' AND attidentity = '' ORDER BY attnum DESC LIMIT 1", table).Scan(&name); err != nil {
		a.t.Fatal(err)
	}
	return name
}
