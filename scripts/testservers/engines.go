//go:build unix

package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// engines is the one list of what the suite's servers are.
var engines = []*engine{postgres, mariadb}

// peers are servers that are started only where they are named: MySQL, and what dbjobs is measured beside.
var peers = []*engine{mysql, pgcron}

// An engine is a kind of database server.
type engine struct {
	parcel // its variable holds its URL

	schemes   []string // of URLs for it, ours first
	query     string   // of the URL that the tests are given
	usualPort string   // of a URL that names none
	minimum   version  // the oldest version that dbjobs supports
	version   string   // the one that is asked for, and fetched, whatever this machine has; "": any
	exactly   string   // what the server must call this version, if that is known; "": anything

	// find lists the installations below a root folder, the likeliest first;
	// root "" is this machine itself, where PATH counts too.
	find func(root string) []installation
	// mark is found in what `server --version` says.
	mark *regexp.Regexp

	// init makes the data folder and the account, or what start makes it from.
	init func(context.Context, *server) error
	// args are those of the server's process.
	args func(*server) []string
	// ready reports whether the server lets clients in.
	ready func(*server) bool
	// forks: each session is a process of its own.
	forks bool
	// stop ends the server at once: its files are thrown away.
	stop syscall.Signal
}

// A parcel is what may be fetched: the packages of an engine or of a tool.
type parcel struct {
	name   string // in DBJOBS_TEST_DATABASES or -tools, and in folder names
	title  string // for people
	env    string // the variable that tells the tests where it is
	advice string // how to come by it by hand

	// metapackage (or several, with spaces between) depends on all that is needed, in any release of Debian and
	// Ubuntu; packages says which of those to unpack.
	metapackage string
	packages    *regexp.Regexp
	// npm is a package of npm with its version, which has all that is needed; then there are no metapackage and packages.
	npm string
	// release is that of Debian which has it, where the machine's own, if that is one of Debian, has not; its packages run on
	// their own C library.
	release string
}

// An installation is a server's programs, not yet known to run.
type installation struct {
	server string   // the server's program
	init   string   // the program that makes a data folder
	prefix string   // the folder that usr is, wherever it was unpacked
	libs   []string // folders with libraries of its own
	loader string   // of its own C library; "": the machine's
}

// argv is the command line of one of its programs.
func (i installation) argv(program string, args ...string) []string {
	if i.loader == "" {
		return append([]string{program}, args...)
	}
	return append([]string{i.loader, "--library-path", strings.Join(i.libs, ":"), program}, args...)
}

// chosen returns the engines named in list, which is DBJOBS_TEST_DATABASES: all
// of them if it is empty. SQLite needs no server and may be named.
func chosen(list string) ([]*engine, error) {
	if strings.TrimSpace(list) == "" {
		return engines, nil
	}
	var picked []*engine
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		all := slices.Concat(engines, peers)
		i := slices.IndexFunc(all, func(e *engine) bool { return e.name == name })
		switch {
		case name == "sqlite" || name == "":
		case i < 0:
			return nil, fmt.Errorf("DBJOBS_TEST_DATABASES names %q: it may name %s", name, known())
		case !slices.Contains(picked, all[i]):
			picked = append(picked, all[i])
		}
	}
	return picked, nil
}

func known() string {
	names := []string{"sqlite"}
	for _, e := range slices.Concat(engines, peers) {
		names = append(names, e.name)
	}
	return strings.Join(names, ", ")
}

// A version is a server's, compared by its first two numbers.
type version struct{ major, minor int }

var versionText = regexp.MustCompile(`(\d+)\.(\d+)[\d.]*`)

// parseVersion finds the first version in text and returns it also as written.
func parseVersion(text string) (v version, written string, ok bool) {
	written = strings.TrimRight(versionText.FindString(text), ".")
	if written == "" {
		return version{}, "", false
	}
	_, err := fmt.Sscanf(written, "%d.%d", &v.major, &v.minor)
	return v, written, err == nil
}

func (v version) less(w version) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

func (v version) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }
