package engine

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOverridesAreRemarked: a reader of a statement for all engines sees there which engines have
// another text instead.
func TestOverridesAreRemarked(t *testing.T) {
	shared := map[string]string{}
	if err := readStatements("sql/queries.sql", shared); err != nil {
		t.Fatal(err)
	}
	overriding := map[string][]string{}
	for _, e := range All() {
		own := map[string]string{}
		if err := readStatements("sql/"+e.Name+"/queries.sql", own); err != nil {
			t.Fatal(err)
		}
		for name := range own {
			if _, ok := shared[name]; ok {
				overriding[name] = append(overriding[name], e.Name)
			}
		}
	}
	remark := regexp.MustCompile(`(?m)^-- overridden: (.*)$`)
	for name, text := range shared {
		var said []string
		if m := remark.FindStringSubmatch(text); m != nil {
			said = strings.Split(m[1], ", ")
		}
		slices.Sort(overriding[name])
		if !slices.Equal(said, overriding[name]) {
			t.Errorf("%s is overridden by %q, and its remark names %q: write -- overridden: %s", name, overriding[name], said,
				strings.Join(overriding[name], ", "))
		}
	}
}

// TestMacrosAreUsed: each macro is in a statement of its engine, or in another macro.
func TestMacrosAreUsed(t *testing.T) {
	for _, e := range All() {
		used := map[string]bool{}
		look := func(text string) {
			for _, m := range macro.FindAllString(text, -1) {
				used[m] = true
			}
		}
		for _, text := range e.Statements(nil).load() {
			look(commented.ReplaceAllString(text, ""))
		}
		for _, text := range e.macros {
			look(text)
		}
		for _, text := range shared {
			look(text)
		}
		for name := range e.macros {
			if !used[name] {
				t.Errorf("%s: no statement uses the macro %s", e.Name, name)
			}
		}
	}
}

// TestWindowsAreOfExpressions: MariaDB may stop for good if somebody stops a query while it plans to
// look up a part of a table with a window by a column. It does not look up parts by an expression. A
// view may not group a table that it joins either.
func TestWindowsAreOfExpressions(t *testing.T) {
	byColumn := regexp.MustCompile(`(?i)PARTITION BY (\w+\.)?\w+\s*(,|\)|ORDER BY)|GROUP BY`)
	views, err := files.ReadDir("sql/views")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range views {
		text, err := files.ReadFile("sql/views/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if found := byColumn.FindString(commented.ReplaceAllString(string(text), "")); found != "" {
			t.Errorf("%s: %q: write PARTITION BY column + 0", f.Name(), found)
		}
	}
}

// A list is divided, and its column is written before each part: so what stands before it has to be the name of a column.
func TestListsFollowColumns(t *testing.T) {
	all := mysqlEngine.Statements(nil)
	for text, good := range map[string]bool{
		"SELECT 1 FROM t WHERE t.id IN (:each_ids) AND n IN (:each_names)": true,
		"SELECT 1 FROM t WHERE COALESCE(id, 0) IN (:each_ids)":             false,
	} {
		if _, err := all.translate("one", text); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}
