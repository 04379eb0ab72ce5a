package tick_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Views are for reading: a user who tries to change a row through one gets an error.
func TestViewsCannotBeWritten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "a", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}})
		for view, column := range map[string]string{"v_jobs": "name", "v_schedules": "name", "v_runs": "state", "v_upcoming": "job", "v_errors": "state", "v_attempts": "state", "v_gaps": "reason", "v_changes": "reason"} {
			for _, st := range []string{"UPDATE " + d.Table(view) + " SET " + column + " = 'x'", "DELETE FROM " + d.Table(view), "INSERT INTO " + d.Table(view) + " (" + column + ") VALUES ('x')"} {
				_, err := d.SQL.Exec(st)
				if err == nil || !strings.Contains(err.Error(), "view") && !strings.Contains(err.Error(), "updatable") && !strings.Contains(err.Error(), "insertable") {
					t.Errorf("%s: %v", st, err)
				}
			}
		}
	})
}

// The examples of store/README.md run, and its table names each column of each view.
func TestViewsOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../store/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Views\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, block, _ := strings.Cut(section, "```sql\n")
	block, _, _ = strings.Cut(block, "```")
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		mixed(t, d)
		for st := range strings.SplitSeq(strings.TrimSpace(block), ";") {
			if st = strings.ReplaceAll(strings.TrimSpace(st), "dbjobs.", strings.TrimSuffix(d.Table("x"), "x")); st == "" {
				continue
			}
			if _, from, _ := strings.Cut(st, "FROM "); len(seen(t, d, "", "*", "("+st+") AS q")) == 0 {
				t.Errorf("no row from %s", from)
			}
		}
		for _, view := range []string{"v_jobs", "v_schedules", "v_runs", "v_upcoming", "v_attempts", "v_errors", "v_gaps", "v_changes"} {
			row := regexp.MustCompile("(?m)^\\| `" + view + "` .*$").FindString(section)
			for _, name := range columns(t, d, view) {
				if !strings.Contains(row, "`"+name+"`") && view != "v_runs" {
					t.Errorf("%s: the README has no column %s", view, name)
				}
			}
		}
	})
}

// columns are the names of a view's columns.
func columns(t *testing.T, d *storetest.DB, view string) []string {
	t.Helper()
	rows, err := d.SQL.Query("SELECT * FROM " + d.Table(view) + " WHERE 1 = 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err := errors.Join(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	return names
}
