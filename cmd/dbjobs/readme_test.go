package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/metrics"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// The pages that people read are checked against the program: their commands are run, their links lead to a target, and
// the tests that they name exist. The check of a table is next to the code that it lists.

// withCommands are the pages whose commands are run. A page that is not in the list may have commands, too.
var withCommands = []string{"README.md", "rules/README.md", programPage, databasePage, jobsPage}

// TestReadme runs the blocks of each page that are marked sh. Those of one page run one after the other in one empty
// home folder. The output of a block is compared with the text block that follows, if there is one. In that block, …
// stands for anything within a line, and a line with only … stands for any number of lines.
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
		if i+1 < len(blocks) && blocks[i+1].language == "text" && !pattern(blocks[i+1].text).Match(out) && !clockChanges(t) {
			t.Errorf("%s says\n%s\nbut\n%s\nprints\n%s", p.path, blocks[i+1].text, b.text, out)
		}
	}
}

// clockChanges reports whether the clocks of Berlin change within two days, or have changed within one. Then the pages are
// not right: 02:30 comes at 03:30, or not within 24 hours, or twice.
func clockChanges(t *testing.T) bool {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	_, before := time.Now().In(berlin).AddDate(0, 0, -1).Zone()
	_, after := time.Now().In(berlin).AddDate(0, 0, 2).Zone()
	return before != after
}

// TestReadmeLinks: the target of each link of a page to a file of the project, or to a heading of a page, exists.
func TestReadmeLinks(t *testing.T) {
	checked := 0
	anchors := map[string][]string{} // by page: many links lead to the same one
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
				continue
			} else if anchor == "" {
				continue
			} else if anchors[target] == nil && !info.IsDir() {
				anchors[target] = readPage(t, target).anchors()
			}
			if !slices.Contains(anchors[target], anchor) {
				t.Errorf("%s: %s: %s has no heading #%s", p.path, m[1], target, anchor)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d links were checked", checked)
	}
}

