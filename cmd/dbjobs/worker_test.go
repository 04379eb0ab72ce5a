package main

import (
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// workersSQL are the statements of README.md by which any program can take and finish a run, in the words of the
// engine as the page tells them.
func workersSQL(t *testing.T, engine string) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var block string
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "sql" {
			block = m[2]
		}
	}
	code := regexp.MustCompile("`([^`]+)`")
	words := func(after string) (now, later string) {
		_, rest, found := strings.Cut(string(text), after)
		if m := code.FindAllStringSubmatch(rest, 2); found && len(m) == 2 {
			return m[0][1], m[1][1]
		}
		t.Fatalf("README.md does not say how it is done %s", after)
		return "", ""
	}
	const now, later = "now()", "now() + interval '10 minutes'"
	switch engine {
	case "mariadb":
		n, l := words("on MySQL and MariaDB,\n")
		block = strings.NewReplacer("dbjobs.", "dbjobs_", later, l, now, n).Replace(block)
	case "sqlite":
		n, l := words("; on SQLite\n")
		block = strings.NewReplacer("dbjobs.", "dbjobs_", later, l, now, n).Replace(block)
	}
	list := strings.Split(strings.TrimSpace(block), ";\n")
	if len(list) != 4 {
		t.Fatalf("%d statements: %q", len(list), list)
	}
	return list
}

// TestAnyProgramCanTakeAndFinishARun runs the statements of the page as one of several workers would.
func TestAnyProgramCanTakeAndFinishARun(t *testing.T) {
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			url := storetest.URL(t, engine)
			home := t.TempDir()
			dbjobs := func(args ...string) string {
				t.Helper()
				var out strings.Builder
				if code, stderr := invoke(t.Context(), t, home, nil, &out, append(args, "--database", url)...); code != exitDone {
					t.Fatalf("%q: code %d, said %q", args, code, stderr)
				}
				return out.String()
			}
			dbjobs("migrate")
			dbjobs("job", "create", "report", "--queue", "reports", "--sql", "SELECT 1")
			dbjobs("tick")
			dbjobs("job", "run-now", "report")
			dbjobs("tick")
			s, err := store.Open(t.Context(), url, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			db, err := s.JobDB(store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			st := workersSQL(t, engine)
			var id string
			var held int
			if err := db.QueryRow(st[0]).Scan(&id, &held); err != nil {
				t.Fatalf("%s: %v", st[0], err)
			}
			do := func(n int, rows int64) {
				t.Helper()
				text := strings.NewReplacer("$id", "'"+id+"'", "$fence", fmt.Sprint(held)).Replace(st[n])
				res, err := db.Exec(text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if got, err := res.RowsAffected(); err != nil || got != rows {
					t.Fatalf("%s: %d rows, want %d (%v)", text, got, rows, err)
				}
			}
			do(1, 1)
			do(1, 0) // by another worker
			if err := db.QueryRow(st[0]).Scan(&id, &held); err != sql.ErrNoRows {
				t.Fatalf("it may be taken again: %v", err)
			}
			dbjobs("tick") // the lease holds
			do(2, 1)
			do(3, 1)
			do(3, 0)
			dbjobs("tick")
			if out := dbjobs("run", "list", "--state", "succeeded"); !strings.Contains(out, id) {
				t.Errorf("run list: %s", out)
			}
			if out := dbjobs("job", "show", "report"); !regexp.MustCompile(`last result: +succeeded`).MatchString(out) {
				t.Errorf("job show: %s", out)
			}
		})
	}
}
