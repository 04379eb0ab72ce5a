package pgagent

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// installed is a database with the tables and functions of the real pgAgent.
func installed(t *testing.T) *sql.DB {
	t.Helper()
	root := os.Getenv("DBJOBS_TEST_PGAGENT")
	if root == "" || !slices.Contains(storetest.Engines(t), "postgres") {
		const why = "DBJOBS_TEST_PGAGENT is not set: make imports, a part of make test, finds or fetches pgAgent"
		if os.Getenv("DBJOBS_REQUIRE_IMPORTS") != "" { // make imports sets it
			t.Fatal(why)
		}
		t.Skip(why)
	}
	files, err := filepath.Glob(root + "/usr/share/postgresql/*/extension/pgagent--[0-9].[0-9].sql")
	if err != nil || len(files) == 0 {
		t.Fatal("pgAgent's extension is not below ", root, err)
	}
	script, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	text := string(script)
	if at := strings.Index(text, "SELECT pg_catalog.pg_extension_config_dump"); at >= 0 {
		text = text[:at] // the rest is for CREATE EXTENSION
	}
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, `\`) {
			lines = append(lines, line)
		}
	}
	db, err := engine.New(storetest.URL(t, "postgres"), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	pool, err := db.JobPool(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	conn, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "CREATE SCHEMA IF NOT EXISTS pgagent; "+strings.Join(lines, "")); err != nil {
		t.Fatal(err)
	}
	return pool
}

// written returns the manifest. apply must accept it.
func written(t *testing.T, r *intake.Result, now time.Time, prefix string) string {
	t.Helper()
	r.Finish(now, prefix)
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read([]manifest.Input{{Path: "it", In: bytes.NewReader(b.Bytes())}}, manifest.Options{Now: now, Env: os.LookupEnv})
	if err == nil {
		err = m.Resolve(&store.Known{}, manifest.Targets{})
	}
	if err != nil || len(m.Jobs) != r.Imported() {
		t.Fatalf("apply refuses it: %v\n%s", err, b.String())
	}
	return b.String()
}

// list writes an array of n truth values. Some of them are true.
func list(n int, on ...int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = "f"
		if slices.Contains(on, i) {
			parts[i] = "t"
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// All jobs of the real tables are found.
func TestRealJobs(t *testing.T) {
	db := installed(t)
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(query, err)
		}
	}
	schedule := `INSERT INTO pgagent.pga_schedule (jscjobid, jscname, jscstart, jscend, jscminutes, jschours, jscweekdays, jscmonthdays, jscmonths)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	start := "2026-01-01T00:00:00Z"
	for i, name := range []string{"nightly", "two", "none", "empty"} {
		run("INSERT INTO pgagent.pga_job (jobid, jobjclid, jobname, jobdesc) VALUES ($1, 1, $2, 'why')", i+1, name)
	}
	step := "INSERT INTO pgagent.pga_jobstep (jstjobid, jstname, jstkind, jstcode, jstdbname, jstconnstr, jstonerror) VALUES ($1, $2, $3, $4, $5, $6, $7)"
	run(step, 1, "b", "s", "SELECT 2", "shop", "", "i")
	run(step, 1, "a", "s", "SELECT 1", "", "host=db dbname=stock password=geheim", "f")
	run(step, 1, "c", "b", "echo done", "", "", "f")
	run(step, 2, "x", "s", "SELECT 1", "shop", "", "f")
	run(step, 3, "x", "s", "SELECT 1", "shop", "", "f")
	run(schedule, 1, "s", start, nil, list(60, 30), list(24, 2), list(7, 1, 5), list(32), list(12))
	run(schedule, 2, "s", start, "2037-01-01T00:00:00Z", list(60, 0), list(24, 6), list(7), list(32, 31), list(12))
	run(schedule, 2, "t", start, nil, list(60, 0, 30), list(24, 2), list(7, 1), list(32, 0, 1, 2, 3, 4, 5, 6), list(12))
	run("INSERT INTO pgagent.pga_exception (jexscid, jexdate, jextime) VALUES (3, '2036-01-07', NULL), (3, NULL, '02:30')")
	jobs, _, err := Query(t.Context(), db)
	if err != nil || len(jobs) != 4 {
		t.Fatal(jobs, err)
	}
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	r := Convert(jobs, Options{Source: "pgAgent", Zone: "Europe/Berlin", Now: now})
	got := written(t, r, now, "")
	flat := regexp.MustCompile(`\n +`).ReplaceAllString(got, "\n")
	for _, want := range []string{
		"rule: 30 2 * * 1,5\n", "on_failure: next\n", "shell: echo done\n", "description: why\n",
		"DTSTART:20260101T010000\nRRULE:FREQ=DAILY;BYMONTHDAY=-1;BYHOUR=6;BYMINUTE=0;BYSECOND=0;UNTIL=20370101T010000\n",
		"BYMONTHDAY=1,2,3,4,5,6,7;BYDAY=MO;BYHOUR=2;BYMINUTE=0,30;BYSECOND=0\n", "EXRULE:FREQ=DAILY;BYHOUR=02;BYMINUTE=30;BYSECOND=0\n",
		"EXDATE;VALUE=DATE:20360107\n", "It has no schedule, so it runs on request only.", "# - It has no step that is enabled; nothing is lost.",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "geheim") {
		t.Errorf("a password of a connection string is shown:\n%s", got)
	}
	if at := strings.Index(got, "name: a"); at < 0 || at > strings.Index(got, "name: b") {
		t.Errorf("the steps are not in the order of their names:\n%s", got)
	}
}

