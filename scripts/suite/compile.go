//go:build unix

package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// program is that of a package's tests, in one leg.
type program struct {
	*leg
	label  string // of the package and the leg
	dir    string // the package's, where tests run
	file   string
	source int64 // bytes of its tests
}

// compile builds the programs of all legs. Legs with the same flags share them, and what is there already and has not changed is
// not linked again. Without the tables for debuggers, to link takes a third less; stack traces need none of them. Without the
// paths of this machine, what another clone has compiled is used again.
func compile(ctx context.Context, folder string, legs []*leg) (programs []program, err error) {
	var lists, builds errgroup.Group
	found := make([][]tests, len(legs))
	for i, l := range legs {
		lists.Go(func() (err error) { found[i], err = tested(ctx, l); return err })
	}
	if err := lists.Wait(); err != nil {
		return nil, err
	}
	wanted := map[string][]string{} // packages, by the folder of their programs
	flags := map[string][]string{}
	for i, l := range legs {
		h := fnv.New32a()
		_, _ = h.Write([]byte(strings.Join(l.build, " "))) // which never fails
		into := filepath.Join(folder, fmt.Sprintf("%08x", h.Sum32()))
		flags[into] = l.build
		for _, t := range found[i] {
			label := t.name
			if l.name != "" {
				label += " (" + l.name + ")"
			}
			source, err := bytesOfTests(t.dir)
			if err != nil {
				return nil, err
			}
			file := filepath.Join(into, path.Base(t.name)+".test")
			programs = append(programs, program{leg: l, label: label, dir: t.dir, file: file, source: source})
			if !slices.Contains(wanted[into], t.name) {
				wanted[into] = append(wanted[into], t.name)
			}
		}
	}
	for into, packages := range wanted {
		builds.Go(func() error {
			args := slices.Concat([]string{"test"}, flags[into], []string{"-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-o", into + "/"}, packages)
			if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
				return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
			}
			return nil
		})
	}
	return programs, builds.Wait()
}

type tests struct{ name, dir string }

// tested are the packages of a leg that have tests.
func tested(ctx context.Context, l *leg) (list []tests, err error) {
	args := append(slices.Concat([]string{"list"}, l.build, []string{"-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}"}), l.packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	for line := range strings.Lines(string(out)) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		list = append(list, tests{name, dir})
	}
	return list, nil
}

func bytesOfTests(dir string) (n int64, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, err
}
