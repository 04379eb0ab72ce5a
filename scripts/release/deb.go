package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// units start a pass each minute. The package installs them, and the administrator enables the timer: a program
// that is only tried, or that another trigger starts, must not begin to run jobs.
var units = []string{"dbjobs.service", "dbjobs.timer"}

// packages makes the Debian package of each architecture.
func (r *release) packages(context.Context) error {
	for _, t := range r.linux() {
		info, err := r.debian(t)
		if err != nil {
			return err
		}
		if err := write(r.name("dbjobs", "_"+t.arch+".deb"), func(w io.Writer) error { return deb.Default.Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) debian(t target) (*nfpm.Info, error) {
	placed, err := r.unitsOf(t)
	if err != nil {
		return nil, err
	}
	completions, scripts := filepath.Join(r.work, "completions"), filepath.Join(r.root, "scripts/release/deb")
	contents := append(placed,
		r.file(filepath.Join(r.dir(t), "dbjobs"), "/usr/bin/dbjobs", "", 0o755),
		r.file(filepath.Join(completions, "dbjobs.bash"), "/usr/share/bash-completion/completions/dbjobs", "", 0o644),
		r.file(filepath.Join(completions, "_dbjobs"), "/usr/share/zsh/vendor-completions/_dbjobs", "", 0o644),
		r.file(filepath.Join(completions, "dbjobs.fish"), "/usr/share/fish/vendor_completions.d/dbjobs.fish", "", 0o644),
		r.file(filepath.Join(r.dir(t), "LICENSES"), "/usr/share/doc/dbjobs/copyright", "", 0o644),
		// The file will contain the password. So only root may read it, and no upgrade replaces it.
		r.file(filepath.Join(scripts, "environment"), "/etc/dbjobs/environment", files.TypeConfigNoReplace, 0o600),
	)
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "dbjobs", Arch: t.arch, Platform: "linux", Version: strings.TrimPrefix(r.source.version, "v"),
		Section: "admin", Priority: "optional", Maintainer: "The authors of dbjobs <dbjobs@users.noreply.github.com>",
		Description: "scheduled jobs in a database, with nothing resident\n" +
			"Definitions, state and history are tables in PostgreSQL, MariaDB, MySQL or SQLite. Any trigger starts a pass;\n" +
			"this package brings a timer of systemd, which is off until it is enabled.",
		Homepage: "https://github.com/dbjobs/dbjobs", License: "Apache-2.0", MTime: r.source.time,
		Overridables: nfpm.Overridables{
			Contents: contents, Recommends: []string{"ca-certificates"},
			Scripts: nfpm.Scripts{
				PostInstall: filepath.Join(scripts, "postinst"), PreRemove: filepath.Join(scripts, "prerm"), PostRemove: filepath.Join(scripts, "postrm"),
			},
			Deb: nfpm.Deb{Compression: r.compression},
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return nil, err
	}
	return info, nil
}

func (r *release) file(source, destination, kind string, mode os.FileMode) *files.Content {
	return &files.Content{Source: source, Destination: destination, Type: kind,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.source.time}}
}

// unitsOf returns the units of scripts/triggers, with the path of the program in a package.
func (r *release) unitsOf(t target) (files.Contents, error) {
	var placed files.Contents
	for _, unit := range units {
		text, err := os.ReadFile(filepath.Join(r.root, "scripts/triggers", unit))
		if err != nil {
			return nil, err
		}
		adapted := filepath.Join(r.dir(t), unit)
		if err := os.WriteFile(adapted, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/", "/usr/bin/")), 0o644); err != nil {
			return nil, err
		}
		placed = append(placed, r.file(adapted, "/usr/lib/systemd/system/"+unit, "", 0o644))
	}
	return placed, nil
}