// A schedule begins with the minute of its start. An exception at another second takes nothing away.
func TestRealSeconds(t *testing.T) {
	db := installed(t)
	var id int64
	if err := db.QueryRow("INSERT INTO pgagent.pga_job (jobjclid, jobname) VALUES (1, 'j') RETURNING jobid").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO pgagent.pga_jobstep (jstjobid, jstname, jstkind, jstcode, jstdbname) VALUES ($1, 'a', 's', 'SELECT 1', 'shop')", id); err != nil {
		t.Fatal(err)
	}
	var schedule int64
	if err := db.QueryRow(`INSERT INTO pgagent.pga_schedule (jscjobid, jscname, jscstart, jscminutes, jschours, jscweekdays, jscmonthdays, jscmonths)
		VALUES ($1, 's', '2036-01-07T02:30:40Z', $2, $3, $4, $5, $6) RETURNING jscid`, id, list(60, 30), list(24, 2), list(7), list(32), list(12)).Scan(&schedule); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO pgagent.pga_exception (jexscid, jexdate, jextime) VALUES ($1, '2036-01-07', '02:30:40'), ($1, NULL, '02:30:01')", schedule); err != nil {
		t.Fatal(err)
	}
	var next time.Time
	if err := db.QueryRow(`SELECT pgagent.pga_next_schedule(jscid, jscstart, jscend, jscminutes, jschours, jscweekdays, jscmonthdays, jscmonths)
		FROM pgagent.pga_schedule WHERE jscid = $1`, schedule).Scan(&next); err != nil {
		t.Fatal(err)
	}
	jobs, _, err := Query(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	it := Convert(jobs, Options{Zone: "UTC", Now: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}).Items[0]
	j := it.Definition
	if j == nil {
		t.Fatal(it.Reason)
	}
	r, err := rules.Parse(j.Own.Rule, rules.Defaults{Zone: j.Own.Zone})
	if err != nil {
		t.Fatal(err)
	}
	if ours, err := r.Next(j.NotBefore.Add(-1)); err != nil || !ours.Equal(next) {
		t.Errorf("%v: pgAgent runs it at %s, dbjobs at %s, from %s on", err, next, ours, j.NotBefore)
	}
}

// The next time of a schedule is the same as the real pgAgent computes. There is one exception: pgAgent leaves out the
// last day of the month if other days are also named.
func TestRealTimes(t *testing.T) {
	db := installed(t)
	rnd := rand.New(rand.NewSource(3))
	some := func(n int) (on []int) {
		for range rnd.Intn(3) {
			on = append(on, rnd.Intn(n))
		}
		return on
	}
	same, faulty := 0, 0
	for range 150 {
		minutes, hours, week, days, months := []int{rnd.Intn(60)}, some(24), some(7), some(28), some(12) // pgAgent fails with an error for the 30th of February
		if rnd.Intn(3) == 0 {
			days = append(days, 31)
		}
		var now time.Time
		var next sql.NullTime
		var text string
		err := db.QueryRow(`SELECT now(), pgagent.pga_next_schedule(0, '2026-01-01T00:00:00Z', NULL, $1::bool[], $2::bool[], $3::bool[], $4::bool[], $5::bool[]),
			jsonb_build_object('jscname', 's', 'jscenabled', true, 'jscstart', '2026-01-01T00:00:00Z', 'jscminutes', $1::bool[], 'jschours', $2::bool[],
				'jscweekdays', $3::bool[], 'jscmonthdays', $4::bool[], 'jscmonths', $5::bool[])::text`,
			list(60, minutes...), list(24, hours...), list(7, week...), list(32, days...), list(12, months...)).Scan(&now, &next, &text)
		if err != nil {
			t.Fatal(err)
		}
		var s Schedule
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		own, reason := schedule(&s, false, Options{Zone: "UTC", Now: now}, func(string, ...any) {})
		what := fmt.Sprintf("minutes %v, hours %v, week %v, days %v, months %v: %s", minutes, hours, week, days, months, own.Rule)
		if reason != "" {
			t.Errorf("%s: %s", what, reason)
			continue
		}
		r, err := rules.Parse(own.Rule, rules.Defaults{Zone: "UTC"})
		if err != nil {
			t.Fatal(what, err)
		}
		ours, err := r.Next(now.Truncate(time.Minute).Add(time.Minute - time.Second))
		if err != nil {
			t.Fatal(what, err)
		}
		switch {
		case next.Valid && next.Time.Equal(ours):
			same++
		case slices.Contains(days, 31) && len(days) > 1: // pgAgent leaves out the last day if other days are also named
			faulty++
		default:
			t.Errorf("%s: pgAgent runs it at %v (%v), dbjobs at %v", what, next.Time, next.Valid, ours)
		}
	}
	if same < 100 || faulty == 0 {
		t.Errorf("%d of 150 are the same, and %d differ by the fault of pgAgent that the import names", same, faulty)
	}
}
