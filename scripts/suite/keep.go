//go:build unix

package main

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// results are the long tests that have passed, in this run and in earlier ones that were cut. Each line of their file is a key, a
// space and the name of a test or of a part of one, such as TestCrashTwice/sqlite. Files outside the package's folder testdata, such
// as a page of the repository, are not in the key: the tests that read them are short, and always run.
type results struct {
	file string        // "": nothing is kept
	long time.Duration // that of a test that is worth it

	mu     sync.Mutex
	passed map[string][]string // names, by key
}

// readResults reads the results of earlier runs.
func readResults(file string, long time.Duration) (*results, error) {
	r := &results{file: file, long: long, passed: map[string][]string{}}
	if file == "" {
		return r, nil
	}
	text, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	} else if err != nil {
		return nil, err
	}
	defer text.Close()
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		key, name, _ := strings.Cut(lines.Text(), " ")
		r.passed[key] = append(r.passed[key], name)
	}
	return r, lines.Err()
}

// key is the same for the same program with the same variables and the same testdata.
func (r *results) key(p *program) (string, error) {
	if r.file == "" {
		return "", nil
	}
	program, err := os.Open(p.file)
	if err != nil {
		return "", err
	}
	defer program.Close()
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %q %q\n", p.label, p.env, p.run) // which never fails
	if _, err := io.Copy(h, program); err != nil {
		return "", err
	}
	data := filepath.Join(p.dir, "testdata")
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("%.16x", h.Sum(nil)), nil
	}
	err = filepath.WalkDir(data, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		_, _ = fmt.Fprintf(h, "%q %d\n%s", strings.TrimPrefix(name, data), len(text), text)
		return err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%.16x", h.Sum(nil)), nil
}

// skip returns the names of what has passed, and the pattern that leaves it out.
func (r *results) skip(key string) (names []string, pattern string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names = slices.Clone(r.passed[key])
	patterns := make([]string, len(names))
	for i, name := range names {
		test, part, has := strings.Cut(name, "/")
		if patterns[i] = "^" + regexp.QuoteMeta(test) + "$"; has {
			patterns[i] += "/^" + regexp.QuoteMeta(part) + "$"
		}
	}
	return names, strings.Join(patterns, "|")
}

// add keeps the result that an event tells, if a long test has passed. A part of a part counts with it.
func (r *results) add(key string, e event) error {
	if r.file == "" || e.Action != "pass" || e.Test == "" || strings.Count(e.Test, "/") > 1 || e.Elapsed < r.long.Seconds() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	file, err := os.OpenFile(r.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %s\n", key, e.Test)
	return errors.Join(err, file.Close())
}
