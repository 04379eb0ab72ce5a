package storetest

import (
	"cmp"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/scripts/prove"
)

// engines is the list of engines. To add an engine, add an entry. If an engine understands the SQL of another
// one, it names that one as its dialect. Then it needs no entries in the tests, which write SQL by dialect.
// fresh returns a new, empty database, or a spare one of that kind.
var engines = []struct {
	name, dialect string
	fresh         func(t testing.TB, kind spareKind) *spareDB
}{
	{"sqlite", "sqlite", onSQLite},
	{"postgres", "postgres", onPostgres},
	{"mariadb", "mariadb", onMariaDB},
	{"mysql", "mariadb", onMySQL},
	{"pgbouncer", "postgres", onPgBouncer},
}

// Engines returns the names in DBJOBS_TEST_DATABASES, a list with commas. Without the variable it is sqlite alone.
func Engines(t testing.TB) []string {
	t.Helper()
	names := strings.Split(list(), ",")
	for _, n := range names {
		known := false
		for _, e := range engines {
			known = known || e.name == n
		}
		if !known {
			t.Fatalf("DBJOBS_TEST_DATABASES: no engine %q", n)
		}
	}
	return names
}

// Needs skips a test of one engine if DBJOBS_TEST_DATABASES leaves that engine out. `make test` has
// SQLite, PostgreSQL and MariaDB.
func Needs(t testing.TB, engine string) {
	t.Helper()
	if !slices.Contains(Engines(t), engine) {
		t.Skipf("it needs %s, which DBJOBS_TEST_DATABASES leaves out", engine)
	}
}

// EnginesFor returns the engines for a case that depends on no engine: SQLite and one server of the
// list. The name of the case chooses the server, so it is the same one each time. With DBJOBS_PROVE,
// each case runs on every engine.
func EnginesFor(t testing.TB, name string) []string {
	t.Helper()
	list := Engines(t)
	if prove.Whole() {
		return list
	}
	servers := slices.DeleteFunc(slices.Clone(list), func(e string) bool { return e == "sqlite" })
	if len(servers) < 2 {
		return list
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	of := servers[h.Sum32()%uint32(len(servers))]
	return slices.DeleteFunc(slices.Clone(list), func(e string) bool { return e != "sqlite" && e != of })
}

func list() string { return cmp.Or(os.Getenv("DBJOBS_TEST_DATABASES"), "sqlite") }

// Running returns SQLite and the engines whose servers the environment names, whatever the list is. It
// is for a test over several databases at once, which does not belong to one engine.
func Running() []string {
	names := []string{"sqlite"}
	for _, e := range engines {
		if os.Getenv("DBJOBS_TEST_"+strings.ToUpper(e.name)) != "" && e.name != "pgbouncer" { // the variable of pgbouncer names a program
			names = append(names, e.name)
		}
	}
	return names
}

// Dialect returns the engine whose SQL an engine understands: itself, or another one.
func Dialect(engine string) string {
	for _, e := range engines {
		if e.name == engine {
			return e.dialect
		}
	}
	return engine
}

// For returns what a test has for an engine: the entry for that engine, or else the entry for its dialect.
func For[V any](engine string, words map[string]V) V {
	if v, ok := words[engine]; ok {
		return v
	}
	return words[Dialect(engine)]
}

// Words returns a text of MariaDB in the words of an engine of its dialect: MySQL has other names for
// some settings.
func Words(engine, text string) string {
	if engine != "mysql" {
		return text
	}
	return strings.NewReplacer("tx_isolation", "transaction_isolation", "tx_read_only", "transaction_read_only",
		"max_statement_time", "max_execution_time").Replace(text)
}
