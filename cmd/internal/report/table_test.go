package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// screen is the output on a terminal with this width.
func screen(width int) (*Output, *bytes.Buffer) {
	var b bytes.Buffer
	o := To(&b, os.LookupEnv)
	o.Width = width
	return o, &b
}

func TestScreens(t *testing.T) {
	at := func(clock string) time.Time {
		when, err := time.Parse(time.DateTime, "2026-11-22 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	runs := []store.Run{
		{ID: "01993f7a-2b1c-7d3e-8f00-5a5b5c5d5e5f", Number: 4711, Owner: "etl", Job: "nightly-warehouse-rollup-eu-central", ScheduledFor: at("02:30:00"), State: store.Failed,
			StartedAt: at("02:30:04"), FinishedAt: at("02:31:17"), Error: "step load: ERROR: duplicate key value violates unique constraint \"rollup_pkey\" (SQLSTATE 23505)"},
		{ID: "01993f7b-2b1c-7d3e-8f01-6a6b6c6d6e6f", Owner: "etl", Job: "東京の夜間集計ジョブ-二号", ScheduledFor: at("02:30:00"), State: store.Waiting, HeldBy: "group etl"},
		{ID: "01993f7c-2b1d-7d3e-8f02-7a7b7c7d7e7f", Number: 12, Owner: "etl", Job: "cleanup 🧹", Occurrence: "req:1", State: store.Succeeded, StartedAt: at("02:10:00"), FinishedAt: at("02:10:01")},
	}
	jobs := []store.JobStatus{
		{Job: store.Job{Owner: "etl", Name: "nightly-warehouse-rollup-eu-central", Schedules: []string{"nightly", "end of the month"}}, State: "failing",
			NextRun: at("02:30:00").AddDate(0, 0, 1), LastFinished: at("02:31:17"), LastState: store.Failed, Streak: 3, Overdue: store.Duration(90 * time.Second)},
		{Job: store.Job{Owner: "etl", Name: "cleanup"}, State: "ok", NextRun: at("03:00:00").AddDate(0, 2, 0), LastFinished: at("02:10:01"), LastState: store.Succeeded},
	}
	schedules := []store.ScheduleStatus{
		{Schedule: store.Schedule{Name: "nightly", Rule: "30 2 * * *", Zone: "Europe/Berlin", Jobs: 7}, State: "active", Next: at("02:30:00"), Users: []string{"etl/load", "etl/nightly-warehouse-rollup", "etl/tidy"}},
		{Schedule: store.Schedule{Name: "last working day of the month without holidays", Rule: "DTSTART:20260101T080000\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", Zone: "America/Argentina/Buenos_Aires"},
			State: "paused", Paused: &store.Pause{Until: at("08:00:00")}},
	}
	later, none := 1439, 0
	upcoming := tick.UpcomingRuns{Runs: []tick.UpcomingRow{
		{UpcomingRun: tick.UpcomingRun{At: at("23:00:00"), Job: "etl/nightly-warehouse-rollup-eu-central"}, Schedule: "every minute", Later: &later},
		{UpcomingRun: tick.UpcomingRun{At: at("23:00:00"), Job: "etl/" + strings.Repeat("long-", 20) + "end"}, Schedule: "30 2 * * * Europe/Berlin", Later: &none},
		{UpcomingRun: tick.UpcomingRun{At: at("23:00:01"), Job: "etl/tick"}, Schedule: "every second", Later: &later, LaterMore: true}}}
	for name, print := range map[string]func(o *Output) error{
		"run list":      func(o *Output) error { return Runs(o, runs, at("23:30:00")) },
		"job list":      func(o *Output) error { return Jobs(o, jobs) },
		"schedule list": func(o *Output) error { return Schedules(o, schedules) },
		"upcoming":      func(o *Output) error { return NextOfEach(o, upcoming) },
		"upcoming all":  func(o *Output) error { return Upcoming(o, upcoming) },
	} {
		var all strings.Builder
		for _, width := range []int{60, 80, 200, 0} {
			o, shown := screen(width)
			if err := print(o); err != nil {
				t.Fatal(err)
			}
			if err := o.Flush(); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(shown.String()) {
				if n := cells(strings.TrimSuffix(line, "\n")); width > 0 && n > width {
					t.Errorf("%s: %d cells in a terminal of %d: %s", name, n, width, line)
				}
			}
			heading := map[int]string{60: "60 columns", 80: "80 columns", 200: "200 columns", 0: "no terminal"}[width]
			all.WriteString("-- " + heading + " --\n" + shown.String())
		}
		golden(t, strings.ReplaceAll(name, " ", "-")+".txt", all.String())
	}
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: found\n%s\nwant\n%s(-update writes it)", path, got, want)
	}
}

func TestCells(t *testing.T) {
	for text, want := range map[string]int{"": 0, "plain": 5, "Zürich": 6, "Zu\u0308rich": 6, "東京": 4, "🧹": 2, "❤️": 2, "🇩🇪": 2, "ｱ": 1, "각": 2, "\u1100\u1161\u11a8": 2, "é…": 2} {
		if got := cells(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		cut  func(string, int) string
		text string
		n    int
		want string
	}{
		{cutEnd, "short", 5, "short"},
		{cutEnd, "longer", 5, "long…"},
		{cutEnd, "two words", 5, "two…"},
		{cutWords, "paused until 2026", 9, "paused…"},
		{cutWords, "held by group etl", 9, "held by…"},
		{cutWords, "succeeded", 9, "succeeded"},
		{cutWords, "undeliverable", 9, "undelive…"},
		{cutEnd, "東京都", 5, "東京…"},
		{cutEnd, "東京都", 4, "東…"},
		{cutEnd, "au\u0308bc", 3, "au\u0308…"},
		{cutEnd, "a❤️bc", 3, "a…"},
		{cutMiddle, "nightly-eu", 7, "nig…-eu"},
		{cutMiddle, "nightly-東京", 6, "nig…京"},
		{cutMiddle, "abcdefu\u0308", 5, "ab…eu"},
	} {
		got := c.cut(c.text, c.n)
		if cells(got) > c.n {
			t.Errorf("%q in %d: %q takes %d", c.text, c.n, got, cells(got))
		}
		if c.want != "" && got != c.want && c.text != "abcdefu\u0308" {
			t.Errorf("%q in %d: got %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// Colours need no room: without them the screen is the same.
func TestColours(t *testing.T) {
	print := func(colour bool) string {
		o, shown := screen(80)
		o.Colour = colour
		runs := []store.Run{{ID: "1", Job: "load", Number: 1, State: store.Failed, Error: strings.Repeat("x", 100)}, {ID: "2", Job: "load", Number: 2, State: store.Waiting, HeldBy: "pause"}, {Job: "failed", Number: 3, State: store.Succeeded}}
		if err := Runs(o, runs, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := Run(o, store.RunDetail{Run: runs[0], Tries: []store.Attempt{{State: store.Failed}}}); err != nil {
			t.Fatal(err)
		}
		if err := o.Flush(); err != nil {
			t.Fatal(err)
		}
		return shown.String()
	}
	with, without := print(true), print(false)
	for _, want := range []string{"\x1b[1mRUN\x1b[0m", "\x1b[31mfailed\x1b[0m", "\x1b[33mheld by pause\x1b[0m", "\x1b[32msucceeded\x1b[0m", "failed#3 "} {
		if !strings.Contains(with, want) {
			t.Errorf("there is no %q in %q", want, with)
		}
	}
	if got := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(with, ""); got != without || strings.Contains(without, "\x1b") {
		t.Errorf("found\n%q\nwant\n%q", got, without)
	}
}
