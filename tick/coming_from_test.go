package tick_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Each example of store/COMING_FROM.md runs on its engine, each SELECT has a row, and a pass can use
// each of the rules.
func TestComingFrom(t *testing.T) {
	text, err := os.ReadFile("../store/COMING_FROM.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n## ")[1:]
	example := regexp.MustCompile("(?s)```sql\n-- ([^\n]*)\n(.*?)```")
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		title := map[string]string{"postgres": "PostgreSQL", "mariadb": "MariaDB, MySQL"}[d.Engine]
		ran := 0
		for _, part := range parts {
			name, _, _ := strings.Cut(part, "\n")
			block := example.FindStringSubmatch(part)
			if block == nil {
				t.Fatalf("%s: there is no example", name)
			}
			if block[1] != title {
				continue
			}
			ran++
			for st := range strings.SplitSeq(strings.TrimSpace(block[2]), ";\n") {
				st = strings.TrimSuffix(st, ";")
				if !strings.HasPrefix(st, "SELECT") {
					d.Exec(t, st)
					continue
				}
				if len(seen(t, d, "", "*", "("+strings.TrimSuffix(st, " FOR UPDATE SKIP LOCKED")+") AS q")) == 0 {
					t.Errorf("%s: no row from %s", name, st)
				}
			}
		}
		if ran == 0 && title != "" {
			t.Error("no example ran")
		}
		ticktest.DecideOnly(t, d)
		if n := d.Int(t, "SELECT count(*) FROM "+d.Table("v_jobs")+" WHERE parked IS NOT NULL"); n != 0 {
			t.Errorf("%v", seen(t, d, "v_jobs", "name, parked", "WHERE parked IS NOT NULL"))
		}
	})
}
