package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// target is a system and an architecture, by Go's names.
type target struct{ os, arch string }

func parseTargets(list string) ([]target, error) {
	var targets []target
	for _, one := range strings.Split(list, ",") {
		system, arch, ok := strings.Cut(one, "/")
		if !ok {
			return nil, fmt.Errorf("-targets: %q is not like linux/amd64", one)
		}
		targets = append(targets, target{system, arch})
	}
	return targets, nil
}

func (t target) program() string {
	if t.os == "windows" {
		return "dbjobs.exe"
	}
	return "dbjobs"
}

// dir returns the folder of a target's program, and of its licences.
func (r *release) dir(t target) string { return filepath.Join(r.work, t.os+"-"+t.arch) }

// linux returns the targets for which there are more files than archives.
func (r *release) linux() []target {
	var linux []target
	for _, t := range r.targets {
		if t.os == "linux" {
			linux = append(linux, t)
		}
	}
	return linux
}

// programs links the program of each target, with the flags of `make build`, and writes the licences of everything
// that is linked into it.
func (r *release) programs(ctx context.Context) error {
	for _, t := range r.targets {
		program := filepath.Join(r.dir(t), t.program())
		if err := r.link(ctx, t, program); err != nil {
			return err
		}
		if _, err := r.run(ctx, "go", "run", "./scripts/notices", "-o", filepath.Join(r.dir(t), "LICENSES"), program); err != nil {
			return err
		}
	}
	return nil
}

// link gives the version to the linker (the variable is in cmd/dbjobs/version.go), and keeps Go from asking git.
// So an archive of the source gives the same bytes as a clone.
func (r *release) link(ctx context.Context, t target, program string) error {
	env := []string{"CGO_ENABLED=0", "GOOS=" + t.os, "GOARCH=" + t.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0"}
	_, err := output(command(ctx, r.root, env, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc",
		"-ldflags", "-s -w -X main.released="+r.source.version, "-o", program, "./cmd/dbjobs"))
	return err
}

// run starts a program in the clone.
func (r *release) run(ctx context.Context, name string, args ...string) (string, error) {
	return output(command(ctx, r.root, nil, name, args...))
}

// shells has the shells for which the program has completions, with the names under which each shell looks for
// them.
var shells = []struct{ name, file string }{{"bash", "dbjobs.bash"}, {"zsh", "_dbjobs"}, {"fish", "dbjobs.fish"}, {"powershell", "dbjobs.ps1"}}

// completions writes the completions that the program prints. They are the same on all systems, so the program of
// this machine prints them.
func (r *release) completions(ctx context.Context) error {
	here := target{runtime.GOOS, runtime.GOARCH}
	program := filepath.Join(r.dir(here), here.program())
	if !slices.Contains(r.targets, here) {
		if err := r.link(ctx, here, program); err != nil {
			return err
		}
	}
	dir := filepath.Join(r.work, "completions")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, shell := range shells {
		text, err := output(command(ctx, r.work, nil, program, "completion", shell.name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, shell.file), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// functions packs the zip files that AWS Lambda runs.
func (r *release) functions(ctx context.Context) error {
	for _, t := range r.linux() {
		bootstrap := filepath.Join(r.dir(t), "bootstrap")
		if err := os.Link(filepath.Join(r.dir(t), t.program()), bootstrap); err != nil {
			return err
		}
		out := r.name("dbjobs-lambda", "_"+t.arch+".zip")
		if _, err := r.run(ctx, "go", "run", "./scripts/lambdazip", "-o", out, bootstrap, filepath.Join(r.dir(t), "LICENSES")); err != nil {
			return err
		}
	}
	return nil
}

// image packs one image, for all architectures.
func (r *release) image(ctx context.Context) error {
	linux := r.linux()
	if len(linux) == 0 {
		return nil
	}
	args := []string{"run", "-C", "scripts/image", ".", "-version", r.source.version, "-o", r.name("dbjobs-image", ".tar")}
	for _, t := range linux {
		args = append(args, fmt.Sprintf("%s=%s", t.arch, r.dir(t)))
	}
	_, err := r.run(ctx, "go", args...)
	return err
}
