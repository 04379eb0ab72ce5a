package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// others returns another value for each column of jobs that a decision may look at, as SQL.
func others(d *storetest.DB) map[string]string {
	instant := "'2031-02-03T04:05:06.789012Z'"
	if d.Engine == "mariadb" {
		instant = "'2031-02-03 04:05:06.789012'"
	}
	all := map[string]string{"owner": "'someone'", "removed_at": instant}
	for i, p := range store.Policies() {
		column, value := p.Column(&store.Job{})
		switch value.(type) {
		case store.Inverted, *bool:
			all[column] = "NOT " + column
		case *string:
			if all[column] = "'other " + p.Key + "'"; p.Allowed != nil {
				all[column] = "'" + p.Allowed[len(p.Allowed)-1] + "'"
			}
		case *[]string:
			all[column] = `'["other"]'`
		case **int:
			all[column] = fmt.Sprint(70 + i%10)
		default:
			all[column] = fmt.Sprint(7000 + i)
			if p.Key == "not_before" || p.Key == "not_after" {
				all[column] = instant
			}
		}
	}
	return all
}

// The list of policies and the table say the same. A row that plain SQL made has the same defaults as
// a row that apply made. What apply refuses, the table refuses as well.
func TestPoliciesAreThoseOfTheTable(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		table := d.Table("jobs")
		if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "applied", Steps: []store.Step{sqlStep("", "SELECT 1")}}}}, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "INSERT INTO "+table+" (name) VALUES ('plain')")
		taken := func(column, value string) error {
			_, err := d.SQL.Exec("UPDATE " + table + " SET " + column + " = " + value + " WHERE name = 'plain'")
			return err
		}
		for _, p := range store.Policies() {
			column, value := p.Column(&store.Job{})
			if column == "" {
				continue
			}
			var usual, made any
			for name, into := range map[string]*any{"plain": &usual, "applied": &made} {
				if err := d.SQL.QueryRow("SELECT " + column + " FROM " + table + " WHERE name = '" + name + "'").Scan(into); err != nil {
					t.Fatal(err)
				}
			}
			if fmt.Sprint(usual) != fmt.Sprint(made) {
				t.Errorf("%s: the table's default is %v, apply's %v", column, usual, made)
			}
			if p.Null() && usual != nil {
				t.Errorf("%s: %v, want NULL", column, usual)
			}
			good, bad := []string{}, []string{}
			switch value.(type) {
			case *string:
				for _, word := range p.Allowed {
					good, bad = append(good, "'"+word+"'"), append(bad, "'nonsense'", "'"+word+" '") // to = and IN, MySQL's blank at the end is nothing
				}
				if column == "queue" {
					bad = []string{"''"}
				}
			case *int, *int64, **int:
				least := p.Least
				if p.Null() { // zero means NULL
					least = max(least, 1)
				}
				if column != "priority" {
					good, bad = []string{fmt.Sprint(least)}, []string{fmt.Sprint(least - 1)}
				}
				if p.Most != 0 {
					good, bad = append(good, fmt.Sprint(p.Most)), append(bad, fmt.Sprint(p.Most+1))
				}
			case *store.Duration, **store.Duration:
				good, bad = []string{"1", "3153600000000"}, []string{fmt.Sprint(p.Least - 1), "9000000000001"} // 36500 days
			}
			for _, v := range good {
				if err := taken(column, v); err != nil {
					t.Errorf("%s = %s: %v", column, v, err)
				}
			}
			for _, v := range bad {
				if taken(column, v) == nil {
					t.Errorf("%s = %s was accepted", column, v)
				}
			}
		}
	})
}

