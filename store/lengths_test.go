package store_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// The page of rules says how long a rule in a database may be.
func TestLongestRuleIsThatOfThePage(t *testing.T) {
	page, err := os.ReadFile("../rules/README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`A rule in a database has at most ([\d,]+) bytes`).FindSubmatch(page)
	if said == nil {
		t.Fatal("the page does not say it")
	}
	most, err := strconv.Atoi(strings.ReplaceAll(string(said[1]), ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	for n, fits := range map[int]bool{most: true, most + 1: false} {
		s := store.Schedule{Name: "long", Rule: strings.Repeat("x", n), Zone: "UTC", Nonexistent: store.NonexistentForward, Ambiguous: store.AmbiguousFirst}
		if err := s.Validate(); (err == nil) != fits {
			t.Errorf("a rule of %d bytes: %v", n, err)
		}
	}
}
