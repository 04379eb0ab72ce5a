package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// clone copies the files of this clone that git knows, or would know, into a folder.
func clone(t *testing.T, dir string) {
	t.Helper()
	const pack = `git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
		tar -c --null -T - | tar -x -C "$0"`
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := output(command(t.Context(), "../..", nil, "bash", "-euc", pack, dir)); err != nil {
		t.Fatal(err)
	}
}

// make makes a release for this machine, and returns its folder.
func makeRelease(t *testing.T, root string, env []string, args ...string) string {
	t.Helper()
	args = append([]string{"--no-print-directory", "release", "TARGETS=linux/" + runtime.GOARCH}, args...)
	if _, err := output(command(t.Context(), root, env, "make", args...)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, ".build/release")
}

// TestRelease: what a clone with a tag gives is what it is called. With DBJOBS_PROVE the unpacked archive of its source, compiled
// anew in a folder of another name, gives the same bytes, which takes minutes. Without, the package is compressed as gzip does: it
// takes a tenth of the time of xz, and dpkg reads both.
func TestRelease(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("packages and functions are made for linux only, whose program is tried here")
	}
	cloned := filepath.Join(t.TempDir(), "dbjobs")
	clone(t, cloned)
	const at = "1790000000"
	git := "git init -q && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm a && git tag v1.2.3"
	if _, err := output(command(t.Context(), cloned, []string{"GIT_COMMITTER_DATE=" + at + " +0000"}, "sh", "-euc", git)); err != nil {
		t.Fatal(err)
	}
	compression := "DEB=gzip"
	if os.Getenv("DBJOBS_PROVE") != "" {
		compression = "DEB=xz"
	}
	one := makeRelease(t, cloned, []string{"TZ=Asia/Kolkata"}, compression)
	files, err := os.ReadDir(one)
	if err != nil || len(files) != 6 {
		t.Fatalf("%v: %v", err, files)
	}
	if os.Getenv("DBJOBS_PROVE") != "" {
		unpacked := filepath.Join(t.TempDir(), "with blanks", "dbjobs-1.2.3")
		clone(t, unpacked)
		env := []string{"TZ=UTC", "SOURCE_DATE_EPOCH=" + at, "GOCACHE=" + t.TempDir()}
		sameBytes(t, one, makeRelease(t, unpacked, env, "VERSION=v1.2.3"))
	}
	if _, err := output(command(t.Context(), one, nil, "sha256sum", "--check", "--strict", "SHA256SUMS")); err != nil {
		t.Error(err)
	}
	program := unpack(t, filepath.Join(one, fmt.Sprintf("dbjobs_1.2.3_linux_%s.tar.gz", runtime.GOARCH)))
	if said, err := output(exec.Command(program, "version")); err != nil || !strings.HasPrefix(said, "dbjobs v1.2.3 ") {
		t.Errorf("%v: the program says %q", err, said)
	}
	checkBill(t, filepath.Join(one, "dbjobs_1.2.3.cdx.json"), program)
	checkPackage(t, filepath.Join(one, fmt.Sprintf("dbjobs_1.2.3_%s.deb", runtime.GOARCH)))
}

// sameBytes compares the files of two releases.
func sameBytes(t *testing.T, one, two string) {
	t.Helper()
	files, err1 := os.ReadDir(one)
	others, err2 := os.ReadDir(two)
	if err := errors.Join(err1, err2); err != nil || len(others) != len(files) {
		t.Fatalf("%v: %v, %v", err, files, others)
	}
	for _, f := range files {
		a, _, err1 := sum(filepath.Join(one, f.Name()))
		b, _, err2 := sum(filepath.Join(two, f.Name()))
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v", f.Name(), err)
		}
	}
}

// unpack returns the program of an archive.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s has no program: %v", archive, err)
		}
		if filepath.Base(h.Name) != "dbjobs" {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(t.TempDir(), "dbjobs")
		if err := os.WriteFile(program, text, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
		return program
	}
}