// Also the other tables refuse words that no decision knows, as plain SQL may write them.
func TestTablesRefuseOtherWords(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		const run = "0195a3c0-0000-7000-8000-000000000001"
		d.Exec(t, "INSERT INTO "+d.Table("jobs")+" (id, name) VALUES (1, 'first'), (2, 'second')")
		d.Exec(t, "INSERT INTO "+d.Table("schedules")+" (name, rule) VALUES ('s', 'every 5m')")
		d.Exec(t, "INSERT INTO "+d.Table("job_after")+" (job_id, after_job_id) VALUES (2, 1)")
		d.Exec(t, "INSERT INTO "+d.Table("pauses")+" (scope) VALUES ('all')")
		d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence) VALUES ('"+run+"', 1, 'now:1')")
		for _, c := range []struct{ table, column, word, other string }{
			{"schedules", "nonexistent", "skip", "skip "}, {"schedules", "ambiguous", "last", "last,both"}, {"schedules", "on_holiday", "next", "next "},
			{"job_after", "on_end", "failure", "failure "}, {"pauses", "scope", "all", "all "}, {"runs", "held_by", "group", "group "},
			{"runs", "state", "failed", "failed "}, {"runs", "queue", "reports", ""},
		} {
			set := func(word string) error {
				_, err := d.SQL.Exec("UPDATE " + d.Table(c.table) + " SET " + c.column + " = '" + word + "'")
				return err
			}
			if err := set(c.word); err != nil {
				t.Errorf("%s.%s = %q: %v", c.table, c.column, c.word, err)
			}
			if set(c.other) == nil {
				t.Errorf("%s.%s = %q was accepted", c.table, c.column, c.other)
			}
		}
	})
}

// Each policy names a flag, a default and words of its own, and a value of every kind goes into its column.
func TestPoliciesAreWhole(t *testing.T) {
	keys, columns, flags := map[string]bool{}, map[string]bool{"": true}, map[string]bool{}
	j := store.Job{Name: "job"}
	j.Normalize()
	for _, p := range store.Policies() {
		column, _ := p.Column(&j)
		if keys[p.Key] || column != "" && columns[column] || flags[p.FlagName()] {
			t.Errorf("%s: its key, column or flag is there twice", p.Key)
		}
		keys[p.Key], columns[column], flags[p.FlagName()] = true, true, true
		if strings.Contains(p.Usage(), "{default}") || strings.Contains(p.Usage(), "{allowed}") {
			t.Errorf("%s: %s", p.Key, p.Usage())
		}
		if usual := fmt.Sprint(p.Default); p.Default != nil && !strings.Contains(usual, fmt.Sprint(deref(p.Of(&j)))) {
			t.Errorf("%s: the default is %v, normalized is %v", p.Key, usual, deref(p.Of(&j)))
		}
	}
	for _, name := range store.PlanInput {
		if !columns[name] && name != "owner" && name != "removed_at" {
			t.Errorf("plan_input has %s, which no policy has", name)
		}
	}
}

// The routines write and read each policy: what a file of theirs says about one is said about all.
func TestRoutinesHaveEachPolicy(t *testing.T) {
	for _, e := range engine.All() {
		all, err := store.Statements(e).Repeatables(false)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			text := r.Statements[0]
			for _, word := range []string{"@column", "@key", "@kind", "@default", "@words"} {
				if strings.Contains(text, word) {
					t.Errorf("%s: %s has %s", e.Name, r.Name, word)
				}
			}
			for _, p := range store.Policies() {
				column, _ := p.Column(&store.Job{})
				if strings.HasSuffix(r.Name, "put_job") && column != "" && !strings.Contains(text, "."+column) {
					t.Errorf("%s: %s does not write %s", e.Name, r.Name, column)
				}
				if strings.HasSuffix(r.Name, "policies") && column != "" && !strings.Contains(text, p.Key) {
					t.Errorf("%s: %s does not know %s", e.Name, r.Name, p.Key)
				}
			}
		}
	}
}

func deref(value any) any {
	switch v := value.(type) {
	case *string:
		return *v
	case *int:
		return *v
	case *store.Duration:
		return *v
	case **store.Duration:
		return **v
	case **store.Attempts:
		return int(**v)
	case **int:
		return **v
	}
	return nil
}
