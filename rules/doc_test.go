package rules

import (
	"os"
	"strings"
	"testing"
	"time"
)

// The table of clock changes in the package comment agrees with the engine.
func TestClockChangeTable(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]bool{}
	rows := 0
	for l := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimPrefix(strings.TrimSpace(l), "//\t"), "|")
		if len(cells) != 3 || strings.HasPrefix(cells[0], "rule ") {
			continue
		}
		rows++
		d := Defaults{Zone: "America/New_York", Start: time.Date(2026, 1, 1, 5, 0, 0, 0, time.UTC)}
		rule := strings.TrimSpace(cells[0])
		if how, rest, ok := strings.Cut(rule, ": "); ok {
			rule = rest
			if how == "skip" {
				d.Nonexistent = how
			} else {
				d.Ambiguous = how
			}
		}
		r, err := Parse(rule, d)
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		forms[r.Form()] = true
		nights := []struct{ from, to, want string }{
			{"2026-03-08T05:00:00Z", "2026-03-08T08:00:00Z", cells[1]},
			{"2026-11-01T04:00:00Z", "2026-11-01T09:00:00Z", cells[2]},
		}
		ny, _ := zoneNamed("America/New_York")
		for _, n := range nights {
			list, err := r.Between(time.Unix(instant(t, n.from)-1, 0), time.Unix(instant(t, n.to)-1, 0), 0)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, at := range list {
				c := ny.civil(at.Unix())
				text := time.Unix(c, 0).UTC().Format("15:04")
				if two, n := ny.instants(c); n == 2 && two[1] == at.Unix() {
					text += "*"
				}
				got = append(got, text)
			}
			if g := strings.Join(got, " "); g != strings.Join(strings.Fields(n.want), " ") {
				t.Errorf("%s from %s: %s, the table says %s", rule, n.from, g, strings.TrimSpace(n.want))
			}
		}
	}
	if rows < 20 || len(forms) != len(rulesForms()) {
		t.Errorf("%d rows with the forms %v: the table is to have all of %v", rows, forms, rulesForms())
	}
}

func rulesForms() (names []string) {
	for _, f := range forms {
		names = append(names, f.name)
	}
	return names
}