// checkBill: each module that the program names is in the bill, with a licence that has a name.
func checkBill(t *testing.T, file, program string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var bill cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(f, cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, c := range *bill.Components {
		listed[c.Name+"@"+c.Version] = c.Licenses != nil && len(*c.Licenses) > 0 && strings.HasPrefix(c.PackageURL, "pkg:golang/")
	}
	if want := "std@" + strings.TrimPrefix(info.GoVersion, "go"); !listed[want] {
		t.Errorf("%s is not in the bill", want)
	}
	for _, m := range info.Deps {
		if !listed[m.Path+"@"+m.Version] {
			t.Errorf("%s@%s, or its licence, is not in the bill", m.Path, m.Version)
		}
	}
}

// checkPackage installs the package with the real dpkg, into a folder, removes and purges it.
func checkPackage(t *testing.T, deb string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg"); err != nil || os.Geteuid() != 0 {
		if os.Getenv("CI") != "" && os.Geteuid() == 0 {
			t.Error("dpkg is not here")
		}
		t.Log("the package was not installed: dpkg and root are needed")
		return
	}
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) {
		t.Helper()
		args = append([]string{"--root=" + root, "--log=" + filepath.Join(root, "log"), "--force-script-chrootless"}, args...)
		if _, err := output(exec.Command("dpkg", args...)); err != nil {
			t.Fatal(err)
		}
	}
	mode := func(name string) string {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil {
			return "none"
		}
		return info.Mode().String()
	}
	dpkg("--install", deb)
	for name, want := range map[string]string{
		"usr/bin/dbjobs": "-rwxr-xr-x", "etc/dbjobs/environment": "-rw-------", "usr/lib/systemd/system/dbjobs.timer": "-rw-r--r--",
		"usr/share/bash-completion/completions/dbjobs": "-rw-r--r--", "usr/share/doc/dbjobs/copyright": "-rw-r--r--",
		"etc/systemd/system/timers.target.wants/dbjobs.timer": "none", // it is off
	} {
		if got := mode(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if service, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/dbjobs.service")); err != nil || !strings.Contains(string(service), "\nExecStart=/usr/bin/dbjobs tick ") {
		t.Errorf("%v: the service does not start the program of the package", err)
	}
	// What the administrator wrote stays when the package is installed again, and until it is purged.
	const setting = "DBJOBS_DATABASE_URL=postgres://db.example.com/app\n"
	if err := os.WriteFile(filepath.Join(root, "etc/dbjobs/environment"), []byte(setting), 0o600); err != nil {
		t.Fatal(err)
	}
	dpkg("--install", deb)
	dpkg("--remove", "dbjobs")
	if text, err := os.ReadFile(filepath.Join(root, "etc/dbjobs/environment")); err != nil || string(text) != setting || mode("usr/bin/dbjobs") != "none" {
		t.Errorf("removed: %v, the settings are %q, the program %s", err, text, mode("usr/bin/dbjobs"))
	}
	dpkg("--purge", "dbjobs")
	if got := mode("etc/dbjobs"); got != "none" {
		t.Errorf("purged: etc/dbjobs is %s", got)
	}
}

// TestFlagsAgree: a release is linked as `make build` links.
func TestFlagsAgree(t *testing.T) {
	makefile, err1 := os.ReadFile("../../Makefile")
	program, err2 := os.ReadFile("build.go")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "\nRELEASE = CGO_ENABLED=0 $(GO) build -trimpath -tags lambda.norpc -ldflags '-s -w'\n") ||
		!strings.Contains(string(program), `"-trimpath", "-buildvcs=false", "-tags", "lambda.norpc",`) || !strings.Contains(string(program), `"-s -w -X main.`) {
		t.Error("the Makefile and build.go have different flags")
	}
}

// TestVersion: the version of a commit with a tag, after one, and without any; and what is no version.
func TestVersion(t *testing.T) {
	dir := t.TempDir()
	sh := func(script string) {
		t.Helper()
		env := []string{"GIT_COMMITTER_DATE=1790000000 +0000", "GIT_CONFIG_GLOBAL=/dev/null"}
		if _, err := output(command(t.Context(), dir, env, "sh", "-euc", script)); err != nil {
			t.Fatal(err)
		}
	}
	const commit = "git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m a\n"
	for _, step := range []struct{ script, want string }{
		{"git init -q\n" + commit, "v0.0.0-20260921"},
		{"git tag v1.2.3; git tag other", "v1.2.3"},
		{"touch new", "v1.2.3+dirty"},
		{"rm new; " + commit, "v1.2.4-0.20260921"},
		{"git tag v2.0.0-rc.1", "v2.0.0-rc.1"},
	} {
		sh(step.script)
		if s, err := readSource(t.Context(), dir, ""); err != nil || !strings.HasPrefix(s.version, step.want) || s.time.Unix() != 1790000000 {
			t.Errorf("after %q: %+v, %v", step.script, s, err)
		}
	}
	for _, version := range []string{"1.2.3", "v1.2", "v1.2.3 -X main.released=v9", "latest"} {
		if _, err := readSource(t.Context(), dir, version); err == nil {
			t.Errorf("%q is taken for a version", version)
		}
	}
	if _, err := readSource(t.Context(), t.TempDir(), "v1.2.3"); err == nil {
		t.Error("a release has no time")
	}
}
