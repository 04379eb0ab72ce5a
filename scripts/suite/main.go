//go:build unix

// Suite runs the tests of several legs, a few packages of all of them at once, and prints what `go test -json` would: gotestsum reads it.
// `go test` links the program of a package's tests anew for each leg, and leaves a core idle at the end of each.
//
//	suite [-p 2] [-o FOLDER] [-keep FILE] LEG...
//
// A leg is a text of four parts, apart by semicolons: a name to tell it by with ENV=VALUE words, the flags with which programs are
// built (-C DIR is another module), those with which they are run, as the program of a test takes them, and packages:
//
//	suite 'pooled DBJOBS_TEST_DATABASES=pgbouncer; ; -test.parallel=4; ./store' '; -race; ; ./...'
//
// The programs stay in the folder: one that has not changed since is not linked again. With -keep, a test of a minute or more
// that has passed is not run again by the next run, as long as its program, its testdata and the leg's variables are the
// same: what was cut goes on.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	atOnce := flag.Int("p", 2, "programs at once")
	folder := flag.String("o", ".build/tests", "where programs are kept")
	keep := flag.String("keep", "", "file with the results of long tests, for the next run; none are kept without it")
	long := flag.Duration("long", time.Minute, "how long a test takes whose result is kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	passed, err := suite(ctx, *folder, *atOnce, flag.Args(), *keep, *long)
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
	if err != nil || !passed {
		os.Exit(1)
	}
}

// leg is some packages, built and run in one way.
type leg struct {
	name                 string
	env                  []string
	build, run, packages []string
}

func parseLeg(text string) (*leg, error) {
	parts := strings.Split(text, ";")
	if len(parts) != 4 {
		return nil, fmt.Errorf("%q has %d parts, want 4", text, len(parts))
	}
	l := &leg{build: strings.Fields(parts[1]), run: strings.Fields(parts[2]), packages: strings.Fields(parts[3])}
	for word := range strings.FieldsSeq(parts[0]) {
		if strings.Contains(word, "=") {
			l.env = append(l.env, word)
		} else {
			l.name = word
		}
	}
	return l, nil
}

func suite(ctx context.Context, folder string, atOnce int, texts []string, keep string, long time.Duration) (passed bool, err error) {
	folder, err = filepath.Abs(folder)
	if err != nil {
		return false, err
	}
	legs := make([]*leg, len(texts))
	for i, text := range texts {
		if legs[i], err = parseLeg(text); err != nil {
			return false, err
		}
	}
	programs, err := compile(ctx, folder, legs)
	if err != nil {
		return false, err
	}
	earlier, err := readResults(keep, long)
	if err != nil {
		return false, fmt.Errorf("read earlier results: %w", err)
	}
	return runAll(ctx, programs, atOnce, earlier)
}
