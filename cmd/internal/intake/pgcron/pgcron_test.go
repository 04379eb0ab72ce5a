package pgcron

import (
	"bytes"
	"database/sql"
	"flag"
	"math/rand"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

var from = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// written returns the manifest. apply must accept it.
func written(t *testing.T, r *intake.Result) string {
	t.Helper()
	r.Finish(from, "")
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read([]manifest.Input{{Path: "it", In: bytes.NewReader(b.Bytes())}}, manifest.Options{Now: from, Env: os.LookupEnv})
	if err != nil {
		t.Fatalf("apply refuses it: %v\n%s", err, b.String())
	}
	if len(m.Jobs) != r.Imported() {
		t.Fatalf("%d jobs, and %d imported", len(m.Jobs), r.Imported())
	}
	return b.String()
}

// A file of rows, as CSV and as a dump, becomes this manifest.
func TestFile(t *testing.T) {
	for _, name := range []string{"jobs.csv", "dump.sql"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := File(string(text))
		if err != nil {
			t.Fatal(err)
		}
		got := written(t, Convert(rows, Options{Source: "pg_cron", Zone: "Europe/Berlin", Targets: intake.Targets{"stock": "stock_db"}, From: from}))
		if *update && name == "jobs.csv" {
			if err := os.WriteFile("testdata/jobs.yaml", []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile("testdata/jobs.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs from testdata/jobs.yaml, which -update writes:\n%s", name, got)
		}
	}
	for _, text := range []string{"", "a,b\n1,2\n", "schedule,command\n\"x\n", "COPY cron.job (schedule, command) FROM stdin;\nx\ty\n", "schedule,command\nx\n"} {
		if rows, err := File(text); err == nil {
			t.Errorf("%q is read as %v", text, rows)
		}
	}
}

// server is the database of the real pg_cron.
func server(t *testing.T) *sql.DB {
	t.Helper()
	url := os.Getenv("DBJOBS_TEST_PGCRON")
	if url == "" {
		const why = "DBJOBS_TEST_PGCRON is not set: make imports, a part of make test, starts a PostgreSQL with pg_cron"
		if os.Getenv("DBJOBS_REQUIRE_IMPORTS") != "" { // make imports sets it
			t.Fatal(why)
		}
		t.Skip(why)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := db.Exec("SELECT cron.unschedule(jobid) FROM cron.job")
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return db
}

// All jobs of the real pg_cron are found, with the runs that it has recorded.
func TestReal(t *testing.T) {
	db := server(t)
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("SELECT cron.schedule('nightly', '30 2 * * *', 'VACUUM')")
	run("SELECT cron.schedule('*/5 * * * *', 'DELETE FROM sessions WHERE expires < now()')")
	run("SELECT cron.schedule('both', '0 0 1,15 * fri', 'SELECT 1')")
	run("UPDATE cron.job SET active = false WHERE jobname = 'both'")
	seen, err := Query(t.Context(), db)
	if err != nil || len(seen.Rows) != 3 {
		t.Fatal(seen, err)
	}
	if !seen.Alone {
		t.Error("the account is no superuser, and that is not noticed")
	}
	r := Convert(seen.Rows, Options{Source: "pg_cron", Zone: seen.Zone, From: from})
	text := written(t, r)
	for _, want := range []string{"  nightly:\n    disabled: true\n    rule: 30 2 * * *\n    sql: VACUUM\n", "  delete-from-sessions-where-expires:\n", "It is not active in pg_cron either."} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

// Newer versions of pg_cron show the zone to superusers only. PostgreSQL has a setting of that kind, and one that each login
// sees. The jobs are read in either case.
func TestRealZone(t *testing.T) {
	db := server(t)
	if _, err := db.Exec("SELECT cron.schedule('nightly', '30 2 * * *', 'VACUUM')"); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]Seen{"data_directory": {NoZone: true}, "block_size": {Zone: "8192"}, "cron.no_such": {NoZone: true}} {
		seen, err := query(t.Context(), db, setting)
		if err != nil {
			t.Errorf("%s: %v", setting, err)
		} else if len(seen.Rows) != 1 || seen.Zone != want.Zone || seen.NoZone != want.NoZone {
			t.Errorf("%s: %+v, want %+v", setting, seen, want)
		}
	}
}

// A text that the real pg_cron refuses is not imported. A text that it accepts is imported, except for texts whose end
// it does not check, such as "5*", and ranges that run backward and are empty for it.
func TestRealGrammar(t *testing.T) {
	db := server(t)
	list := []string{"5/10 * * * *", "*/90 * * * *", "0 0 * * FRI-SUN", "0 0 * * 5-7", "0 0 * * 7", "0 0 L * *", "0 0 ? * *", "60 * * * *", "*/0 * * * *",
		"1-5,*/20 * * * *", "0 0 1, * *", "007 08 * * *", "* * * january *", "* * * jan *", "60 seconds", "0 seconds", "@daily", "@reboot", "@weekdays",
		"@hourly", "", "* * * *", "-5 * * * *", "0 0 32 * *", "0 24 * * *"}
	sure := len(list)
	rnd := rand.New(rand.NewSource(7))
	pieces := []string{"*", "*", "*", "*/5", "*/70", "0-7/2", "0", "5", "7", "12", "31", "59", "60", "mon", "SUN", "jan", "2-4", "1,3", "5*", "3-", ",", "/2"}
	for range 300 {
		var fields [5]string
		for i := range fields {
			fields[i] = pieces[rnd.Intn(len(pieces))]
		}
		list = append(list, strings.Join(fields[:], " "))
	}
	both := 0
	for i, text := range list {
		_, refused := db.Exec("SELECT cron.schedule($1, 'SELECT 1')", text)
		r := Convert([]Row{{ID: 1, Schedule: text, Command: "SELECT 1"}}, Options{From: from})
		r.Finish(from, "")
		reason := r.Items[0].Reason
		switch {
		case refused == nil && reason == "":
			both++
		case refused != nil && reason == "", refused == nil && i < sure:
			t.Errorf("%q: pg_cron says %v, the import %q", text, refused, reason)
		}
	}
	if both < 20 {
		t.Errorf("both take only %d of %d", both, len(list))
	}
}

// The last day of the month stays beside days that dbjobs reads in another form only.
func TestLastDay(t *testing.T) {
	for text, want := range map[string]string{"0 0 $ * */8": "0 0 L * */7", "0 0 1-9/40,$ * *": "0 0 1,L * *"} {
		r := Convert([]Row{{ID: 1, Schedule: text, Command: "SELECT 1"}}, Options{From: from})
		r.Finish(from, "")
		if own := r.Items[0].Definition; own == nil || own.Own.Rule != want {
			t.Errorf("%s is %+v, want %s: %s", text, own, want, r.Items[0].Reason)
		}
	}
}
