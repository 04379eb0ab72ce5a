package queues

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// packages is the folder with the packages of package-lock.json, Node among them, so that this
// machine's own does not matter. npm fetches them into the user's cache, once for each lock file, so
// that another clone has them too. .build/queues leads there; the copy named fetched says which they are.
var packages = sync.OnceValues(func() (dir string, err error) {
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		return "", err
	}
	base, err := os.UserCacheDir()
	if err != nil {
		if base, err = filepath.Abs("../../.build"); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(base, "dbjobs-test", fmt.Sprintf("queues-%.6x", sha256.Sum256(lock)))
	if _, err := os.Stat(dir); err != nil {
		if err := fetch(dir); err != nil {
			return "", err
		}
	}
	link := "../../.build/queues"
	return dir, errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.RemoveAll(link), os.Symlink(dir, link))
})

// fetch makes the folder, all or nothing.
func fetch(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	half, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+"-half-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(half)
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := copyFile(name, filepath.Join(half, name)); err != nil {
			return err
		}
	}
	npm := exec.Command("npm", "ci", "--loglevel=error", "--ignore-scripts", "--no-audit", "--no-fund",
		"--prefix", half)
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm does not fetch the queues: %w %s", err, out)
	}
	if err := copyFile("package-lock.json", filepath.Join(half, "fetched")); err != nil {
		return err
	}
	if err := os.Rename(half, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another run was first
		return err
	}
	return nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
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
		folder := t.TempDir() // the script finds the packages beside itself
		copied := filepath.Join(folder, script)
		if err := errors.Join(copyFile(script, copied), os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(folder, "node_modules"))); err != nil {
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
