//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A suite is a group of packages, and the tests of them that are run.
type suite struct {
	name     string
	packages []string
	args     []string
}

var suites = []suite{
	{name: "store", packages: []string{"./store/..."}},
	{name: "tick", packages: []string{"./tick", "./tick/decide/...", "./tick/doctor/...", "./tick/executor/...", "./tick/simulate/..."}},
	{name: "plans", packages: []string{"./tick/load"}, args: []string{"-run=^TestExplain"}},
	{name: "cmd", packages: []string{"./cmd/..."}},
}

func main() {
	servers := flag.String("servers", ".build/testservers", "the program that starts the servers")
	tools := flag.String("tools", "", "the programs that the tests start, as -tools of testservers")
	dir := flag.String("dir", ".build/matrix", "where the events stay")
	only := flag.String("suites", "", "run these, with commas between; all if it is empty")
	table := flag.Bool("table", false, "print the table of earlier runs")
	inner := flag.Bool("inner", false, "the servers are there: run the suites on one row")
	flag.Parse()
	m := matrix{servers: *servers, tools: *tools, dir: *dir, only: *only}
	var err error
	switch {
	case *inner:
		err = m.runSuites(flag.Arg(0))
	case *table:
		err = m.print(os.Stdout, flag.Args())
	default:
		for _, row := range flag.Args() {
			if err := m.run(row); err != nil {
				fmt.Fprintf(os.Stderr, "matrix: %s: %v\n", row, err)
			}
		}
		err = m.print(os.Stdout, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

type matrix struct{ servers, tools, dir, only string }

func (m matrix) folder(row string) string { return filepath.Join(m.dir, row) }

func (m matrix) events(row string, s suite) string {
	return filepath.Join(m.folder(row), s.name+".json")
}

// wanted returns the suites that -suites names.
func (m matrix) wanted() []suite {
	return slices.DeleteFunc(slices.Clone(suites), func(s suite) bool {
		return m.only != "" && !slices.Contains(strings.Split(m.only, ","), s.name)
	})
}

// run starts the server of a row, and this program once more beside it. The events of suites that are not wanted
// stay.
func (m matrix) run(row string) error {
	if err := os.MkdirAll(m.folder(row), 0o755); err != nil {
		return err
	}
	for _, s := range m.wanted() {
		if err := os.Remove(m.events(row, s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	engine, _, versioned := strings.Cut(row, "=")
	args := []string{"-tools", m.tools}
	if versioned {
		args = append(args, "-versions", row)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(m.servers, append(args, "--", self, "-inner", "-dir", m.dir, "-suites", m.only, row)...)
	cmd.Env = append(os.Environ(), "DBJOBS_TEST_DATABASES="+engine)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = os.Stdout, io.MultiWriter(os.Stderr, &said)
	err = cmd.Run()
	return errors.Join(err, os.WriteFile(filepath.Join(m.folder(row), "said"), said.Bytes(), 0o644))
}

// runSuites runs all suites. The events say what failed.
func (m matrix) runSuites(row string) error {
	var errs []error
	for _, s := range m.wanted() {
		args := slices.Concat([]string{"tool", "-modfile=scripts/test/go.mod", "gotestsum", "--hide-summary=skipped", "--format=pkgname",
			"--jsonfile=" + m.events(row, s), "--", "-trimpath", "-ldflags=-s -w", "-count=1", "-parallel=4", "-timeout=60m"}, s.args, s.packages)
		cmd := exec.Command("go", args...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		errs = append(errs, cmd.Run())
	}
	return errors.Join(errs...)
}

var version = regexp.MustCompile(`engines: SQLite \(in process\), (.+?) \(`)

// server returns the name that testservers gave to the server of a row.
func (m matrix) server(row string) (engine, number string) {
	if row == "sqlite" {
		return "SQLite", "in process"
	}
	text, _ := os.ReadFile(filepath.Join(m.folder(row), "said")) // without the file, the row did not run, and its suites say so
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if found := version.FindStringSubmatch(lines.Text()); found != nil {
			i := strings.LastIndex(found[1], " ")
			return found[1][:i], found[1][i+1:]
		}
	}
	engine, number, _ = strings.Cut(row, "=")
	return engine, number
}
