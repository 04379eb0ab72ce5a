package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the top of the project.
const root = "../.."

// page is a Markdown file of the project, by its path below root.
type page struct{ path, text string }

// eachFile calls fn with every file of the project whose name ends so.
func eachFile(t *testing.T, end string, fn func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".build"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, end):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		fn(filepath.ToSlash(name), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pages returns all Markdown files of the project.
func pages(t *testing.T) (all []page) {
	t.Helper()
	eachFile(t, ".md", func(path, text string) { all = append(all, page{path, text}) })
	return all
}

func readPage(t *testing.T, path string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return page{path, string(text)}
}

// block is a piece of code in a page.
type block struct{ language, text string }

var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

func (p page) blocks() (all []block) {
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// statements returns the statements of a block of SQL.
func (b block) statements() []string {
	return strings.Split(strings.TrimSuffix(strings.TrimSpace(b.text), ";"), ";\n")
}

// section returns the text below a heading, up to the next heading of the same level.
func (p page) section(heading string) page {
	_, text, _ := strings.Cut(p.text, "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return page{p.path, "\n## " + heading + "\n" + text}
}

// prose returns the page without its code.
func (p page) prose() string {
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(fence.ReplaceAllString(p.text, ""), "")
}

// pattern returns the pattern for the texts that a text block stands for. The width of a column depends on its content.
func pattern(text string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`^`)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "…" {
			b.WriteString(`(?:.*\n)*?`)
			continue
		}
		quoted := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
		b.WriteString(regexp.MustCompile(` {2,}`).ReplaceAllString(quoted, " {2,}"))
		b.WriteString(`\n`)
	}
	b.WriteString(`$`)
	return regexp.MustCompile(b.String())
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	idOfText = regexp.MustCompile(`<a id="([^"]+)">`)
)

// anchors returns the names that a link into the page may have after #: its headings, as GitHub spells them, and its
// own ids.
func (p page) anchors() (all []string) {
	text := fence.ReplaceAllString(p.text, "")
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := link.ReplaceAllString(strings.ToLower(m[1]), "")
		name = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(name, "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	for _, m := range idOfText.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// rows returns the rows of the first table below a heading, without its head.
func (p page) rows(below string) (cells [][]string) {
	in := false
	for line := range strings.Lines(p.section(below).text) {
		if !strings.HasPrefix(line, "|") {
			if in {
				break
			}
			continue
		}
		in = true
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		cells = append(cells, row)
	}
	return cells[min(2, len(cells)):]
}

// codeIn returns the parts of a text that are between backquotes.
func codeIn(text string) (all []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}
