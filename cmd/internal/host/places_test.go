package host

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	load := func() *Settings {
		t.Helper()
		s, err := Load(lookup(env), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := load(); s.From != "" && s.From != "/etc/dbjobs/config.yaml" {
		t.Errorf("found %s", s.From)
	}
	env["HOME"] = file(t, filepath.Join(home, "null"), "", 0o600) // a home that is no folder has no settings
	if s := load(); s.From != "" && s.From != "/etc/dbjobs/config.yaml" {
		t.Errorf("found %s", s.From)
	}
	env["HOME"] = home
	inHome := file(t, filepath.Join(home, ".config/dbjobs/config.yaml"), "# none\n", 0o600)
	if s := load(); s.From != inHome {
		t.Errorf("found %q, want %s", s.From, inHome)
	}
	env["XDG_CONFIG_HOME"] = filepath.Join(home, "xdg")
	byXDG := file(t, filepath.Join(home, "xdg/dbjobs/config.yaml"), "# nothing yet\n", 0o640)
	if s := load(); s.From != byXDG {
		t.Errorf("found %q, want %s", s.From, byXDG)
	}
	env[Variable] = file(t, filepath.Join(home, "named.yaml"), "programs: [/bin/true]", 0o644)
	if s := load(); s.From != env[Variable] || len(s.Programs) != 1 {
		t.Errorf("found %q, want %s", s.From, env[Variable])
	}
	cut := file(t, filepath.Join(home, "cut.yaml"), "\n", 0o644)
	for value, want := range map[string]string{"": "set but empty", filepath.Join(home, "none.yaml"): "no such file", home: "no regular file", cut: "is empty"} {
		env[Variable] = value
		if _, err := Load(lookup(env), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", value, err, want)
		}
	}
}

// TestPlacesOfSystems: a Mac has the places of other Unix systems, too.
func TestPlacesOfSystems(t *testing.T) {
	for _, c := range []struct {
		system string
		env    map[string]string
		want   []string // folders
	}{
		{"linux", map[string]string{"HOME": "/h", "APPDATA": "/a"}, []string{"/h/.config", "/etc"}},
		{"linux", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, []string{"/x", "/etc"}},
		{"linux", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "x"}, []string{"/h/.config", "/etc"}},
		{"linux", nil, []string{"/etc"}},
		{"freebsd", map[string]string{"HOME": "h"}, []string{"/etc"}},
		{"darwin", map[string]string{"HOME": "/h"}, []string{"/h/.config", "/h/Library/Application Support", "/etc"}},
		{"darwin", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, []string{"/x", "/h/Library/Application Support", "/etc"}},
		{"darwin", nil, []string{"/etc"}},
		{"windows", map[string]string{"HOME": "/h", "APPDATA": "/a"}, []string{"/a"}},
		{"windows", nil, nil},
	} {
		var want []string
		for _, dir := range c.want {
			want = append(want, filepath.Join(dir, "dbjobs", "config.yaml"))
		}
		if got := placesOn(c.system, lookup(c.env)); !slices.Equal(got, want) {
			t.Errorf("%s %v: %q, want %q", c.system, c.env, got, want)
		}
	}
}
