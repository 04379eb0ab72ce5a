// Package docs holds what the project writes for people against the tree: the names that its
// package comments give exist, and phrases that readers stumble over stay out.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var (
	// name (folder/file.go), also where the line ends in between.
	named = regexp.MustCompile(`([A-Za-z_][\w.]*)\s+\(((?:cmd|rules|scripts|store|tick)/[\w./-]+\.(?:go|sql))\)`)
	paths = regexp.MustCompile(`\b(?:cmd|rules|scripts|store|tick)/[\w./-]*\w/?`)
	// A file of the package's own folder.
	files = regexp.MustCompile(`(?:^|[\s(])([a-z][\w]*\.go)\b`)
)

// TestNamesInPackageComments: each function, type and statement that a doc.go names is in the file
// that it names, so that a reader finds it without a search.
func TestNamesInPackageComments(t *testing.T) {
	found := map[string]int{}
	for _, folder := range []string{"tick", "tick/decide", "store", "rules"} {
		file := folder + "/doc.go"
		text := comment(t, file)
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			found[folder]++
			if !declares(t, m[2], m[1]) {
				t.Errorf("%s: there is no %s in %s", file, m[1], m[2])
			}
		}
		for _, path := range paths.FindAllString(text, -1) {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		for _, m := range files.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, folder, m[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	for folder, least := range map[string]int{"tick": 40, "tick/decide": 8, "store": 6, "rules": 8} {
		if found[folder] < least {
			t.Errorf("%s/doc.go: %d names were found, want at least %d", folder, found[folder], least)
		}
	}
}

// linked is a name, and the file that it is in: name, [file.go](folder/file.go).
var linked = regexp.MustCompile(`(\w+), \[\w+\.go\]\(([\w./]+\.go)\)`)

// The functions that the page of MySQL and MariaDB names are in the files that it names.
func TestNamesInThePageOfMySQL(t *testing.T) {
	const folder = "store/engine"
	text, err := os.ReadFile(filepath.Join(root, folder, "MYSQL.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := linked.FindAllStringSubmatch(string(text), -1)
	for _, m := range found {
		if file := filepath.Join(folder, m[2]); !declares(t, file, m[1]) {
			t.Errorf("there is no %s in %s", m[1], file)
		}
	}
	if len(found) < 7 {
		t.Errorf("%d names were found", len(found))
	}
}

// comment is the package comment of a file.
func comment(t *testing.T, file string) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil,
		parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	return f.Doc.Text()
}

// declares reports whether a file has a function, a Type.Method, a type, a variable, a Type.Field,
// or, in SQL, a statement of that name.
func declares(t *testing.T, file, name string) bool {
	t.Helper()
	path := filepath.Join(root, file)
	if strings.HasSuffix(file, ".sql") {
		text, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(text), "\n-- name: "+name+"\n")
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return false // TestNamesInPackageComments says that the path is wrong
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if receiver(d)+d.Name.Name == name {
				return true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if specifies(s, name) {
					return true
				}
			}
		}
	}
	return false
}

// receiver is the type of a method with a dot behind it; empty for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	x := d.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	if of, ok := x.(*ast.IndexExpr); ok {
		x = of.X
	}
	return x.(*ast.Ident).Name + "."
}

func specifies(s ast.Spec, name string) bool {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.Name == name {
				return true
			}
		}
	case *ast.TypeSpec:
		of, field, _ := strings.Cut(name, ".")
		if of != s.Name.Name {
			return false
		}
		if field == "" {
			return true
		}
		fields := &ast.FieldList{}
		switch x := s.Type.(type) {
		case *ast.StructType:
			fields = x.Fields
		case *ast.InterfaceType:
			fields = x.Methods
		}
		for _, f := range fields.List {
			for _, n := range f.Names {
				if n.Name == field {
					return true
				}
			}
		}
	}
	return false
}
