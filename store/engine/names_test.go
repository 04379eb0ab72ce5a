package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNamesOfEnginesStayHere: only this package and the tests decide by the name of an engine.
func TestNamesOfEnginesStayHere(t *testing.T) {
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
		names = append(names, e.schemes...)
	}
	literal := regexp.MustCompile(`"(` + strings.Join(names, "|") + `)"`)
	seen := 0
	for _, top := range []string{"cmd", "rules", "store", "tick"} {
		err := filepath.WalkDir(filepath.Join("..", "..", top), func(path string, d fs.DirEntry, err error) error {
			rel := filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", "..")+string(filepath.Separator)))
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{"store/engine", "store/storetest", "tick/ticktest"}, rel):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go"):
				return nil
			case rel == "cmd/dbjobs/import_database.go": // each scheduler that it reads lives on one engine
				return nil
			case rel == "cmd/internal/settings/login.go": // it reads the names that AWS gives to engines
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			seen++
			for i, line := range strings.Split(string(b), "\n") {
				if m := literal.FindString(line); m != "" {
					t.Errorf("%s:%d: %s: let the engine answer", rel, i+1, m)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 100 {
		t.Errorf("%d files looked through, which are too few to be all", seen)
	}
}
