package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// avoided are phrases that readers had to read twice, with what to write instead.
var avoided = map[string]string{
	"so many":       "N, a number, or what is counted",
	"to be had":     "there is, free, found",
	"looks after":   "handles, decides for",
	"look after":    "handle, decide for",
	"looked after":  "handled, decided for",
	"tells whether": "reports whether",
	"tells that":    "reports whether, says that",
	"in vain":       "without effect",
	"is told":       "is reported, gets, learns",
	"are told":      "are reported, get, learn",
	"be told":       "be reported, get, learn",
	"tell of":       "report, show",
	"tells of":      "reports, shows",
	"whoever":       "a user who, everybody who",
}

// lineEnd is the end of a line with the mark of the comment on the next one.
var lineEnd = regexp.MustCompile(`[ \t]*\n[ \t]*(//|--|#)?[ \t]*`)

// TestPlainEnglish keeps phrases out that somebody whose second language is English stumbles over:
// in code, comments, SQL, stories and documentation.
func TestPlainEnglish(t *testing.T) {
	kinds := []string{".go", ".sql", ".md", ".txt", ".yaml", ".yml", ".tf"}
	read := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			hidden := strings.HasPrefix(name, ".") && path != root
			if hidden || name == "docs" || name == "vendor" || path == filepath.Join(root, "rules", "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains(kinds, filepath.Ext(name)) {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		text := strings.ToLower(lineEnd.ReplaceAllString(string(b), " "))
		for phrase, instead := range avoided {
			if i := strings.Index(text, phrase); i >= 0 {
				t.Errorf("%s: %q in %q; write instead: %s", path, phrase,
					text[max(0, i-40):min(len(text), i+40)], instead)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 300 {
		t.Errorf("only %d files were read", read)
	}
}
