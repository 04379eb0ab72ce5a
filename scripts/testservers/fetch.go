//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const fetchLimit = 10 * time.Minute

// apt is the machine's own, with its sources, keys and proxy settings, but with
// a state of our own: package lists that are usually missing on a fresh machine,
// and an empty list of installed packages, so that every dependency is named.
type apt struct {
	run     *run
	dir     string
	config  string
	release string       // of Debian, and of no source besides; "": the machine's sources
	update  func() error // once
}

// The hooks of a distribution's apt would touch the host (they empty its package
// cache, say), so they are off; so are lists that nobody reads here. Downloads
// are checked against the machine's keys as ever.
const aptConfig = `#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::DEP-11-icons;
#clear Acquire::IndexTargets::deb::DEP-11-icons-small;
#clear Acquire::IndexTargets::deb::DEP-11-icons-hidpi;
#clear Acquire::IndexTargets::deb::DEP-11-icons-large;
#clear Acquire::IndexTargets::deb::DEP-11-icons-large-hidpi;
#clear Acquire::IndexTargets::deb::CNF;
#clear Acquire::IndexTargets::deb::Contents-deb;
Dir::State "%[1]s";
Dir::State::lists "%[1]s/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Log "%[1]s";
Debug::NoLocking "true";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "root";
APT::Get::List-Cleanup "false";
APT::Install-Recommends "false";
`

func newApt(ctx context.Context, r *run, release string) *apt {
	a := &apt{run: r, dir: filepath.Join(r.dir, "apt"+release), release: release}
	a.config = filepath.Join(a.dir, "apt.conf")
	a.update = sync.OnceValue(func() error {
		for _, dir := range []string{"lists/partial", "cache/archives/partial", "sources"} {
			if err := os.MkdirAll(filepath.Join(a.dir, dir), 0o755); err != nil {
				return err
			}
		}
		err := errors.Join(
			os.WriteFile(filepath.Join(a.dir, "status"), nil, 0o644),
			os.WriteFile(a.config, fmt.Appendf(nil, aptConfig, a.dir), 0o644))
		if err == nil && release != "" {
			err = a.useRelease(ctx)
		}
		if err != nil {
			return err
		}
		// One source of several that fails is a warning here, as it is to apt:
		// what is wanted may be in the others.
		return r.combined(a.get(ctx, "update"))
	})
	return a
}

func (a *apt) get(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-y", "-c", a.config}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	cmd.Dir = a.dir
	return cmd
}

// archive is a release of Debian in what `apt-get update --print-uris` says, and its mirror.
var archive = regexp.MustCompile(`(?m)^'(\S+)/dists/(\w+)/InRelease'`)

// useRelease makes a release of Debian the only source, from the mirror that the machine has its own from.
func (a *apt) useRelease(ctx context.Context) error {
	out, err := a.get(ctx, "update", "--print-uris").Output()
	if err != nil {
		return err
	}
	text := ""
	for _, found := range archive.FindAllStringSubmatch(string(out), -1) {
		if text == "" && slices.Contains([]string{released("VERSION_CODENAME"), "stable", "testing", "sid", "unstable"}, found[2]) {
			text = fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n", found[1], a.release)
		}
	}
	if text == "" {
		return errors.New("the sources of apt-get name no mirror of Debian")
	}
	if keys := "/usr/share/keyrings/debian-archive-keyring.gpg"; readable(keys) {
		text += "Signed-By: " + keys + "\n"
	}
	foreign := fmt.Sprintf(aptConfig+"Dir::Etc::sourcelist \"/dev/null\";\nDir::Etc::sourceparts \"%[1]s/sources\";\n#clear APT::Default-Release;\n", a.dir)
	return errors.Join(
		os.WriteFile(filepath.Join(a.dir, "sources", a.release+".sources"), []byte(text), 0o644),
		os.WriteFile(a.config, []byte(foreign), 0o644))
}

