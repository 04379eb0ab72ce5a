package rules

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew; read the difference before committing it")

// A golden file is a list of cases. Each case has a question and, below it, the answer: the canonical text and the
// first occurrences, in UTC and on the rule's wall clock, or the error.
//
//	rule: 30 2 * * *
//	zone: Europe/Berlin
//	after: 2026-03-28T00:00:00Z
//	  DTSTART;TZID=…
//	  2026-03-28T01:30:00Z  Sat 2026-03-28 02:30:00 +01:00
//
// zone, after, nonexistent, ambiguous and shown (the number of times) stay in force until they are set again.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d golden files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := answers(t, string(data))
			if got == string(data) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			old, now := strings.Split(string(data), "\n"), strings.Split(got, "\n")
			for i := range now {
				if i >= len(old) || old[i] != now[i] {
					t.Fatalf("%s:%d: now %q", file, i+1, now[i])
				}
			}
			t.Fatalf("%s: shorter than it was", file)
		})
	}
}

// answers keeps the questions of a golden file and writes the answers again.
func answers(t *testing.T, text string) string {
	var b strings.Builder
	set := map[string]string{"zone": "UTC", "after": "2026-01-01T00:00:00Z", "shown": "4"}
	rule := ""
	flush := func() {
		if rule != "" {
			b.WriteString(answerTo(t, rule, set))
		}
		rule = ""
	}
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		key, value, ok := strings.Cut(l, ": ")
		switch {
		case strings.HasPrefix(l, "  "):
			continue
		case rule != "" && strings.HasPrefix(l, "+ "):
			rule += "\n" + l[2:]
		case ok && key == "rule":
			flush()
			rule = value
		case ok && !strings.HasPrefix(l, "#"):
			flush()
			set[key] = value
		default:
			flush()
		}
		b.WriteString(l + "\n")
	}
	flush()
	return b.String()
}

func answerTo(t *testing.T, rule string, set map[string]string) string {
	after, err := time.Parse(time.RFC3339, set["after"])
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	if _, err := fmt.Sscan(set["shown"], &shown); err != nil {
		t.Fatal(err)
	}
	d := Defaults{Zone: set["zone"], Start: after, Seed: "golden", Nonexistent: set["nonexistent"], Ambiguous: set["ambiguous"]}
	r, err := Parse(rule, d)
	if err != nil {
		return fmt.Sprintf("  error: %v\n", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(r.String(), "\n", "\n  "))
	fmt.Fprintf(&b, "  means: %s\n", r.form.sentence(r))
	list, err := r.Between(after, time.Unix(endInstant, 0), shown)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range list {
		fmt.Fprintf(&b, "  %s  %s\n", at.Format(time.RFC3339), r.local(at.Unix()))
	}
	if len(list) < shown {
		b.WriteString("  exhausted\n")
	}
	return b.String()
}