// TestReadmeNamesTests: each test that a page names exists, and is in the file to which its link leads. So a reader
// finds the test of a promise in one step.
func TestReadmeNamesTests(t *testing.T) {
	exist := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w+)\(`)
	eachFile(t, "_test.go", func(_, text string) {
		for _, m := range function.FindAllStringSubmatch(text, -1) {
			exist[m[1]] = true
		}
	})
	linked := regexp.MustCompile(`\[(Test\w+)\]\(([^)#\s]+)\)`)
	for _, p := range pages(t) {
		for _, name := range regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w+`).FindAllString(p.text, -1) {
			if !exist[name] {
				t.Errorf("%s names %s, and there is no such test: was it renamed?", p.path, name)
			}
		}
		for _, m := range linked.FindAllStringSubmatch(p.text, -1) {
			file := filepath.Join(filepath.Dir(p.path), m[2])
			if !strings.Contains(readPage(t, file).text, "\nfunc "+m[1]+"(") {
				t.Errorf("%s: %s is not in %s: was it moved?", p.path, m[1], file)
			}
		}
	}
}

// programPage is the page with the promises of the command line.
const programPage = "cmd/dbjobs/README.md"

// eachCommand calls fn with every command of the program, except cobra's own.
func eachCommand(cmd *cobra.Command, fn func(*cobra.Command)) {
	fn(cmd)
	for _, sub := range cmd.Commands() {
		if sub.Name() != "help" {
			eachCommand(sub, fn)
		}
	}
}

func allCommands() *cobra.Command {
	return newCLI(nil, io.Discard, io.Discard, func(string) (string, bool) { return "", false }).root()
}

// TestReadmeNamesTheSettings: the program's page names each variable that the program reads, and no other. No page
// names a variable that neither the program nor a test reads.
func TestReadmeNamesTheSettings(t *testing.T) {
	read := map[string]bool{host.SecretPrefix + "NAME": true}
	for _, name := range variables() {
		read[name] = true
	}
	ofFlags := map[string]string{}
	eachCommand(allCommands(), func(cmd *cobra.Command) {
		note := func(f *pflag.Flag) {
			for _, name := range f.Annotations[envAnnotation] {
				ofFlags[f.Name] = name
			}
		}
		cmd.Flags().VisitAll(note)
		cmd.PersistentFlags().VisitAll(note)
	})
	if !maps.Equal(ofFlags, flagVariables) {
		t.Errorf("variables set the flags %v, want %v", ofFlags, flagVariables)
	}
	variable := regexp.MustCompile(`DBJOBS_\w+`)
	named := variable.FindAllString(readPage(t, programPage).text, -1)
	for name := range read {
		if !slices.Contains(named, name) {
			t.Errorf("%s does not name %s", programPage, name)
		}
	}
	tests := readByTests(t)
	for _, fact := range append(executor.References(), "args_NAME") { // programs of jobs read these
		tests["DBJOBS_"+strings.ToUpper(fact)] = true
	}
	for _, p := range pages(t) {
		for _, name := range variable.FindAllString(p.text, -1) {
			if !read[name] && (p.path == programPage || !tests[name]) {
				t.Errorf("%s names %s, which nothing reads", p.path, name)
			}
		}
	}
}

// readByTests are the variables for the developers of dbjobs.
func readByTests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	eachFile(t, ".go", func(_, text string) {
		for _, m := range regexp.MustCompile(`"(DBJOBS_\w+)"`).FindAllStringSubmatch(text, -1) {
			names[m[1]] = true
		}
	})
	return names
}

// TestReadmeNamesTheCommands: the table of commands has each command.
func TestReadmeNamesTheCommands(t *testing.T) {
	rows := map[string]string{} // by the first command in the row
	for _, line := range readPage(t, programPage).rows("Commands") {
		for _, name := range codeIn(line[0]) {
			rows[name] = line[1]
		}
	}
	for _, cmd := range allCommands().Commands() {
		if cmd.Name() == "help" {
			continue
		}
		row, found := rows[cmd.Name()]
		if !found {
			t.Errorf("%s has no row for %s", programPage, cmd.Name())
		}
		for _, sub := range cmd.Commands() {
			if cmd.Name() != "completion" && !slices.Contains(codeIn(row), sub.Name()) {
				t.Errorf("the row of %s in %s does not name %s", cmd.Name(), programPage, sub.Name())
			}
		}
	}
}

// TestReadmeNamesTheFigures: the table of the log line's members has each figure of a pass.
func TestReadmeNamesTheFigures(t *testing.T) {
	var named []string
	for _, row := range readPage(t, programPage).rows("Log line and metrics") {
		named = append(named, codeIn(row[0])...)
	}
	now := time.Now()
	everything := metrics.Pass{Report: tick.Report{States: true, StartedAt: now, NextRun: now}}
	for _, a := range everything.Attrs() {
		if !slices.Contains(named, a.Key) {
			t.Errorf("%s does not name %s", programPage, a.Key)
		}
	}
}

// jobsPage is the page about jobs.
const jobsPage = "tick/README.md"

// TestReadmeNamesTheKeys: each key of a job and of a step has its own row, and every row has such a key.
func TestReadmeNamesTheKeys(t *testing.T) {
	for heading, file := range map[string]string{
		"Keys of a job":  "jobs: {a: {nosuchkey: 1}}",
		"Keys of a step": "jobs: {a: {steps: [{nosuchkey: 1}]}}",
	} {
		_, err := manifest.Read([]manifest.Input{{Path: "jobs.yaml", In: strings.NewReader(file)}}, manifest.Options{Name: "jobs", Now: time.Now()})
		told := regexp.MustCompile(`unknown key; one of ([\w, ]+)`).FindStringSubmatch(fmt.Sprint(err))
		if told == nil {
			t.Fatalf("the error of an unknown key does not name the keys: %v", err)
		}
		var named []string
		for _, row := range readPage(t, jobsPage).rows(heading) {
			named = append(named, strings.Trim(row[0], "`"))
		}
		keys := strings.Split(told[1], ", ")
		slices.Sort(keys)
		if slices.Sort(named); !slices.Equal(keys, named) {
			t.Errorf("%s: the rows below %q are\n%q\nand the keys are\n%q", jobsPage, heading, named, keys)
		}
	}
}

// TestReadmeNamesTheFlags: a key of a job is a flag of the same name, or the page says that it is not.
func TestReadmeNamesTheFlags(t *testing.T) {
	flags := map[string]bool{}
	eachCommand(allCommands(), func(c *cobra.Command) {
		if c.CommandPath() == "dbjobs job create" {
			c.Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		}
	})
	section := readPage(t, jobsPage).section("Keys of a job")
	before, _, _ := strings.Cut(section.text, "\n|")
	for _, row := range section.rows("Keys of a job") {
		key := strings.Trim(row[0], "`")
		if other := slices.Contains(codeIn(before), key); flags[strings.ReplaceAll(key, "_", "-")] == (other && key != "max_running") {
			t.Errorf("%s: the key %s is a flag: %t; is said to be none, or another: %t", jobsPage, key, !other, other)
		}
	}
	for _, flag := range codeIn(before) {
		if name, ok := strings.CutPrefix(flag, "--"); ok && !flags[name] {
			t.Errorf("%s: job create has no flag %s", jobsPage, flag)
		}
	}
}

// TestReadmeViewsNameCommands: the command with the same answer as a view can be typed.
func TestReadmeViewsNameCommands(t *testing.T) {
	known := map[string]bool{}
	eachCommand(allCommands(), func(c *cobra.Command) { known[c.CommandPath()] = true })
	for _, row := range readPage(t, databasePage).rows("Views") {
		for _, name := range codeIn(row[2]) {
			if !known["dbjobs "+name] {
				t.Errorf("%s: %s: there is no command %s", databasePage, row[0], name)
			}
		}
	}
}

// TestReadmeManifests: apply accepts each part of a page that is a whole file of jobs.
func TestReadmeManifests(t *testing.T) {
	read := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks() {
			if b.language != "yaml" || !regexp.MustCompile(`(?m)^(jobs|schedules):`).MatchString(b.text) {
				continue
			}
			read++
			if _, err := manifest.Read([]manifest.Input{{Path: p.path, In: strings.NewReader(b.text)}}, manifest.Options{Name: "jobs", Now: time.Now(), Env: unset}); err != nil {
				t.Errorf("%v\nin\n%s", err, b.text)
			}
		}
	}
	if read < 15 {
		t.Errorf("only %d manifests were read", read)
	}
}

