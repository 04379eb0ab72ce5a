package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// containerConfig is the part of an image that says how it is run.
type containerConfig struct {
	User            string
	Entrypoint, Cmd []string
	Env             []string
	WorkingDir      string
	Labels          map[string]string
}

// container is an image that make has made, unpacked.
type container struct {
	config  containerConfig
	root    string
	archive []byte
}

// makeImage runs make build and make pack in a folder. Programs that are built there already are not linked again.
func makeImage(t *testing.T, dir string, more ...string) *container {
	t.Helper()
	out, err := makeTarget(append([]string{"image", "IMAGE_ARCH=" + runtime.GOARCH, "BUILD=" + dir}, more...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(strings.TrimSpace(string(out[bytes.LastIndexByte(bytes.TrimSpace(out), '\n')+1:])))
	c := &container{root: filepath.Join(t.TempDir(), "root")}
	if c.archive, err = os.ReadFile(filepath.Join(dir, "image.tar")); err != nil {
		t.Fatal(err)
	}
	// If root unpacks an image, the files get their owners.
	if err := os.Mkdir(c.root, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(c.archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	type descriptor struct{ Digest string }
	read := func(name string, into any) {
		t.Helper()
		if err := json.Unmarshal(files[name], into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	blob := func(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct{ Config containerConfig }
	read("index.json", &index)
	read(blob(index.Manifests[0]), &manifest)
	read(blob(manifest.Config), &config)
	c.config = config.Config
	for _, l := range manifest.Layers {
		unpackLayer(t, files[blob(l)], c.root)
	}
	return c
}

func unpackLayer(t *testing.T, layer []byte, root string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.Mkdir(path, os.FileMode(h.Mode))
		} else {
			err = writeProgram(path, os.FileMode(h.Mode), r)
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Chown(path, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// This isolates a container here: a mount namespace whose root is read-only, except for /data, and the image's user,
// without any capability. $1 is the root, $2 the folder that is mounted on /data, and the rest are the arguments.
const (
	mounts = `mount --bind "$1" "$1"; mount --bind "$2" "$1/data"; mount -o remount,bind,ro "$1"; root=$1; shift 2; `
	asRoot = mounts + `exec setpriv --no-new-privs chroot --userspec=65532:65532 "$root" /dbjobs "$@"`
	asUser = mounts + `exec unshare --user --map-user=65532 --map-group=65532 --root="$root" -- /dbjobs "$@"`
)

// command starts the program in the container. An ordinary user needs user namespaces for it.
func (c *container) command(t *testing.T, data string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	argv := []string{"unshare", "--mount", "--", "sh", "-euc", asRoot, "sh", c.root, data}
	if os.Geteuid() != 0 {
		argv = []string{"unshare", "--user", "--map-root-user", "--mount", "--", "sh", "-euc", asUser, "sh", c.root, data}
	}
	cmd := exec.Command(argv[0], append(argv[1:], args...)...)
	cmd.Env = append(append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, c.config.Env...), env...)
	return cmd
}

// TestContainer runs the content of the image as a container would: its root is read-only, and its user is not root.
func TestContainer(t *testing.T) {
	t.Parallel()
	built(t)
	made := filepath.Join(t.TempDir(), "a path with blanks")
	c := makeImage(t, made)
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(data, 65532, 65532); err != nil {
			t.Fatal(err)
		}
	}
	open := filepath.Join(c.root, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	reachable(t, c.root)
	reachable(t, data)
	if out, err := c.command(t, data, nil, "version").CombinedOutput(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok || strings.Contains(string(out), "unshare") || strings.Contains(string(out), "mount") {
			storetest.Skip(t, "no container can be made here, for which root with the right to mount, or user namespaces (kernel.unprivileged_userns_clone) and unshare of util-linux 2.38 are needed: %v: %s", err, out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	run := func(want int, said string, env []string, args ...string) {
		t.Helper()
		cmd := c.command(t, data, env, args...)
		out, err := cmd.CombinedOutput()
		if e, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || ok && e.ExitCode() != want || !ok && want != 0 || !strings.Contains(string(out), said) {
			t.Errorf("%q: %v, want code %d; said %q, want %q", args, err, want, out, said)
		}
	}
	run(exitDone, "T22:00:00Z", nil, "rule", "next", "0 0 1 7 *", "--zone", "Europe/Berlin", "--count", "1")
	// The embedded database is on /data, and nothing can be written anywhere else.
	run(exitDone, "created job", nil, "job", "create", "greet", "--sql", "CREATE TABLE greetings (at TEXT)")
	run(exitDone, "", nil, "job", "run-now", "greet")
	run(exitDone, "succeeded", nil, c.config.Cmd...)
	run(exitDatabase, "", nil, "migrate", "--database", "sqlite:/open/jobs.db") // where only the mount forbids it
	for _, e := range storetest.Engines(t) {
		if e != "sqlite" {
			env := []string{"DBJOBS_DATABASE_URL=" + storetest.URL(t, e)}
			run(exitDone, "newest", env, "migrate")
			run(exitDone, "created job", env, "job", "create", "hello", "--sql", "SELECT 1")
			run(exitDone, "", env, "job", "run-now", "hello")
			run(exitDone, "succeeded", env, "tick")
		}
	}
	c.unprivileged(t, data)
	if roots, err := os.ReadFile(filepath.Join(c.root, "etc/ssl/certs/ca-certificates.crt")); err != nil || bytes.Count(roots, []byte("BEGIN CERTIFICATE")) < 50 {
		t.Errorf("%v: %d bytes of roots", err, len(roots))
	}
	checkLicences(t, filepath.Join(c.root, "LICENSES"), filepath.Join(c.root, "dbjobs"))
	// TestLambdaZipIsReproducible shows that the program itself is the same each time.
	if err := os.Remove(filepath.Join(made, "image.tar")); err != nil {
		t.Fatal(err)
	}
	r := startRegistry(t)
	if again := makeImage(t, made, "PUSH="+r.host+"/tools/dbjobs:1", "DOCKER_CONFIG="+r.config(t, "ann:geheim")); !bytes.Equal(again.archive, c.archive) {
		t.Error("two images differ")
	}
	r.has(t, "tools/dbjobs:1", c)
	if out, err := makeTarget("image", "IMAGE_ARCH="+runtime.GOARCH, "BUILD="+made, "PUSH="+r.host+"/tools/dbjobs:2", "DOCKER_CONFIG="+r.config(t, "ann:wrong")); err == nil || !strings.Contains(string(out), "push to") || len(r.tags) != 1 {
		t.Errorf("who may not push: %v\n%s", err, out)
	}
}

// checkLicences checks that the release has the licences of all its parts, which the program itself lists.
func checkLicences(t *testing.T, file, program string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if !strings.Contains(string(text), "\n"+m.Path+"@"+m.Version+": LICENSE") {
			t.Errorf("LICENSES does not have that of %s", m.Path)
		}
	}
	for _, want := range []string{"\nthe Go standard library: LICENSE\n", "\n" + info.Main.Path + ": LICENSE\n", "Mozilla Public License Version 2.0", "Apache License"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("LICENSES does not have %q", want)
		}
	}
}

// unprivileged examines the program while it runs.
func (c *container) unprivileged(t *testing.T, data string) {
	t.Helper()
	cmd := c.command(t, data, nil, "apply", "-f", "-")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var status string
	for until := time.Now().Add(time.Minute); status == "" && time.Now().Before(until); { // the program replaces what makes its container
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if strings.TrimSpace(string(comm)) == "dbjobs" {
			status = string(text)
		}
	}
	stdin.Close()
	_ = cmd.Wait() // an empty file is refused, which does not matter here
	if !regexp.MustCompile(`(?m)^CapEff:\s+0+$`).MatchString(status) || os.Geteuid() == 0 && !regexp.MustCompile(`(?m)^Uid:\s+65532\s+65532\s`).MatchString(status) {
		t.Errorf("not without rights:\n%s\n%s", status, &said)
	}
}

// reachable gives another user access to the folders of a test.
func reachable(t *testing.T, path string) {
	t.Helper()
	for dir := filepath.Dir(path); dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDockerfileAgrees: the image that Docker makes is run in the same way as the image that make makes.
func TestDockerfileAgrees(t *testing.T) {
	text, err := os.ReadFile("../../scripts/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "\nFROM scratch\n")
	packer, err := os.ReadFile("../../scripts/image/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"USER 65532:65532", `ENTRYPOINT ["/dbjobs"]`, `CMD ["tick"]`, "ENV XDG_DATA_HOME=/data", "WORKDIR /", "COPY --from=build /out/LICENSES /LICENSES"} {
		if !slices.Contains(strings.Split(last, "\n"), want) {
			t.Errorf("scripts/Dockerfile has no line %s", want)
		}
		_, value, _ := strings.Cut(want, " ")
		value = strings.Trim(value, `[]"`)
		if strings.HasSuffix(value, "LICENSES") {
			value = `name: "LICENSES"`
		}
		if value == "65532:65532" {
			value = "nobody = 65532"
		}
		if !strings.Contains(string(packer), value) {
			t.Errorf("scripts/image does not say %s", value)
		}
	}
}
