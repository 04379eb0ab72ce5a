package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A time is read in the form in which people write it, in their zone.
func TestInstantsAreReadAsPeopleWriteThem(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 30, 0, 0, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"2026-12-01T08:00:00Z":      "2026-12-01T08:00:00Z",
		"2026-12-01T08:00:00+09:00": "2026-11-30T23:00:00Z",
		"2026-12-01":                "2026-11-30T23:00:00Z",
		"2026-12-01 08:00":          "2026-12-01T07:00:00Z",
		"2026-12-01T08:00:30":       "2026-12-01T07:00:30Z",
		"today":                     "2026-02-28T23:00:00Z",
		"yesterday":                 "2026-02-27T23:00:00Z",
		"Tomorrow 08:00":            "2026-03-02T07:00:00Z",
		"now":                       "2026-02-28T23:30:00Z",
		"2h":                        "2026-03-01T01:30:00Z",
		"90 minutes":                "2026-03-01T01:00:00Z",
		"2h from now":               "2026-03-01T01:30:00Z",
	} {
		if got, ok := readInstant(text, now, ahead); !ok || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q is %s, %v; want %s", text, got.UTC().Format(time.RFC3339), ok, want)
		}
	}
	for _, text := range []string{"2h", "2h ago"} {
		if got, ok := readInstant(text, now, ago); !ok || !got.Equal(now.Add(-2*time.Hour)) {
			t.Errorf("%s is %s, %v", text, got, ok)
		}
	}
	for _, text := range []string{"soon", "08:00", "2026-13-01", "tomorrow at 8", "2026-12-01 25:00", "2 weeks", "2h ago", "from now"} {
		if got, ok := readInstant(text, now, ahead); ok {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

// A time that a clock change leaves out or repeats is read as rules read it, in each zone. A day begins on that day, also
// where midnight is left out.
func TestInstantsAtClockChangesAreThoseOfRules(t *testing.T) {
	for _, is := range []struct{ zone, text string }{
		{"America/New_York", "2027-03-14 02:30"}, {"America/New_York", "2027-11-07 01:30"}, {"America/New_York", "2027-11-07 02:00"},
		{"Europe/Berlin", "2027-03-28 02:30"}, {"Europe/Berlin", "2027-10-31 02:30"}, {"Europe/Berlin", "2027-10-31 03:00"},
		{"America/Santiago", "2027-09-05 00:00"}, {"America/Santiago", "2027-09-05 00:30"}, {"America/Santiago", "2027-04-03 23:30"},
		{"Australia/Lord_Howe", "2027-10-03 02:15"}, {"Australia/Lord_Howe", "2027-04-04 01:45"}, {"Pacific/Apia", "2011-12-30 08:00"},
	} {
		zone, err := rules.Location(is.zone)
		if err != nil {
			t.Fatal(err)
		}
		r, err := rules.Parse("at "+strings.Replace(is.text, " ", "T", 1), rules.Defaults{Zone: is.zone})
		if err != nil {
			t.Fatal(err)
		}
		want, err := r.Next(time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := readInstant(is.text, time.Date(2027, 1, 1, 0, 0, 0, 0, zone), ahead); !ok || !got.Equal(want) {
			t.Errorf("%s in %s is %s, %v; a rule reads %s", is.text, is.zone, got, ok, want.In(zone))
		}
	}
	zone, err := rules.Location("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2027, 9, 4, 0, 30, 0, 0, zone)
	for text, want := range map[string]string{"tomorrow": "2027-09-05T01:00:00-03:00", "tomorrow 08:00": "2027-09-05T08:00:00-03:00", "2027-09-05": "2027-09-05T01:00:00-03:00"} {
		if got, ok := readInstant(text, now, ahead); !ok || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %s, %v; want %s", text, got.Format(time.RFC3339), ok, want)
		}
	}
}

// A pause keeps how its end was given, since a length and a day count from the clock of that moment.
func TestUntilIsGivenAsALengthOrADayOrAnInstant(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "2h": store.UntilLength, " 90m from now ": store.UntilLength, "tomorrow 08:00": store.UntilDay, "today": store.UntilDay, "Tomorrow 08:00": store.UntilDay,
		"2026-12-01T08:00:00Z": "", "2026-12-01": "", "2026-12-01 08:00": "", "2026-12-01T08:00": "", "now": store.UntilLength,
	} {
		if got := untilAs(text); got != want {
			t.Errorf("%q is given as %q, want %q", text, got, want)
		}
	}
}

// In a change, a length counts from the clock of the database, which is the one that decides: with the clock of a host that is an
// hour behind, a pause would end an hour early, and a run for later would execute now. Sessions of MariaDB and MySQL can have a
// clock of their own.
func TestLengthsCountFromTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		if storetest.Dialect(engine) != "mariadb" {
			continue
		}
		db, home := storetest.Open(t, engine, store.Options{}), t.TempDir()
		now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
		ahead := storetest.Settings(t, db.URL, fmt.Sprintf("timestamp = %d", now.Unix()))
		for _, args := range [][]string{{"job", "create", "one", "--sql", "SELECT 1"}, {"job", "run-now", "one", "--at", "2h from now"}, {"job", "pause", "one", "--until", "2h"}} {
			if code, stderr := invoke(t.Context(), t, home, nil, io.Discard, append(args, "--database", ahead)...); code != exitDone {
				t.Fatalf("%q: code %d, said %q", args, code, stderr)
			}
		}
		want := ticktest.Literal(db, now.Add(2*time.Hour))
		for _, at := range []struct{ table, column string }{{db.Table("runs"), "scheduled_for"}, {db.Table("pauses"), "until_at"}} {
			if db.Int(t, "SELECT COUNT(*) FROM "+at.table+" WHERE "+at.column+" = "+want) != 1 {
				t.Errorf("%s is not two hours after the clock of the database", at.column)
			}
		}
	}
}