// unset is an environment without variables.
func unset(string) (string, bool) { return "", false }

// TestReadmeFirstPage: the first page is short, each promise names a test, and it names the version of Go that is
// needed.
func TestReadmeFirstPage(t *testing.T) {
	p := readPage(t, "README.md")
	if n := strings.Count(p.text, "\n"); n > 250 {
		t.Errorf("%s has %d lines: what only some readers need belongs beside what it describes", p.path, n)
	}
	promises := p.rows("What is promised")
	for _, row := range promises {
		if !strings.Contains(row[2], "Test") {
			t.Errorf("no test stands behind promise %s: %s", row[0], row[1])
		}
	}
	if len(promises) == 0 {
		t.Errorf("%s promises nothing", p.path)
	}
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	needed := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))
	if needed == nil || !strings.Contains(p.section("Install").text, "Go "+needed[1]+",") {
		t.Errorf("%s does not say that Go %v is needed", p.path, needed)
	}
}

// TestAlarmsNameCommands: a user who gets an alarm can type the commands that it names.
func TestAlarmsNameCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../terraform/*/al*.tf")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	known, named := map[string]bool{}, 0
	eachCommand(allCommands(), func(c *cobra.Command) { known[c.CommandPath()] = true })
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:see|and|or) (dbjobs [a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			if named++; !known[m[1]] {
				t.Errorf("%s: there is no command %s", path, m[1])
			}
		}
	}
	if named < 4 {
		t.Errorf("the alarms name %d commands", named)
	}
}
