package holiday

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func calendar(events ...string) []byte {
	return []byte(strings.ReplaceAll("BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VTIMEZONE\nTZID:Europe/Berlin\nEND:VTIMEZONE\n"+strings.Join(events, "\n")+"\nEND:VCALENDAR\n", "\n", "\r\n"))
}

func TestRead(t *testing.T) {
	christmas := "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261227\nSUMMARY;LANGUAGE=\"de:DE\":Weihnachten\\, 1. un\n d 2. Feiertag #1\nBEGIN:VALARM\nSUMMARY:no\nTRIGGER:-PT1H\nEND:VALARM\nEND:VEVENT"
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"lines":            {[]byte("\ufeff# remark\r\n2026-12-25 Christmas Day\r\n\r\n01-01\n"), "2026-12-25 Christmas Day|01-01"},
		"range":            {calendar(christmas), "2026-12-25..2026-12-26 Weihnachten, 1. und 2. Feiertag 1"},
		"one day":          {calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20270101\nEND:VEVENT", "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20270501\nDURATION:P1D\nEND:VEVENT"), "2027-01-01|2027-05-01"},
		"end at its start": {calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20270101\nDTEND;VALUE=DATE:20270101\nEND:VEVENT"), "2027-01-01"},
		"duration":         {calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20270101\nDURATION:P1W\nEND:VEVENT"), "2027-01-01..2027-01-07"},
		"yearly": {calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20000101\nRRULE:FREQ=YEARLY;UNTIL=20290101\nEXDATE;VALUE=DATE:20280101\nSUMMARY:New Year\nEND:VEVENT"),
			"2025-01-01 New Year|2026-01-01 New Year|2027-01-01 New Year|2029-01-01 New Year"},
		"start beside the rule": {calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261224\nRRULE:FREQ=WEEKLY;BYDAY=SA;UNTIL=20270102\nEXDATE;VALUE=DATE:20261226\nEND:VEVENT"), "2026-12-24|2027-01-02"},
		"start taken out":       {calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261224\nRRULE:FREQ=DAILY;COUNT=2\nEXDATE;VALUE=DATE:20261224\nEND:VEVENT"), "2026-12-25"},
		"cancelled":             {calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20270101\nSTATUS:CANCELLED\nEND:VEVENT", "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20270102\nEND:VEVENT"), "2027-01-02"},
	} {
		days, err := read(c.data, now)
		if got := strings.Join(days, "|"); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	forever, err := read(calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20201225\nRRULE:FREQ=YEARLY;BYDAY=-1FR\nEND:VEVENT"), now)
	if err != nil || len(forever) != years+2 { // of the last year, too
		t.Errorf("each year: %v, %v", forever, err)
	}
	for text, want := range map[string]string{
		"BEGIN:VEVENT\nDTSTART:20261225T090000Z\nEND:VEVENT":                                                                                                      `line 7: DTSTART: found "20261225T090000Z", want a date`,
		"BEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT":                                                                                                                     "the event in line 6 (x): DTSTART is missing",
		"BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nRRULE:FREQ=SOMETIMES\nEND:VEVENT":                                                                             "allowed: SECONDLY",
		"BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nDURATION:PT1H\nEND:VEVENT":                                                                                    "want whole days",
		"BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nDURATION:\nEND:VEVENT":                                                                                        "want whole days",
		"BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nRECURRENCE-ID;VALUE=DATE:20261224\nEND:VEVENT":                                                                "events of their own",
		"BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY\nEND:VEVENT\nBEGIN:VEVENT\nRECURRENCE-ID;VALUE=DATE:20271225\nSTATUS:CANCELLED\nEND:VEVENT": "events of their own",
		"BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20251227\nSUMMARY:x\nEND:VEVENT":                                                             "the event in line 6 (x): DTEND 20251227 is before DTSTART 20261225",
		"": "no whole-day event",
	} {
		if _, err := read(calendar(text), now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := read([]byte("Christmas"), now); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("no day: %v", err)
	}
}

// TestReadAgain: the same file has the same days throughout a year, so a second apply changes nothing, also after a day of a
// recurring event.
func TestReadAgain(t *testing.T) {
	file := calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20201225\nRRULE:FREQ=YEARLY;BYMONTH=12\nEND:VEVENT", "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20200601\nRRULE:FREQ=MONTHLY;UNTIL=20400101\nEND:VEVENT")
	first, err := read(file, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil || len(first) == 0 || first[0] != "2025-01-01" || first[len(first)-1] != "2036-12-25" {
		t.Fatalf("%q, %v", first, err)
	}
	for _, at := range []time.Time{now, now.AddDate(0, 0, 34), time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)} {
		if days, err := read(file, at); err != nil || !slices.Equal(days, first) {
			t.Errorf("on %v: %q, %v", at, days, err)
		}
	}
	if days, err := read(file, now.AddDate(1, 0, 0)); err != nil || days[0] != "2026-01-01" || days[len(days)-1] != "2037-12-25" {
		t.Errorf("in the next year: %q, %v", days, err)
	}
}

// TestReadEachYear: an event of the same date in each year becomes one day, which is the same in all years to come. Where not all
// years have it, or where it may be of another date, it becomes single days.
func TestReadEachYear(t *testing.T) {
	for event, want := range map[string]string{
		"20201225\nRRULE:FREQ=YEARLY\nSUMMARY:Christmas":                               "12-25 Christmas",
		"20250101\nDTEND;VALUE=DATE:20250102\nRRULE:freq=yearly;interval=1\nSUMMARY:x": "01-01 x",
		"20240229\nRRULE:FREQ=YEARLY":                                                  "02-29",
		"20260501\nRRULE:FREQ=YEARLY;UNTIL=20270501":                                   "2026-05-01|2027-05-01", // it begins this year
		"20300501\nRRULE:FREQ=YEARLY;UNTIL=20310501":                                   "2030-05-01|2031-05-01",
		"20200501\nRRULE:FREQ=YEARLY;UNTIL=20260501":                                   "2025-05-01|2026-05-01",
		"20210501\nRRULE:FREQ=YEARLY;INTERVAL=8":                                       "2029-05-01",
		"20350501\nRRULE:FREQ=YEARLY":                                                  "2035-05-01|2036-05-01",
		"20200501\nRRULE:FREQ=YEARLY\nEXRULE:FREQ=YEARLY;UNTIL=20340601":               "2035-05-01|2036-05-01",
		"20250501\nDURATION:P2D\nRRULE:FREQ=YEARLY;COUNT=2":                            "2025-05-01..2025-05-02|2026-05-01..2026-05-02",
	} {
		days, err := read(calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:"+event+"\nEND:VEVENT"), now)
		if got := strings.Join(days, "|"); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", event, got, err, want)
		}
	}
}

// TestAFileThatIsNotWhole cuts a file after each byte, as a download that breaks off does. Only without the last line
// end is it whole.
func TestAFileThatIsNotWhole(t *testing.T) {
	whole := calendar("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nSUMMARY:Christmas\nEND:VEVENT", "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20270101\nEND:VEVENT")
	for n := range whole {
		days, err := read(whole[:n], now)
		if full := n >= len(whole)-len("\r\n"); full != (err == nil) {
			t.Errorf("cut after %d bytes, %q: %q, %v", n, whole[max(0, n-20):n], days, err)
		}
	}
	for _, text := range []string{"", "\ufeff", " \r\n\n"} {
		if days, err := read([]byte(text), now); err == nil || !strings.Contains(err.Error(), "the file is empty") {
			t.Errorf("%q: %q, %v", text, days, err)
		}
	}
	if days, err := read([]byte("# none\n"), now); err != nil || len(days) > 0 {
		t.Errorf("a remark only: %q, %v", days, err)
	}
}

// TestReadFile: the error for each file contains its name. A file of any size, such as one that was named by mistake, does not
// fill the memory.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		size int64
		want string
	}{"none": {-1, "no such file"}, "empty": {0, ": the file is empty"}, "long": {most + 1, "is longer than 4194304 bytes"}} {
		name = filepath.Join(dir, name)
		if c.size >= 0 {
			f, err := os.Create(name)
			if err == nil {
				err = f.Truncate(c.size)
				f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if days, err := ReadFile(name, func(name string) (io.ReadCloser, error) { return os.Open(name) }, now); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %s", name, days, err, c.want)
		}
	}
}

// TestWhatFoldsCost: a line that is folded very often takes little memory.
func TestWhatFoldsCost(t *testing.T) {
	var before, after runtime.MemStats
	text := "BEGIN:VCALENDAR\nX-NOTE:" + strings.Repeat("\n a", 100_000) + "\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nSUMM\n ARY:Chris\n\ttmas\nEND:VEVENT\nEND:VCALENDAR\n"
	runtime.ReadMemStats(&before)
	days, err := read([]byte(text), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	runtime.ReadMemStats(&after)
	if err != nil || len(days) != 1 || days[0] != "2026-12-25 Christmas" {
		t.Errorf("%q, %v", days, err)
	}
	if cost := (after.TotalAlloc - before.TotalAlloc) >> 20; cost > 20 {
		t.Errorf("%d MB", cost)
	}
}
