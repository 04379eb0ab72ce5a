package storetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// clients are the variables that name the folder below which an engine's own client is, and where it is there.
var clients = map[string]struct{ variable, pattern string }{
	"psql":    {"DBJOBS_TEST_PSQL", "usr/lib/postgresql/*/bin/psql"},
	"mariadb": {"DBJOBS_TEST_MARIADB_CLIENT", "usr/bin/mariadb"},
	"sqlite3": {"DBJOBS_TEST_SQLITE3", "usr/bin/sqlite3"},
}

// Client finds an engine's own client: psql, mariadb or sqlite3. Its root is / where it is installed; below another, it needs
// the shared libraries of that.
func Client(t testing.TB, name string) (program, root string) {
	t.Helper()
	c := clients[name]
	if root = os.Getenv(c.variable); root == "" || root == "/" {
		program, err := exec.LookPath(name)
		if err != nil {
			Skip(t, "there is no %s here, and %s is not set: make test comes by one", name, c.variable)
		}
		return program, "/"
	}
	found, _ := filepath.Glob(filepath.Join(root, c.pattern)) // the patterns are well-formed
	if len(found) == 0 {
		t.Fatalf("%s: there is no %s", c.variable, filepath.Join(root, c.pattern))
	}
	return found[0], root
}
