// Package dialects reads all statements with the parsers of engines that no test can start. What a parser takes, its engine
// may still refuse, or do otherwise: store/engine/DISTRIBUTED.md says what is known of each.
package dialects

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // of literals; the parser cannot do without one
)

const (
	statements = "../../store/engine/testdata/mysql.sql"
	schema     = "../../store/engine/sql/mysql/schema/0001_tables.sql"
	routines   = "../../store/engine/sql/mysql/routines/*.sql"
	page       = "../../store/engine/DISTRIBUTED.md"
)

var (
	named      = regexp.MustCompile(`(?s)-- name: (\w+)\n(?:-- [^\n]*\n)*(.*)`)
	jsonTable  = regexp.MustCompile(`JSON_TABLE\((?:\?|:\w+|CASE WHEN JSON_VALID\(j\.tags\) THEN j\.tags ELSE '\[\]' END), '\$\[\*\]' COLUMNS \((?:[^()]|\([^()]*\))*\)\)`)
	utcDefault = regexp.MustCompile(`DEFAULT \(UTC_TIMESTAMP\(6\)\)`)
	theLogin   = regexp.MustCompile(regexp.QuoteMeta("DEFAULT (LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))))"))
)

// TestTiDBReadsAllStatements: TiDB's own parser takes each statement, and the tables, but for three things: JSON_TABLE, a
// default of UTC_TIMESTAMP, and one that is the login. Where one of the three stands, it is refused for that alone.
func TestTiDBReadsAllStatements(t *testing.T) {
	p := parser.New()
	whole, without, withTable := 0, 0, 0
	read := func(name, text string) {
		_, _, err := p.Parse(text, "", "")
		if err == nil {
			whole++
			return
		}
		other := utcDefault.ReplaceAllString(jsonTable.ReplaceAllString(text, "(SELECT 1) "), "DEFAULT CURRENT_TIMESTAMP(6)")
		other = theLogin.ReplaceAllString(other, "DEFAULT ''")
		if _, _, again := p.Parse(other, "", ""); again != nil {
			t.Errorf("%s: TiDB's parser refuses it: %.300s", name, again)
		} else if without++; other == text {
			t.Errorf("%s: %.300s", name, err)
		}
	}
	for _, part := range strings.Split(file(t, statements), "\n\n") {
		if m := named.FindStringSubmatch(part); m != nil {
			read(m[1], m[2])
			if strings.Contains(m[2], "JSON_TABLE(") {
				withTable++
			}
		}
	}
	for i, text := range strings.SplitAfter(file(t, schema), ";\n") {
		read(strings.SplitN(strings.TrimSpace(text), "\n", 2)[0]+" #"+string(rune('0'+i%10)), text)
	}
	t.Logf("%d are taken as they are, %d but for JSON_TABLE or a default", whole, without)
	if figure := fmt.Sprintf("`JSON_TABLE`, which all statements for many rows use (%d of them)", withTable); !strings.Contains(file(t, page), figure) {
		t.Errorf("%s does not say: %s", page, figure)
	}
	if whole < 200 || without < 30 {
		t.Errorf("only %d and %d were read: the files are not as this test takes them", whole, without)
	}
}

// TestTiDBHasNoRoutines: it takes none of those that migrate brings in, so this is no engine for dbjobs, whatever else it takes.
func TestTiDBHasNoRoutines(t *testing.T) {
	files, err := filepath.Glob(routines)
	if err != nil || len(files) < 50 {
		t.Fatalf("%d routines, %v", len(files), err)
	}
	p := parser.New()
	for _, name := range files {
		if _, _, err := p.Parse(strings.TrimSuffix(strings.TrimSpace(file(t, name)), "\n;"), "", ""); err == nil {
			t.Errorf("%s: TiDB's parser takes it now: mend store/engine/DISTRIBUTED.md", name)
		}
	}
}

func file(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
