package rules

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// seeds returns every rule of the golden files, and some texts with mistakes that have broken parsers before.
func seeds(f *testing.F) (list []string) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal("no golden files: ", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "\n+ ", "\\n")
		for l := range strings.Lines(text) {
			if rule, ok := strings.CutPrefix(l, "rule: "); ok {
				list = append(list, strings.ReplaceAll(strings.TrimSuffix(rule, "\n"), "\\n", "\n"))
			}
		}
	}
	return append(list, "", "\x00", "FREQ=", "RRULE:", "DTSTART:", "FREQ=DAILY;;", "DTSTART;TZID=:20260101T000000", "@", "~", "*/", "1-", "#", "at ,",
		"every ", "D ", "W -", "I :", "FREQ=SECONDLY;INTERVAL=2147483647;BYSECOND=1", "FREQ=YEARLY;INTERVAL=9999;BYWEEKNO=53;BYDAY=SU",
		"DTSTART:00010101T000000Z\nRRULE:FREQ=DAILY", "DTSTART:99991231T235959Z\nRRULE:FREQ=SECONDLY", "FREQ=YEARLY;BYYEARDAY=366;BYSETPOS=366;COUNT=2147483647",
		"DTSTART;TZID=Pacific/Kiritimati:00010101T000000\nRDATE;TZID=America/Adak:99991231T235959", "FREQ=HOURLY;COUNT=2147483647;BYHOUR=3;INTERVAL=7",
		"0 9 */10 * MON#4", "0 9 LW * */6")
}

// same compares the meaning of rules, and not the way in which they were written.
func same(a, b *Rule) bool {
	return a.zone == b.zone && a.policy == b.policy && a.start == b.start &&
		reflect.DeepEqual(a.includes, b.includes) && reflect.DeepEqual(a.excludes, b.excludes) &&
		reflect.DeepEqual(a.rdates, b.rdates) && reflect.DeepEqual(a.exdates, b.exdates) &&
		reflect.DeepEqual(a.ends, b.ends) && reflect.DeepEqual(a.series, b.series) && reflect.DeepEqual(a.barred, b.barred)
}

// For every text: there is no panic, and only the documented errors. Positions are inside the text. The canonical text
// can be parsed again with any defaults. Queries agree with each other.
func FuzzParse(f *testing.F) {
	for _, text := range seeds(f) {
		f.Add(text, uint8(len(text)), int64(1767225600+len(text)*86400))
	}
	zones := []string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "America/Sao_Paulo", "Africa/Monrovia"}
	policies := []Defaults{{}, {Nonexistent: "skip"}, {Ambiguous: "last"}, {Nonexistent: "skip", Ambiguous: "both"}}
	f.Fuzz(func(t *testing.T, text string, pick uint8, at int64) {
		at = min(max(at, firstCivil), endCivil)
		d := policies[int(pick)/len(zones)%len(policies)]
		d.Zone, d.Seed, d.Start = zones[int(pick)%len(zones)], text, time.Unix(at, 0)
		r, err := Parse(text, d)
		if err != nil {
			var syntax *SyntaxError
			switch {
			case errors.As(err, &syntax):
				if syntax.Pos < 0 || syntax.Pos > len(text) || syntax.Allowed == "" || syntax.Form == "" {
					t.Fatalf("%q: %#v", text, syntax)
				}
			case !errors.Is(err, ErrNeverFires) && !errors.Is(err, ErrUndecided):
				t.Fatalf("%q: undocumented error %v", text, err)
			}
			return
		}
		canonical := r.String()
		for _, other := range []Defaults{{}, {Zone: "Asia/Tokyo", Nonexistent: "skip", Ambiguous: "both", Seed: "x", Ends: r.Ends()}} {
			again, err := Parse(canonical, other)
			if err != nil || again.String() != canonical || !same(again, r) {
				t.Fatalf("%q gives\n%s\nand that\n%v, %v", text, canonical, again, err)
			}
		}
		if r.form.sentence(r) == "" {
			t.Fatalf("%q: no sentence", text)
		}
		queriesAgree(t, r, time.Unix(at, 0))
	})
}

// queriesAgree asks for a few occurrences with each query.
func queriesAgree(t *testing.T, r *Rule, from time.Time) {
	t.Helper()
	list, err := r.Between(from, time.Unix(endInstant, 0), 5)
	if err != nil {
		if !errors.Is(err, ErrUndecided) {
			t.Fatalf("%s: Between: %v", r, err)
		}
		return
	}
	after := from
	for i, at := range list {
		if !at.After(after) {
			t.Fatalf("%s: %v does not come after %v", r, at, after)
		}
		next, err := r.Next(after)
		if err != nil || !next.Equal(at) {
			t.Fatalf("%s: Next(%v) = %v, %v; Between says %v", r, after, next, err, at)
		}
		prev, err := r.Prev(at)
		if err != nil && !errors.Is(err, ErrUndecided) || i > 0 && err == nil && !prev.Equal(list[i-1]) {
			t.Fatalf("%s: Prev(%v) = %v, %v; Between says %v", r, at, prev, err, list[max(0, i-1)])
		}
		if i == 0 && err == nil && prev.Unix() > from.Unix() && !prev.IsZero() {
			t.Fatalf("%s: Prev(%v) = %v lies between that and %v", r, at, prev, from)
		}
		after = at
	}
	if n := len(list); n > 0 {
		count, err := r.Count(from, list[n-1])
		if err != nil && !errors.Is(err, ErrUndecided) || err == nil && count != int64(n) {
			t.Fatalf("%s: Count(%v, %v) = %d, %v; Between has %d", r, from, list[n-1], count, err, n)
		}
	}
}
