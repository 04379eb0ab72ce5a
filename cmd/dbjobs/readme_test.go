package main

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
)

// The pages that people read are checked against the program: their commands are run, their links lead somewhere, and
// the tests that they name exist. The checks of a table are beside what it lists.

// withCommands are the pages whose commands have to be run. A page that is not here may have commands, too.
var withCommands = []string{"README.md", "rules/README.md"}

// root is the top of the project.
const root = "../.."

// page is a Markdown file of the project, by its path below root.
type page struct{ path, text string }

// pages are all Markdown files of the project.
func pages(t *testing.T) (all []page) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".build"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			all = append(all, readPage(t, filepath.ToSlash(name)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
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

// prose is the page without its code.
func (p page) prose() string {
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(fence.ReplaceAllString(p.text, ""), "")
}

// TestReadme runs the blocks of each page that are marked sh. Those of one page run one after the other in one empty
// home folder. What a block prints is compared with the text block that follows, if one does. There, … stands for
// anything within a line, and a line that is only … for any number of lines.
func TestReadme(t *testing.T) {
	dbjobs := program(t)
	ran := map[string]bool{}
	for _, p := range pages(t) {
		isCommand := func(b block) bool { return b.language == "sh" }
		if !slices.ContainsFunc(p.blocks(), isCommand) {
			continue
		}
		ran[p.path] = true
		t.Run(p.path, func(t *testing.T) {
			t.Parallel()
			p.run(t, dbjobs)
		})
	}
	for _, path := range withCommands {
		if !ran[path] {
			t.Errorf("no command of %s was run", path)
		}
	}
}

func (p page) run(t *testing.T, dbjobs string) {
	home, blocks := t.TempDir(), p.blocks()
	path := strings.TrimSuffix(dbjobs, "/dbjobs") + ":" + os.Getenv("PATH")
	for i, b := range blocks {
		if b.language != "sh" {
			continue
		}
		sh := exec.Command("bash", "-euc", b.text)
		sh.Dir = home
		sh.Env = []string{"HOME=" + home, "PATH=" + path, "GORACE=" + os.Getenv("GORACE")}
		out, err := sh.CombinedOutput()
		if err != nil {
			t.Fatalf("%v, running\n%s\n%s", err, b.text, out)
		}
		if i+1 < len(blocks) && blocks[i+1].language == "text" && !pattern(blocks[i+1].text).Match(out) {
			t.Errorf("%s says\n%s\nbut\n%s\nprints\n%s", p.path, blocks[i+1].text, b.text, out)
		}
	}
}

// pattern is what a text block stands for. How wide a column is depends on what is in it.
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

// anchors are what a link into the page may name after #: its headings, as GitHub spells them, and its own ids.
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

// TestReadmeLinks: each link of a page to a file of the project, or to a heading of a page, leads somewhere.
func TestReadmeLinks(t *testing.T) {
	checked := 0
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := p.path
			if file != "" {
				target = filepath.Join(filepath.Dir(p.path), file)
			}
			if info, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %s: there is no %s", p.path, m[1], target)
			} else if anchor != "" && (info.IsDir() || !slices.Contains(readPage(t, target).anchors(), anchor)) {
				t.Errorf("%s: %s: %s has no heading #%s", p.path, m[1], target, anchor)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d links were checked", checked)
	}
}

// TestReadmeNamesTests: each test that a page names exists, so that whoever doubts a promise finds what holds it. A test
// that is renamed has to be renamed on the page, too.
func TestReadmeNamesTests(t *testing.T) {
	exist := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			exist[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages(t) {
		for _, name := range regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w+`).FindAllString(p.text, -1) {
			if !exist[name] {
				t.Errorf("%s names %s, and there is no such test: was it renamed?", p.path, name)
			}
		}
	}
}

// TestReadmeNamesTheSettings: each variable that the program reads is on the page, and the page names no other.
func TestReadmeNamesTheSettings(t *testing.T) {
	read := map[string]bool{instanceVariable: true, marginVariable: true}
	for _, name := range settings.Variables() {
		read[name] = true
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		each := func(f *pflag.Flag) {
			for _, name := range f.Annotations[envAnnotation] {
				read[name] = true
			}
		}
		cmd.Flags().VisitAll(each)
		cmd.PersistentFlags().VisitAll(each)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newCLI(nil, io.Discard, io.Discard, func(string) (string, bool) { return "", false }).root())
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`DBJOBS_\w+`).FindAllString(readPage(t, "README.md").text, -1) {
		named[name] = true
	}
	if !maps.Equal(read, named) {
		t.Errorf("the program reads %v\nREADME names %v", slices.Sorted(maps.Keys(read)), slices.Sorted(maps.Keys(named)))
	}
}