func readable(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// aptFor returns the sources that have a parcel.
func (r *run) aptFor(ctx context.Context, p *parcel) *apt {
	if p.release != "" && released("ID") == "debian" {
		return newApt(ctx, r, p.release)
	}
	return r.apt
}

// unwanted are packages that a running server does without, and theMachines those of the C library, which belongs to
// its loader: servers of the machine's own release run with the machine's.
var (
	unwanted    = regexp.MustCompile(`^(libc-(bin|dev|l10n|gconv).*|lib.*-perl|libperl.*|libllvm.*|libz3.*)$`)
	theMachines = regexp.MustCompile(`^libc6.*$`)
)

// resolve names the packages to unpack.
func (a *apt) resolve(ctx context.Context, p *parcel) ([]string, error) {
	cmd := a.get(ctx, append([]string{"--simulate", "install"}, strings.Fields(p.metapackage)...)...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("apt-get cannot resolve %s (%w):\n%s", p.metapackage, err, tail(problems.Bytes()))
	}
	return pick(out, p.packages, a.release != ""), nil
}

// pick returns the wanted packages of a simulated installation: lines of the
// form "Inst libpq5 (15.18-0+deb12u1 …)".
func pick(simulation []byte, wanted *regexp.Regexp, ownC bool) []string {
	var names []string
	lines := bufio.NewScanner(bytes.NewReader(simulation))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 1 && fields[0] == "Inst" && wanted.MatchString(fields[1]) && !unwanted.MatchString(fields[1]) &&
			(ownC || !theMachines.MatchString(fields[1])) {
			names = append(names, fields[1])
		}
	}
	return names
}

// fetch returns the root folder of the unpacked packages, from the cache if what
// runs in there is as it should be.
func (r *run) fetch(ctx context.Context, p *parcel, runs func(root string) error) (root string, err error) {
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	root = filepath.Join(cache, strings.Join([]string{p.name, distribution(), runtime.GOARCH}, "-"))
	unlock, err := lock(ctx, root+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := runs(root); err == nil {
		return root, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	r.say("%s is not installed: fetching packages into %s, once", p.title, cache)
	if err := r.unpack(ctx, p, root); err != nil {
		return "", err
	}
	return root, nil
}

// unpack fetches the packages and unpacks them as root, all or nothing.
func (r *run) unpack(ctx context.Context, p *parcel, root string) error {
	if p.npm != "" {
		return r.unpackNPM(ctx, p, root)
	}
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("this machine has no %s to fetch packages with", tool)
		}
	}
	apt := r.aptFor(ctx, p)
	if err := apt.update(); err != nil {
		return err
	}
	names, err := apt.resolve(ctx, p)
	if err != nil {
		return err
	}
	debs := filepath.Join(apt.dir, p.name)
	if err := os.Mkdir(debs, 0o755); err != nil {
		return err
	}
	download := apt.get(ctx, append([]string{"download"}, names...)...)
	download.Dir = debs
	if err := r.combined(download); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	half := root + ".half" // one that an earlier run left is ours: we hold the lock
	if err := errors.Join(os.RemoveAll(half), os.RemoveAll(root)); err != nil {
		return err
	}
	for _, file := range files {
		if err := r.combined(exec.CommandContext(ctx, "dpkg-deb", "-x", file, half)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"doc", "man", "locale", "lintian"} {
		if err := os.RemoveAll(filepath.Join(half, "usr/share", dir)); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(debs), os.Rename(half, root))
}

// reachable returns root, or a copy of it in this run's folder where the
// servers' user cannot get at root (root's home is closed to others).
func (r *run) reachable(ctx context.Context, e *engine, root string) (string, error) {
	if r.user == nil || enterable(root) {
		return root, nil
	}
	dir := filepath.Join(r.dir, e.name+"-programs")
	return dir, r.combined(exec.CommandContext(ctx, "cp", "-R", "-p", root, dir))
}

// distribution tells one release from another, so that a cache does not outlive
// an upgrade of the machine: "debian-12".
func distribution() string { return released("ID") + "-" + released("VERSION_ID") }

// released is a field of what the machine says of its release.
func released(field string) string {
	text, _ := os.ReadFile("/etc/os-release") // without it apt's answer is as good
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			fields[key] = strings.Trim(value, `"'`)
		}
	}
	return fields[field]
}

// lock lets one launcher at a time fetch an engine; the others then find it.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // which unlocks
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			select {
			case <-time.After(200 * time.Millisecond):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("%s cannot be locked: %w", name, err)
	}
}
