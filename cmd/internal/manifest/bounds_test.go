package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// TestWhatAManifestCosts: a hostile file, or a file that is no manifest, is refused at a bounded cost, with a bounded
// text.
func TestWhatAManifestCosts(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, c := range []struct{ name, text, want string }{
		{"quotes", strings.Repeat(`"`, 10<<20), "values; split it into several files"},
		{"quotes on lines", strings.Repeat("[\"\",\n", 1<<20), "values; split it into several files"},
		{"lists", strings.Repeat("[]", 5<<20), "values; split it into several files"},
		{"items", strings.Repeat("- a\n", 2<<20), "values; split it into several files"},
		{"a long word", strings.Repeat("x", 2<<20), "want a mapping"},
		{"too long", strings.Repeat("# x\n", MaxBytes/4+1), "longer than"},
		{"wrong keys", many(10_000, "k%d: 1\n"), "and 9950 more problems"},
		{"merged keys", "x-a: &a {" + many(3000, "k%d: 1, ") + "}\njobs:\n" + many(2000, "  j%d: {<<: *a}\n"), "keys and values, where aliases count each time; split it"},
		{"merged lists", "x-a: &a {" + many(3000, "k%d: 1, ") + "}\nx-b: &b [*a" + strings.Repeat(", *a", 3000) + "]\njobs: {<<: *b}\n", "keys and values, where aliases count"},
		{"a list in itself", "jobs: {a: {http: {url: 'https://example.org', json: &a [*a]}}}", "is nested deeper than 100 levels"},
		{"a mapping in itself", "jobs: {a: {http: {url: 'https://example.org', json: &a {k: *a}}}}", "is nested deeper than 100 levels"},
		{"lists in lists", "jobs: {a: {http: {url: 'https://example.org', json: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}}}", "is nested deeper than 100 levels"},
		{"a text", "x-a: &a |\n  " + strings.Repeat("SELECT 1 ", 5000) + "\njobs:\n" + many(3000, "  j%d: {sql: *a}\n"), "bytes"},
		{"a long rule", "jobs: {a: {rule: " + strings.Repeat("x", 65_000) + ", sql: SELECT 1}}", "xxx…"},
		{"a long choice", "jobs: {a: {overlap: " + strings.Repeat("x", 65_000) + ", sql: SELECT 1}}", `xxx…"`},
		{"a long number", "jobs: {a: {priority: " + strings.Repeat("1", 65_000) + ", sql: SELECT 1}}", "111…"},
		{"a long duration", "jobs: {a: {timeout: " + strings.Repeat("x", 65_000) + ", sql: SELECT 1}}", "xxx"},
		{"a long key", "jobs: {a: {? " + strings.Repeat("x", 65_000) + " : 1, sql: SELECT 1}}", "xxx…"},
		{"a long zone", "zone: " + strings.Repeat("x", 65_000), `xxx…"`},
		{"a long schedule", "jobs: {a: {schedule: " + strings.Repeat("x", 65_000) + ", sql: SELECT 1}}", "xxx…"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := Read([]Input{{Path: "jobs.yaml", In: strings.NewReader(c.text)}}, Options{Now: now})
		if err == nil {
			err = m.Resolve(&store.Known{}, Targets{})
		}
		runtime.ReadMemStats(&after)
		e, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.300v, want %q", c.name, err, c.want)
			continue
		}
		if len(e.Problems) > maxProblems+1 || len(err.Error()) > maxProblems*(maxText+maxPath+100) {
			t.Errorf("%s: %d problems, %d bytes", c.name, len(e.Problems), len(err.Error()))
		}
		for _, p := range e.Problems {
			if len(p.String()) > maxText+maxPath+100 {
				t.Errorf("%s: a problem of %d bytes", c.name, len(p.String()))
			}
		}
		if cost := after.TotalAlloc - before.TotalAlloc; cost > 300<<20 {
			t.Errorf("%s: %d MB", c.name, cost>>20)
		}
	}
}

