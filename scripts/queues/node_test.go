package queues

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// packages is the folder with the packages of package-lock.json, Node among them, so that this
// machine's own does not matter. npm fetches them, once for each lock file; the copy named fetched
// says which.
var packages = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("../../.build/queues")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := copyFile(name, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	lock, _ := os.ReadFile("package-lock.json")
	fetched, _ := os.ReadFile(filepath.Join(dir, "fetched"))
	if string(lock) == string(fetched) {
		return dir, nil
	}
	npm := exec.Command("npm", "ci", "--loglevel=error", "--ignore-scripts", "--no-audit", "--no-fund",
		"--prefix", dir)
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm does not fetch the queues: %w %s", err, out)
	}
	return dir, os.WriteFile(filepath.Join(dir, "fetched"), lock, 0o644)
})

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// node runs a script with the packages. The test is left out where npm is missing; make says so then.
// An npm that cannot fetch them is a failure where CI is set.
func node(script, what string) func(t *testing.T, url string) {
	return func(t *testing.T, url string) {
		dir, err := packages()
		if err != nil && os.Getenv("CI") != "" && !errors.Is(err, exec.ErrNotFound) {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
		copied := filepath.Join(dir, script) // where it finds the packages
		if err := copyFile(script, copied); err != nil {
			t.Fatal(err)
		}
		arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
		if arch == "" {
			arch = runtime.GOARCH
		}
		program := filepath.Join(dir, "node_modules", "node-linux-"+arch, "bin", "node")
		cmd := exec.CommandContext(t.Context(), program, copied, what, url)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", script, what, err, out)
		}
	}
}
