package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadmeListsItsSections: where a page begins with a list of its sections, the list has all of them.
func TestReadmeListsItsSections(t *testing.T) {
	checked := 0
	for _, p := range pages(t) {
		top, rest, _ := strings.Cut(fence.ReplaceAllString(p.text, ""), "\n## ")
		if !strings.Contains(top, ") ·") {
			continue
		}
		checked++
		listed := link.FindAllStringSubmatch(top, -1)
		for _, heading := range regexp.MustCompile(`(?m)^## .+`).FindAllString("## "+rest, -1) {
			anchors := page{text: heading}.anchors()
			if !slices.ContainsFunc(listed, func(m []string) bool { return m[1] == "#"+anchors[0] }) {
				t.Errorf("%s: the list at the top has no link to %s", p.path, heading)
			}
		}
	}
	if checked < 4 {
		t.Errorf("only %d lists were checked", checked)
	}
}
