package store

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each statement can be put into the words of each dialect: a pass finds that out when it needs one, which is too late.
func TestStatements(t *testing.T) {
	left := regexp.MustCompile(`--|@\w+|[^:]:[a-z_]+|dbjobs\.`)
	for _, d := range []*dialect{sqlite, postgres, mysqlDialect} {
		texts := d.texts()
		if d.statements.err != nil {
			t.Fatal(d.statements.err)
		}
		for name := range texts {
			s, err := d.statement(name)
			if err != nil {
				t.Errorf("%s: %v", d.name, err)
				continue
			}
			rest := strings.ReplaceAll(s.text, "dbjobs.", strings.Repeat(" ", len(d.prefix)-len("dbjobs."))+"schema ")
			if d != postgres {
				rest = s.text
			}
			rest = regexp.MustCompile(`'[^']*'`).ReplaceAllString(rest, "''")
			if m := left.FindString(rest); m != "" || s.text == "" {
				t.Errorf("%s: %s: %q is left in %s", d.name, name, m, s.text)
			}
			if twice := slices.Compact(slices.Sorted(slices.Values(s.args))); d.numbered && len(twice) != len(s.args) {
				t.Errorf("%s: %s: %q has an argument twice", d.name, name, s.args)
			}
		}
	}
}

// What a process that runs for milliseconds pays for the two statements of a pass that finds nothing to do.
func BenchmarkStatements(b *testing.B) {
	for b.Loop() {
		d := &dialect{name: "postgres", prefix: postgres.prefix, numbered: true, macros: postgres.macros, placeholder: postgres.placeholder}
		for _, name := range []string{"probe", "record_tick"} {
			if _, err := d.statement(name); err != nil {
				b.Fatal(err)
			}
		}
	}
}
