package storetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// clients says where an engine's own client is: a variable names a folder, and the pattern is the path below it.
var clients = map[string]struct{ variable, pattern string }{
	"psql":    {"DBJOBS_TEST_PSQL", "usr/lib/postgresql/*/bin/psql"},
	"mariadb": {"DBJOBS_TEST_MARIADB_CLIENT", "usr/bin/mariadb"},
	"sqlite3": {"DBJOBS_TEST_SQLITE3", "usr/bin/sqlite3"},
}

// Client finds an engine's own client: psql, mariadb or sqlite3. The root is / if the client is
// installed. Below another root, the client needs the shared libraries of that root.
func Client(t testing.TB, name string) (program, root string) {
	t.Helper()
	c := clients[name]
	if root = os.Getenv(c.variable); root == "" || root == "/" {
		program, err := exec.LookPath(name)
		if err != nil {
			Skip(t, "there is no %s here, and %s is not set: make test gets one", name, c.variable)
		}
		return program, "/"
	}
	found, _ := filepath.Glob(filepath.Join(root, c.pattern)) // the patterns are well-formed
	if len(found) == 0 {
		t.Fatalf("%s: there is no %s", c.variable, filepath.Join(root, c.pattern))
	}
	return found[0], root
}
