package rules

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// No rule has an occurrence that a database cannot hold. After the end of time, the rule has no more occurrences.
func TestNoOccurrenceBeyondTheEndsOfTime(t *testing.T) {
	t.Parallel()
	last := "9999-12-31T23:59:59Z"
	for _, c := range []struct{ text, zone, after, next string }{
		{"every 5m", "", last, ""},
		{"every 5m", "", "9999-12-31T23:54:59Z", "9999-12-31T23:55:00Z"},
		{"every 1s", "", "9999-12-31T23:59:58Z", last},
		{"every 1s", "America/New_York", "9999-12-31T23:59:58Z", last},
		{"every 1s", "America/New_York", last, ""},
		{"0 * * * *", "America/New_York", "9999-12-31T23:00:00Z", ""},
		{"FREQ=DAILY;BYHOUR=21", "America/New_York", "9999-12-30T00:00:00Z", "9999-12-30T02:00:00Z"},
		{"FREQ=DAILY;BYHOUR=21", "America/New_York", "9999-12-31T02:00:00Z", ""},
		{"at " + last, "", "2026-01-05T08:00:00Z", last},
		{"DTSTART;TZID=America/New_York:99991231T185959\nRRULE:FREQ=SECONDLY", "", "2026-01-05T08:00:00Z", last},
		{"DTSTART:09991231T235959Z\nRRULE:FREQ=SECONDLY", "", "0900-01-05T08:00:00Z", "1000-01-01T00:00:00Z"},
	} {
		r, err := Parse(c.text, Defaults{Zone: c.zone})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Next(after)
		want := ""
		if !got.IsZero() {
			want = got.Format(time.RFC3339)
		}
		if err != nil || want != c.next {
			t.Errorf("%s in %q after %s: %q, %v; want %q", c.text, c.zone, c.after, want, err, c.next)
		}
		list, err := r.Between(after, Last.Add(48*time.Hour), 10)
		for _, at := range list {
			if !Holds(at) || err != nil {
				t.Errorf("%s: %v, %v", c.text, at, err)
			}
		}
		if prev, err := r.Prev(Last.Add(48 * time.Hour)); err != nil || !Holds(prev) {
			t.Errorf("%s: the last is %v, %v", c.text, prev, err)
		}
	}
}

// A rule that would begin after the end of time is refused, with a message.
func TestRefusedBeyondTheEndsOfTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, zone, says string }{
		{"at 9999-12-31T23:59:59", "America/New_York", "9999-12-31T23:59:59Z"},
		{"at 9999-12-31T23:59:59-05:00", "", "9999-12-31T23:59:59Z"},
		{"at 0999-12-31T23:59:59Z", "", "1000-01-01T00:00:00Z"},
		{"DTSTART;TZID=America/New_York:99991231T235959\nRRULE:FREQ=DAILY", "", "end of time"},
	} {
		_, err := Parse(c.text, Defaults{Zone: c.zone})
		var syntax *SyntaxError
		if err == nil || !strings.Contains(err.Error(), c.says) || !errors.As(err, &syntax) && !errors.Is(err, ErrNeverFires) {
			t.Errorf("%s in %q: %v", c.text, c.zone, err)
		}
	}
}
