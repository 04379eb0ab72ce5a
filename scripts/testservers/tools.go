//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tools is the one list of programs that tests use besides the servers. A test
// finds in the tool's variable the root folder below which it is installed.
var tools = []*tool{
	{
		parcel: parcel{
			name: "cron", title: "cron", env: "DBJOBS_TEST_CRON", advice: "install it (Debian, Ubuntu: apt-get install cron)",
			metapackage: "cron", packages: regexp.MustCompile(`^(cron|lib.*)$`),
		},
		file: "/usr/sbin/cron",
	},
	{
		parcel: parcel{
			name: "systemd", title: "systemd-analyze", env: "DBJOBS_TEST_SYSTEMD", advice: "install it (Debian, Ubuntu: apt-get install systemd)",
			metapackage: "systemd", packages: regexp.MustCompile(`^(systemd|lib.*)$`),
		},
		file: "/usr/bin/systemd-analyze",
	},
	{
		parcel: parcel{
			name: "pgbouncer", title: "PgBouncer", env: "DBJOBS_TEST_PGBOUNCER", advice: "install it (Debian, Ubuntu: apt-get install pgbouncer)",
			metapackage: "pgbouncer", packages: regexp.MustCompile(`^(pgbouncer|lib.*)$`),
		},
		file: "/usr/sbin/pgbouncer",
	},
	{
		parcel: parcel{ // what the distribution has may be years old, and there people use it
			name: "pgbouncer-stable", title: "PgBouncer of Debian's stable release", env: "DBJOBS_TEST_PGBOUNCER_STABLE",
			advice:      "name the folder below which usr/sbin/pgbouncer is",
			metapackage: "pgbouncer", packages: regexp.MustCompile(`^(pgbouncer|lib.*|zlib1g)$`), release: "trixie",
		},
		file: "/usr/sbin/pgbouncer",
	},
	{
		parcel: parcel{
			name: "exim", title: "Exim", env: "DBJOBS_TEST_EXIM", advice: "install it (Debian, Ubuntu: apt-get install exim4-daemon-light)",
			metapackage: "exim4-daemon-light libnss-wrapper", packages: regexp.MustCompile(`^(exim4-daemon-light|lib.*)$`),
		},
		file: "/usr/sbin/exim4",
	},
	{
		parcel: parcel{
			name: "pgagent", title: "pgAgent", env: "DBJOBS_TEST_PGAGENT", advice: "install it (Debian, Ubuntu: apt-get install pgagent)",
			metapackage: "pgagent", packages: regexp.MustCompile(`^pgagent$`),
		},
		file: "/usr/bin/pgagent",
	},
	{
		parcel: parcel{
			name: "at", title: "at(1) and libfakechroot", env: "DBJOBS_TEST_AT",
			advice:      "install them (Debian, Ubuntu: apt-get install at libfakechroot) and set DBJOBS_TEST_AT=/",
			metapackage: "at libfakechroot", packages: regexp.MustCompile(`^(at|lib.*)$`),
		},
		file: "/usr/bin/at", fetched: true,
	},
	{
		parcel: parcel{
			name: "psql", title: "psql", env: "DBJOBS_TEST_PSQL", advice: "install it (Debian, Ubuntu: apt-get install postgresql-client)",
			metapackage: "postgresql-client", packages: regexp.MustCompile(`^(postgresql-client-\d+|lib.*)$`),
		},
		file: "/usr/lib/postgresql/*/bin/psql", onPath: true,
	},
	{
		parcel: parcel{
			name: "mariadb-client", title: "MariaDB's client", env: "DBJOBS_TEST_MARIADB_CLIENT", advice: "install it (Debian, Ubuntu: apt-get install mariadb-client)",
			metapackage: "mariadb-client-core", packages: regexp.MustCompile(`^(mariadb-client-core.*|lib.*)$`),
		},
		file: "/usr/bin/mariadb", onPath: true,
	},
	{
		parcel: parcel{
			name: "sqlite3", title: "sqlite3", env: "DBJOBS_TEST_SQLITE3", advice: "install it (Debian, Ubuntu: apt-get install sqlite3)",
			metapackage: "sqlite3", packages: regexp.MustCompile(`^(sqlite3|lib.*)$`),
		},
		file: "/usr/bin/sqlite3", onPath: true,
	},
	{
		parcel: parcel{
			name: "chromium", title: "Chromium", env: "DBJOBS_TEST_CHROMIUM", advice: "install it (Debian, Ubuntu: apt-get install chromium-headless-shell)",
			metapackage: "chromium-headless-shell fonts-dejavu-core", packages: regexp.MustCompile(`^(chromium-(headless-shell|common)|fonts-dejavu-core|lib.*)$`),
		},
		file: "/usr/lib/chromium/chromium-headless-shell",
	},
}

// A tool is a program that is no server: a test starts it itself.
type tool struct {
	parcel
	file    string // below the root folder; a pattern
	onPath  bool   // where it is installed, tests find it on PATH
	fetched bool   // this machine's is not used, since what it does stays in a place of the machine's
}

// chosenTools returns the tools named in list, which is empty if none are.
func chosenTools(list string) ([]*tool, error) {
	var picked []*tool
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(tools, func(t *tool) bool { return t.name == name })
		switch {
		case name == "":
		case i < 0:
			return nil, fmt.Errorf("-tools names %q, which is not in the list", name)
		default:
			picked = append(picked, tools[i])
		}
	}
	return picked, nil
}

// provideTools comes by the tools, and returns the variables that say where.
func (r *run) provideTools(ctx context.Context, wanted []*tool) (environment []string, err error) {
	var errs []error
	for _, t := range wanted {
		root, err := r.provideTool(ctx, t)
		environment, errs = append(environment, t.env+"="+root), append(errs, err)
	}
	return environment, errors.Join(errs...)
}

// provideTool returns the tool's root folder: the one that is named, that of
// this machine, or that of fetched packages.
func (r *run) provideTool(ctx context.Context, t *tool) (root string, err error) {
	if root = os.Getenv(t.env); root != "" {
		return root, t.below(root)
	}
	here := errors.New("not looked for")
	if os.Getenv("DBJOBS_TEST_FETCH") == "" && t.release == "" && !t.fetched {
		if here = t.below("/"); here == nil {
			return "/", nil
		}
	}
	root, err = r.fetch(ctx, &t.parcel, t.below)
	if err == nil {
		return root, nil
	}
	return "", fmt.Errorf("there is no %s to test with.\n  named:     no, %s is not set\n  installed: %w\n  fetched:   %w\n  To do: %s",
		t.title, t.env, here, err, t.advice)
}

func (t *tool) below(root string) error {
	if name := filepath.Base(t.file); root == "/" && t.onPath {
		if onPath(name) == "" {
			return fmt.Errorf("%s is not on PATH", name)
		}
		return nil
	}
	file := filepath.Join(root, t.file)
	if found, _ := filepath.Glob(file); !slices.ContainsFunc(found, executable) { // the patterns are well-formed
		return fmt.Errorf("%s is not there", file)
	}
	return nil
}
