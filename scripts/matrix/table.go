//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// A count is the result of the tests of a suite.
type count struct {
	passed, skipped int
	failed          []string // by name; a package without a failed test did not build, or did not end
}

// print writes the table, and below it the tests that failed.
func (m matrix) print(w io.Writer, rows []string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ENGINE\tVERSION\tSUITE\tPASSED\tFAILED\tNOT RUN")
	var failed, missing []string
	for _, row := range rows {
		engine, version := m.server(row)
		for _, s := range m.wanted() {
			c, err := countEvents(m.events(row, s))
			if errors.Is(err, os.ErrNotExist) {
				missing = append(missing, row+" "+s.name)
				fmt.Fprintf(t, "%s\t%s\t%s\t-\t-\tall\n", engine, version, s.name)
				continue
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\n", engine, version, s.name, c.passed, len(c.failed), c.skipped)
			for _, name := range c.failed {
				failed = append(failed, row+" "+name)
			}
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, name := range failed {
		fmt.Fprintln(w, "FAILED", name)
	}
	for _, name := range missing {
		fmt.Fprintln(w, "NOT RUN", name)
	}
	if len(failed)+len(missing) > 0 {
		return fmt.Errorf("%d tests failed, %d suites were not run", len(failed), len(missing))
	}
	return nil
}

// event is one event of go test -json.
type event struct{ Action, Package, Test string }

// countEvents reads the events of a suite.
func countEvents(file string) (c count, err error) {
	f, err := os.Open(file)
	if err != nil {
		return c, err
	}
	defer f.Close()
	ended := map[[2]string]string{} // the result of a test, or of a package, whose test is ""
	parents, begun := map[[2]string]bool{}, map[[2]string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return c, fmt.Errorf("%s: %w", file, err)
		}
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "run", "start":
			begun[key] = true
			for name := e.Test; strings.Contains(name, "/"); {
				name = name[:strings.LastIndex(name, "/")]
				parents[[2]string{e.Package, name}] = true
			}
		case "pass", "fail", "skip":
			ended[key] = e.Action
		}
	}
	failing := map[string]bool{} // packages in which a test failed
	for key := range begun {
		if _, ok := ended[key]; !ok && key[1] != "" {
			ended[key] = "fail" // its package ended before the test did
		}
	}
	for key, action := range ended {
		name := strings.TrimPrefix(key[0], "github.com/dbjobs/dbjobs/") + " " + key[1]
		switch {
		case key[1] == "":
		case action == "fail":
			failing[key[0]] = true
			if !parents[key] || !slices.ContainsFunc(keys(ended), func(k [2]string) bool {
				return k[0] == key[0] && strings.HasPrefix(k[1], key[1]+"/") && ended[k] == "fail"
			}) {
				c.failed = append(c.failed, name)
			}
		case parents[key]:
		case action == "pass":
			c.passed++
		default:
			c.skipped++
		}
	}
	for key, action := range ended {
		if key[1] == "" && action == "fail" && !failing[key[0]] {
			c.failed = append(c.failed, strings.TrimPrefix(key[0], "github.com/dbjobs/dbjobs/"))
		}
	}
	slices.Sort(c.failed)
	return c, lines.Err()
}

func keys(m map[[2]string]string) [][2]string {
	var list [][2]string
	for k := range m {
		list = append(list, k)
	}
	return list
}
