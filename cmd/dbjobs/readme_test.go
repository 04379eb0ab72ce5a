package main

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dbjobs/dbjobs/cmd/internal/settings"
)

// block is a piece of code in README.md.
type block struct{ language, text string }

var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// TestReadme runs the blocks of README.md that are marked sh, one after the other in one empty home folder, and
// compares what they print with the text block that follows, if one does. There, … stands for anything within a line,
// and a line that is only … for any number of lines.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block{m[1], m[2]})
	}
	path := strings.TrimSuffix(program(t), "/dbjobs") + ":" + os.Getenv("PATH")
	home, ran := t.TempDir(), 0
	for i, b := range blocks {
		if b.language != "sh" {
			continue
		}
		ran++
		sh := exec.Command("bash", "-euc", b.text)
		sh.Dir = home
		sh.Env = []string{"HOME=" + home, "PATH=" + path, "GORACE=" + os.Getenv("GORACE")}
		out, err := sh.CombinedOutput()
		if err != nil {
			t.Fatalf("%v, running\n%s\n%s", err, b.text, out)
		}
		if i+1 < len(blocks) && blocks[i+1].language == "text" && !pattern(blocks[i+1].text).Match(out) {
			t.Errorf("README says\n%s\nbut\n%s\nprints\n%s", blocks[i+1].text, b.text, out)
		}
	}
	if ran < 4 {
		t.Errorf("only %d blocks were run", ran)
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

// TestReadmeNamesTheSettings: each variable that the program reads is on the page, and the page names no other.
func TestReadmeNamesTheSettings(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
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
	for _, name := range regexp.MustCompile(`DBJOBS_\w+`).FindAllString(string(text), -1) {
		named[name] = true
	}
	if !maps.Equal(read, named) {
		t.Errorf("the program reads %v\nREADME names %v", slices.Sorted(maps.Keys(read)), slices.Sorted(maps.Keys(named)))
	}
}
