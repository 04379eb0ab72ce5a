package mysqlevents

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

var now = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// written returns the manifest. apply must accept it.
func written(t *testing.T, r *intake.Result) string {
	t.Helper()
	r.Finish(now, "")
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read([]manifest.Input{{Path: "it", In: bytes.NewReader(b.Bytes())}}, manifest.Options{Now: now, Env: os.LookupEnv})
	if err != nil || len(m.Jobs) != r.Imported() {
		t.Fatalf("apply refuses it: %v\n%s", err, b.String())
	}
	return b.String()
}

// All events of the real server are found.
func TestEventsOfMariaDB(t *testing.T) {
	if !slices.Contains(storetest.Engines(t), "mariadb") {
		storetest.Skip(t, "MariaDB is not among DBJOBS_TEST_DATABASES")
	}
	db, err := engine.New(storetest.URL(t, "mariadb"), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	pool, err := db.JobPool(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, text := range []string{
		"CREATE EVENT a ON SCHEDULE EVERY '1:30' HOUR_MINUTE STARTS '2036-01-01 02:30:00' ENDS '2037-01-01 02:30:00' DO SELECT 1",
		"CREATE EVENT b ON SCHEDULE AT '2036-01-01 02:30:00' ON COMPLETION PRESERVE DISABLE COMMENT 'once' DO BEGIN SELECT 1; SELECT 2; END",
		"CREATE EVENT c ON SCHEDULE EVERY 2 QUARTER STARTS '2036-01-31 00:00:00' DO DELETE FROM t",
		"CREATE EVENT d ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 02:30:00' DO SELECT 1",
		"CREATE EVENT e ON SCHEDULE EVERY '1 2:3:4' DAY_SECOND DISABLE DO IF 1 THEN SELECT 1; END IF",
		"CREATE EVENT g ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 02:30:00' DO /* both */ BEGIN SELECT 1; SELECT 2; END",
		"CREATE EVENT f ON SCHEDULE AT '2036-01-01 02:30:00' DO SELECT 1",
	} {
		if _, err := pool.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	other, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, text := range []string{
		"SET collation_connection = 'utf8mb4_general_ci'",
		"CREATE EVENT h ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 02:30:00' DO DELETE FROM t WHERE DAYNAME(NOW()) = 'sunday'",
		"CREATE EVENT i ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 02:30:00' DO DELETE FROM t WHERE DAYNAME(NOW()) = \"sunday\"",
		"CREATE EVENT k ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 02:30:00' DO DELETE FROM t", // compares no text
		"SET collation_connection = 'latin1_swedish_ci'",
		"CREATE EVENT l ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 02:30:00' DO DELETE FROM t WHERE DAYNAME(NOW()) = 'sunday'",
	} {
		if _, err := other.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	events, s, err := Query(t.Context(), pool)
	if err != nil || len(events) != 11 || !s.MariaDB {
		t.Fatal(events, s, err)
	}
	got := written(t, Convert(events, s, Options{Source: "MariaDB", Zone: "Europe/Berlin", Now: now}))
	for _, want := range []string{
		"rule: every 90m starting 2036-01-01T02:30:00\n", "not_after: 2037-01-01T01:30:00Z\n", "remove_when_done: true\n",
		"  b:\n    description: once\n    disabled: true\n    rule: at 2036-01-01T02:30:00\n    sql: BEGIN NOT ATOMIC SELECT 1; SELECT 2; END\n",
		"DTSTART:20360131T000000\n      RRULE:FREQ=MONTHLY;INTERVAL=6;SKIP=BACKWARD\n", "rule: every 1d starting 2036-01-01T02:30:00\n",
		"sql: /* both */ BEGIN NOT ATOMIC SELECT 1; SELECT 2; END\n",
		"Collation: events ran with collation_connection latin1_swedish_ci (l), utf8mb4_general_ci (h, i); here it is utf8mb4_bin,",
		"# event e: EVERY '1 2:3:4' DAY_SECOND", "# - Such a body is best a stored program: CREATE PROCEDURE e()",
	} {
		if !strings.Contains(got, want) && !strings.Contains(strings.ReplaceAll(got, "\n# ", " "), want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

// To a login without the privilege EVENT the table of events is empty, as if there were none.
func TestEventsOfALoginWithoutTheRight(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		if d.Engine != "mariadb" && d.Engine != "mysql" {
			t.Skip("its database has no events")
		}
		d.Exec(t, "CREATE EVENT a ON SCHEDULE EVERY 1 DAY DO SELECT 1")
		db, err := engine.New(d.Reader(t), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		pool, err := db.JobPool(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if events, _, err := Query(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "the privilege EVENT") {
			t.Errorf("got %v, %v", events, err)
		}
	})
}

// Zones, intervals and ends, in rows like those of other servers.
func TestConvert(t *testing.T) {
	for _, c := range []struct {
		event Event
		want  string
	}{
		{Event{Zone: "Europe/Berlin", Value: "1", Field: "DAY", Starts: "2026-01-01 02:30:00"}, "Clock change 2027-03-28 (02:00 becomes 03:00): dbjobs runs it at 03:30 +02:00"},
		{Event{Zone: "Europe/Berlin", Value: "1", Field: "HOUR", Starts: "2026-01-01 00:00:00"}, "2027-10-31 (03:00 becomes 02:00). dbjobs counts elapsed time"},
		{Event{Zone: "+02:00", Value: "1", Field: "WEEK", Starts: "2026-01-01 02:30:00"}, "rule: every 1w starting 2026-01-01T02:30:00\n      zone: Etc/GMT-2\n"},
		{Event{Zone: "+05:30", Value: "3", Field: "HOUR", Starts: "2026-01-01 02:30:00"}, "rule: every 3h starting 2025-12-31T21:00:00\n"},
		{Event{Zone: "+05:30", Value: "3", Field: "MONTH", Starts: "2026-01-01 02:30:00"}, "its months are counted there"},
		{Event{Zone: "SYSTEM", Value: "'2-6'", Field: "YEAR_MONTH", Starts: "2026-01-01 02:30:00"}, "FREQ=MONTHLY;INTERVAL=30"},
		{Event{Zone: "SYSTEM", Value: "1", Field: "MONTH", Starts: "2026-01-31 02:30:00"}, "(after 28 February, on a 28th), then on day 31 if its month has one"},
		{Event{Zone: "SYSTEM", Value: "1", Field: "QUARTER", Starts: "2026-08-31 02:30:00"}, "There, the time after such a one comes twice"},
		{Event{Zone: "SYSTEM", Value: "4", Field: "YEAR", Starts: "2024-02-29 02:30:00"}, "FREQ=YEARLY;INTERVAL=4;SKIP=BACKWARD"},
		{Event{Zone: "SYSTEM", Value: "1", Field: "MICROSECOND", Starts: "2026-01-01 02:30:00"}, "which is not known here"},
		{Event{Zone: "SYSTEM", Value: "1", Field: "DAY", Starts: "2026-01-01 02:30:00", Ends: "2026-02-01 02:30:00"}, "Its last time is past"},
		{Event{Zone: "SYSTEM", Type: "ONE TIME", At: "2026-01-01 02:30:00"}, "Its time is past"},
		{Event{Zone: "-13:00", Type: "ONE TIME", At: "2036-01-01 02:30:00"}, "Its time cannot be used"},
		{Event{Zone: "Mars/Base", Value: "1", Field: "DAY", Starts: "2026-01-01 02:30:00"}, "its zone cannot be used"},
		{Event{Zone: "SYSTEM", Value: "1", Field: "DAY", Starts: "2026-01-01 02:30:00", Body: "BEGIN SELECT 1; END"}, "CREATE PROCEDURE x() with it"},
		{Event{Zone: "SYSTEM", Value: "1", Field: "DAY", Starts: "2026-01-01 02:30:00", Body: "/* nightly */ -- purge\n# it\nBEGIN SELECT 1; END"}, "CREATE PROCEDURE x() with it"},
		{Event{Zone: "+05:00", Value: "1", Field: "DAY", Starts: "2026-01-01 02:30:00"}, "It ran with time_zone '+05:00'; here it is that of the server, 'SYSTEM'"},
		{Event{Zone: "SYSTEM", Value: "1", Field: "DAY", Starts: "2026-01-01 02:30:00", SQLMode: "ANSI", Status: "SLAVESIDE_DISABLED"}, "It ran with sql_mode ANSI"},
	} {
		c.event.Name, c.event.Schema, c.event.Definer = "x", "shop", "ann@%"
		if c.event.Body == "" {
			c.event.Body = "SELECT 1"
		}
		got := written(t, Convert([]Event{c.event}, Server{TimeZone: "SYSTEM"}, Options{Source: "MySQL", Zone: "UTC", Now: now}))
		if joined := strings.ReplaceAll(got, "\n  #   ", " "); !strings.Contains(joined, c.want) && !strings.Contains(strings.ReplaceAll(got, "\n#   ", " "), c.want) {
			t.Errorf("%+v: there is no %q in\n%s", c.event, c.want, got)
		}
	}
}

// An event whose collation is that of a job has no remark about it, and neither has one that compares no text.
func TestCollations(t *testing.T) {
	for body, want := range map[string]bool{"SELECT 1": false, "SELECT 'a' = 'A'": true} {
		for collation, differs := range map[string]bool{"utf8mb4_bin": false, "utf8mb4_general_ci": true} {
			e := Event{Name: "x", Schema: "shop", Zone: "UTC", Value: "1", Field: "DAY", Starts: "2026-01-01 02:30:00", Body: body, Collation: collation}
			r := Convert([]Event{e}, Server{TimeZone: "UTC", Collation: "utf8mb4_bin"}, Options{Source: "MySQL", Zone: "UTC", Now: now})
			said := strings.Contains(strings.Join(r.Head, "\n"), "SET collation_connection = 'utf8mb4_general_ci'")
			if said != (want && differs) || strings.Contains(strings.Join(r.Head, "\n"), "Collation") != said {
				t.Errorf("%s with %s: %q", body, collation, r.Head)
			}
		}
	}
}

// An event whose zone is the server's, in other words, runs as it ran.
func TestSameZone(t *testing.T) {
	for _, c := range []struct {
		event, server, system string
		same                  bool
	}{
		{"SYSTEM", "SYSTEM", "CEST", true}, {"+02:00", "+02:00", "UTC", true}, {"UTC", "SYSTEM", "UTC", true}, {"SYSTEM", "+00:00", "UTC", true},
		{"UTC", "SYSTEM", "CEST", false}, {"SYSTEM", "+02:00", "CEST", false}, {"Europe/Berlin", "UTC", "UTC", false}, {"Mars/Base", "SYSTEM", "UTC", false},
	} {
		if got := (Server{Zone: c.system, TimeZone: c.server}).same(c.event); got != c.same {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
