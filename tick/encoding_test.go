package tick_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A kind of database has an encoding or a collation that its creator chose.
type databaseKind struct {
	name, options string
	since         int // the version of PostgreSQL that has it
}

var databaseKinds = map[string][]databaseKind{
	"postgres": {
		{name: "latin1", options: "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"},
		{name: "sql_ascii", options: "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"},
		{name: "libc", options: "ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8' TEMPLATE template0"},
		{name: "icu", options: "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'sv-u-ks-level1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", since: 15_00_00},
		{name: "turkish", options: "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", since: 15_00_00},
		{name: "builtin", options: "ENCODING 'UTF8' LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' TEMPLATE template0", since: 17_00_00},
	},
	"mariadb": {
		{name: "latin1", options: "CHARACTER SET latin1 COLLATE latin1_german2_ci"},
		{name: "no case", options: "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci"},
		{name: "utf16", options: "CHARACTER SET utf16 COLLATE utf16_general_ci"},
		{name: "uca", options: "CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_ai_ci"},
		{name: "binary", options: "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"},
		{name: "turkish", options: "CHARACTER SET utf8mb4 COLLATE utf8mb4_turkish_ci"},
	},
	"mysql": {
		{name: "latin1", options: "CHARACTER SET latin1 COLLATE latin1_german2_ci"},
		{name: "no case", options: "CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci"},
		{name: "utf16", options: "CHARACTER SET utf16 COLLATE utf16_general_ci"},
		{name: "binary", options: "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"},
		{name: "turkish", options: "CHARACTER SET utf8mb4 COLLATE utf8mb4_tr_0900_ai_ci"},
	},
}

// In a database with its own encoding or collation, everything works as usual. Names and the text of jobs stay the
// same, and two names that the collation regards as equal are two names.
func TestEncodingsAndCollations(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		for _, kind := range databaseKinds[engine] {
			t.Run(engine+"/"+kind.name, func(t *testing.T) {
				t.Parallel()
				inDatabaseOf(t, engine, kind)
			})
		}
	}
}

func inDatabaseOf(t *testing.T, engine string, kind databaseKind) {
	if kind.since > 0 {
		if v := storetest.Version(t, storetest.OpenSQL(t, os.Getenv("DBJOBS_TEST_POSTGRES"))); v < kind.since {
			t.Skipf("PostgreSQL %d does not have it", v)
		}
	}
	url := storetest.URLWith(t, engine, kind.options)
	db := storetest.OpenSQL(t, url)
	mustExec(t, db, effects(engine))
	if err := useAll(t, engine, url); err != nil {
		t.Fatal(err)
	}
	hasAllEffects(t, engine, db)

	s, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	names := []string{"Report", "report", "Répört", "report ", "report-ß", "report-ss"}
	var defs store.Definitions
	for _, name := range names {
		defs.Jobs = append(defs.Jobs, store.Job{Name: strings.ReplaceAll(name, " ", "_"), Tags: []string{name[:1]}, Own: ticktest.EveryFiveMinutes(),
			Steps: []store.Step{ticktest.Step("", "SELECT 'ü'")}})
	}
	for i := range 2 {
		changes, err := s.Apply(t.Context(), defs, store.ApplyOptions{})
		if err != nil || i == 0 && len(changes) < len(names) || i == 1 && len(changes) > 0 {
			t.Fatalf("applied %d times: %v, %+v", i+1, err, changes)
		}
	}
	for _, j := range defs.Jobs {
		if got, err := s.Job(t.Context(), j.Name); err != nil || got.Name != j.Name {
			t.Errorf("%q: %v, %q", j.Name, err, got.Name)
		}
	}
	if list, err := s.Jobs(t.Context(), store.JobFilter{Tag: "R"}); err != nil || len(list) != 2 {
		t.Errorf("of the tag R: %v, %d jobs", err, len(list))
	}
	if kind.name != "latin1" || engine != "postgres" {
		return
	}
	for what, query := range map[string]string{"jobs": "SELECT count(*) FROM dbjobs.jobs WHERE length(name) = 6 AND convert_to(name, 'LATIN1') = '\\x4afc7267656e'",
		"effects": "SELECT count(*) FROM public.effects WHERE length(n) = 6 AND convert_to(n, 'LATIN1') = '\\x4afc7267656e'"} {
		var n int
		if err := db.QueryRow(query).Scan(&n); err != nil || n == 0 {
			t.Errorf("%s: no name is in Latin 1: %v", what, err)
		}
	}
	_, err = s.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "漢字", Steps: []store.Step{ticktest.Step("", "SELECT 1")}}}}, store.ApplyOptions{})
	if err == nil || !strings.Contains(err.Error(), "has no equivalent in encoding") {
		t.Errorf("a name that the database has no characters for: %v", err)
	}
}
