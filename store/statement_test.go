package store

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store/engine"
)

var update = flag.Bool("update", false, "write the golden files anew; read the difference before committing it")

// Each statement can be put into the words of each dialect. A pass would notice only when it needs the
// statement, which is too late.
func TestStatements(t *testing.T) {
	left := regexp.MustCompile(`--|(^|[^@])@\w+|[^:]:[a-z_]+|dbjobs\.`) // two @ begin a variable of MySQL
	numbered := regexp.MustCompile(`[$?][0-9]`)
	for _, e := range engine.All() {
		statements := Statements(e)
		for _, name := range statements.Names() {
			text, arguments, err := statements.Text(name)
			if err != nil {
				t.Errorf("%s: %v", e.Name, err)
				continue
			}
			rest := text
			if e.Table("") == "dbjobs." { // a schema with the name that the texts write
				rest = strings.ReplaceAll(text, "dbjobs.", "")
			}
			rest = regexp.MustCompile(`'[^']*'`).ReplaceAllString(rest, "''")
			if m := left.FindString(rest); m != "" || text == "" {
				t.Errorf("%s: %s: %q is left in %s", e.Name, name, m, text)
			}
			if twice := slices.Compact(slices.Sorted(slices.Values(arguments))); numbered.MatchString(text) && len(twice) != len(arguments) {
				t.Errorf("%s: %s: %q has an argument twice", e.Name, name, arguments)
			}
		}
	}
}

// testdata has each text that an engine is sent, word by word. It is for people who read or explain a
// statement there, and for people who review a change: a macro or an override may change more texts
// than a reader sees in it. Only white space may differ.
func TestStatementsAreTheGoldenOnes(t *testing.T) {
	for _, e := range engine.All() {
		t.Run(e.Name, func(t *testing.T) {
			path := filepath.Join("engine", "testdata", e.Name+".sql")
			texts := finalTexts(t, e)
			if *update {
				if err := os.WriteFile(path, []byte(goldenFile(e, texts)), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			const how = "`go test ./store -run TestStatements -update` writes it anew"
			golden := map[string]string{}
			for _, part := range strings.Split(string(b), "\n-- name: ")[1:] {
				name, text, _ := strings.Cut(part, "\n")
				golden[name] = text
			}
			for name, text := range texts {
				if want, ok := golden[name]; !ok {
					t.Errorf("%s is not in %s; %s", name, path, how)
				} else if !slices.Equal(strings.Fields(text), strings.Fields(want)) {
					t.Errorf("%s differs from %s; %s\ngot:\n%s\nwant:\n%s", name, path, how, text, want)
				}
			}
			for name := range golden {
				if _, ok := texts[name]; !ok {
					t.Errorf("%s has %s, which is no statement; %s", path, name, how)
				}
			}
		})
	}
}

// finalTexts returns the statements as they are sent, by name, with their arguments in the order of
// the placeholders.
func finalTexts(t *testing.T, e *engine.Engine) map[string]string {
	final := map[string]string{}
	statements := Statements(e)
	for _, name := range statements.Names() {
		text, arguments, err := statements.Text(name)
		if err != nil {
			t.Fatal(err)
		}
		if text += ";\n"; len(arguments) > 0 {
			text = "-- arguments: " + strings.Join(arguments, ", ") + "\n" + text
		}
		final[name] = text
	}
	return final
}

func goldenFile(e *engine.Engine, texts map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- Every statement as %s is sent it, made from the files in sql by\n-- `go test ./store -run TestStatements -update`. Do not edit.\n", e.Name)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&b, "\n-- name: %s\n%s", name, texts[name])
	}
	return b.String()
}

// BenchmarkStatements shows what the two statements of a pass that finds nothing to do cost a process
// that runs for milliseconds.
func BenchmarkStatements(b *testing.B) {
	for b.Loop() {
		e, err := engine.Of("postgres:")
		if err != nil {
			b.Fatal(err)
		}
		statements := e.Statements(engine.NewWords(macros, nil)) // no other process has translated them
		for _, name := range []string{"probe", "record_tick"} {
			if _, _, err := statements.Text(name); err != nil {
				b.Fatal(err)
			}
		}
	}
}