// TestWhatAManifestFromElsewhereCosts: a function of 512 MB reads whatever an event or an object holds, also what is just below
// the bounds. What a file of this machine costs grows with its length.
func TestWhatAManifestFromElsewhereCosts(t *testing.T) {
	text := func(marks, length int) string {
		s := strings.Repeat("- a\n", marks/2) // a mark of its own, and one of its line
		for len(s) < length {
			s += strings.Repeat("# "+strings.Repeat("x", 78)+"\n", 1<<14)
		}
		return s
	}
	const most = fewMarks - 50
	for _, c := range []struct {
		name, text string
		alone      bool
		want       string
		megabytes  uint64
	}{
		{"many marks", text(most, 0), true, "want a mapping", 300},
		{"many marks of a long text", text(most+5<<20/sparse, 5<<20), true, "may hold more than 500000 values", 100},
		{"a long text", text(most/2, 14<<20), true, "want a mapping", 300},
		{"a text that is too long", text(0, 17<<20), true, "longer than 16777216 bytes", 150},
		{"a file of this machine", text(most+5<<20/sparse, 5<<20), false, "want a mapping", 300 + 100*5},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read([]Input{{Path: "jobs.yaml", In: strings.NewReader(c.text), Alone: c.alone}}, Options{Now: now})
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.300v, want %q", c.name, err, c.want)
		}
		if cost := (after.TotalAlloc - before.TotalAlloc) >> 20; cost > c.megabytes {
			t.Errorf("%s: %d MB, want at most %d", c.name, cost, c.megabytes)
		}
	}
}

// TestALargeExport: what export writes of many jobs is read again.
func TestALargeExport(t *testing.T) {
	job := store.Job{Name: "job", Description: "loads the orders", Tags: []string{"etl", "night"}, Own: &store.Schedule{Rule: "*/15 * * * *", Zone: "UTC"}}
	for _, name := range []string{"one", "two", "three"} {
		spec := `{"sql": [{"text": "INSERT INTO t VALUES (?, ?)", "args": ["${interval_start}", "${interval_end}"]}], "atomic": true}`
		job.Steps = append(job.Steps, store.Step{Name: name, Executor: "sql", Spec: json.RawMessage(spec), Timeout: store.Duration(time.Minute)})
	}
	job.Normalize()
	var one, all strings.Builder
	if err := Encode(&one, "", store.Definitions{Jobs: []store.Job{job}}, ""); err != nil {
		t.Fatal(err)
	}
	head, entry, ok := strings.Cut(one.String(), "  job:\n")
	if !ok {
		t.Fatal(one.String())
	}
	all.WriteString(head)
	for i := range 15_000 {
		fmt.Fprintf(&all, "  job-%d:\n%s", i, entry)
	}
	for all.Len() < 17<<20 {
		all.WriteString("# " + strings.Repeat("x", 60_000) + "\n")
	}
	m, err := Read([]Input{{Path: "everything.yaml", In: strings.NewReader(all.String())}}, Options{Now: now})
	if err != nil || len(m.Jobs) != 15_000 {
		t.Fatalf("%.300v, %d bytes", err, all.Len())
	}
}

// TestALargeManifest: real manifests are far below the limits, also if a text has many marks.
func TestALargeManifest(t *testing.T) {
	var b strings.Builder
	b.WriteString("x-step: &step {sql: SELECT 1, timeout: 5m}\njobs:\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "  job-%d:\n    rule: {rule: 'every 5m', zone: Europe/Berlin}\n    tags: [a, b]\n    retry: {attempts: 3, backoff: 10s}\n    steps:\n"+
			"      - {<<: *step, name: first}\n      - name: second\n        sql: | # many values\n", i)
		for range 50 {
			b.WriteString("          INSERT INTO t VALUES (1, 'a', 'b', \"c\", '[{\"d\": 1}]'), (2, 'a', 'b', 'c', '')\n\n")
		}
	}
	m, err := Read([]Input{{Path: "jobs.yaml", In: strings.NewReader(b.String())}}, Options{Now: now})
	if err != nil || len(m.Jobs) != 2000 {
		t.Fatalf("%.300v, %d bytes", err, b.Len())
	}
}
