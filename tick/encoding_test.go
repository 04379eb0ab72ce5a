package tick_test

import (
	"database/sql"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// In a database with an encoding of its own, names and the text of jobs are what they were; what it has no character for is
// refused.
func TestEncodingLatin1(t *testing.T) {
	if !slices.Contains(storetest.Engines(t), "postgres") {
		t.Skip("on MariaDB the encoding is a table's")
	}
	base := storetest.URL(t, "postgres")
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal("not a URL")
	}
	admin, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	name := strings.TrimPrefix(u.Path, "/") + "_latin1"
	mustExec(t, admin, "CREATE DATABASE "+name+" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	defer func() { mustExec(t, admin, "DROP DATABASE "+name+" WITH (FORCE)") }()
	u.Path = "/" + name
	db := storetest.OpenSQL(t, u.String())
	mustExec(t, db, "CREATE TABLE public.effects (n varchar(100))")
	if err := useAll(t, "postgres", u.String()); err != nil {
		t.Fatal(err)
	}
	for what, query := range map[string]string{"jobs": "SELECT count(*) FROM dbjobs.jobs WHERE length(name) = 6 AND convert_to(name, 'LATIN1') = '\\x4afc7267656e'",
		"effects": "SELECT count(*) FROM public.effects WHERE length(n) = 6 AND convert_to(n, 'LATIN1') = '\\x4afc7267656e'"} {
		var n int
		if err := db.QueryRow(query).Scan(&n); err != nil || n == 0 {
			t.Errorf("%s: no name is in Latin 1: %v", what, err)
		}
	}
	s, err := store.Open(t.Context(), u.String(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "漢字", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}}, store.ApplyOptions{})
	if err == nil || !strings.Contains(err.Error(), "has no equivalent in encoding") {
		t.Errorf("a name that the database has no characters for: %v", err)
	}
}