// What lists counts from that clock, too, since everything on record is dated by it: with the clock of the host, which is years behind
// here, an hour ago would be before all runs, and the next times would have passed long ago.
func TestListsCountFromTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		if storetest.Dialect(engine) != "mariadb" {
			continue
		}
		db, home := storetest.Open(t, engine, store.Options{}), t.TempDir()
		at := func(clock time.Time, args ...string) string {
			t.Helper()
			var out strings.Builder
			url := storetest.Settings(t, db.URL, fmt.Sprintf("timestamp = %d", clock.Unix()))
			code, stderr := invoke(t.Context(), t, home, nil, &out, append(args, "--database", url)...)
			if code != exitDone {
				t.Fatalf("%q: code %d, said %q", args, code, stderr)
			}
			return out.String() + stderr
		}
		noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
		at(noon, "job", "create", "one", "--sql", "INSERT INTO nowhere VALUES (1)")
		at(noon, "job", "run-now", "one")
		at(noon, "tick", "--max-clock-skew", "0")
		later := noon.Add(150 * time.Minute) // at half past two
		days, file := filepath.Join(home, "days.txt"), filepath.Join(home, "jobs.yaml")
		for path, text := range map[string]string{days: "2028-12-25\n", file: "manifest: jobs\ncalendars: {old: {days: [2028-12-25]}}\nschedules: {early: {rule: daily at 08:00, calendar: old}}\njobs: {two: {schedule: early, sql: SELECT 1}}\n"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			args       []string
			want, none string
		}{
			{[]string{"run", "list", "--since", "3h"}, "one#1", ""},
			{[]string{"run", "list", "--since", "1h"}, "", "one#1"},
			{[]string{"errors", "--since", "3h"}, "one#1", ""},
			{[]string{"errors", "--since", "1h"}, "", "one#1"},
			{[]string{"missed", "--since", "1h"}, "no gap is on record since 2030-01-01T13:30:00Z", ""},
			{[]string{"job", "create", "hourly", "--rule", "every 1h", "--sql", "SELECT 1"}, "first run: Tue 2030-01-01 15:00:00", ""},
			{[]string{"schedule", "create", "daily", "--rule", "every 1d"}, "", ""},
			{[]string{"schedule", "alter", "daily", "--rule", "every 2h"}, "2030-01-01T16:00:00Z", ""},
			{[]string{"upcoming", "--to", "1h"}, "2030-01-01T15:00:00Z", ""},
			{[]string{"calendar", "import", "de", "-f", days}, "calendar-ends", ""},
			{[]string{"apply", "-f", file}, "calendar-ends", ""},
			{[]string{"export", "--ical", "--ahead", "2h"}, "20300101T150000Z", ""},
		} {
			if got := at(later, c.args...); !strings.Contains(got, c.want) || c.none != "" && strings.Contains(got, c.none) {
				t.Errorf("%q: %s", c.args, got)
			}
		}
	}
}
