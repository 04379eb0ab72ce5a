// Image packs the program into a container image, as a tarball of an OCI layout, without a daemon and without a base:
//
//	go run . -arch amd64 -o image.tar path/to/dbjobs path/to/LICENSES
//
// The same program gives the same bytes. The image is what scripts/Dockerfile makes: the static program, which has its
// time zones in it, the roots of the certificates that Mozilla trusts, a user that is not root, and an empty /data for
// the embedded database. Nothing in it needs to be written to but /data.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user and the group: any number but root's would do, and a number is what Kubernetes can check.
const nobody = 65532

func main() {
	arch := flag.String("arch", "amd64", "architecture of the program")
	out := flag.String("o", "image.tar", "the file to write")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: image [-arch ARCH] [-o FILE] PROGRAM LICENSES")
		os.Exit(2)
	}
	if err := build(flag.Arg(0), flag.Arg(1), *arch, *out); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func build(program, licences, arch, out string) (err error) {
	img, err := image(program, licences, arch)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dbjobs-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "dbjobs:latest", "io.containerd.image.name": "dbjobs:latest"})
	if err := path.AppendImage(img, name, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: arch})); err != nil {
		return err
	}
	w, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := archive(w, dir); err != nil {
		return err
	}
	info, err := w.Stat()
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes, %s\n", out, info.Size(), digest)
	return nil
}

// image has two layers: what seldom changes, and the program.
func image(program, licences, arch string) (v1.Image, error) {
	static, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	allowed, err := os.ReadFile(licences)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]file{
		{
			{name: "LICENSES", mode: 0o644, text: allowed}, // of all that is linked into the program
			{name: "data", mode: 0o700, owner: nobody},
			{name: "etc", mode: 0o755},
			{name: "etc/group", mode: 0o644, text: fmt.Appendf(nil, "dbjobs:x:%d:\n", nobody)},
			{name: "etc/passwd", mode: 0o644, text: fmt.Appendf(nil, "dbjobs:x:%d:%[1]d:dbjobs:/data:/sbin/nologin\n", nobody)},
			{name: "etc/ssl", mode: 0o755},
			{name: "etc/ssl/certs", mode: 0o755},
			{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: roots()},
		},
		{{name: "dbjobs", mode: 0o755, text: static}},
	} {
		text, err := layer(files)
		if err != nil {
			return nil, err
		}
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
			tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			return nil, err
		}
	}
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", arch
	c.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", nobody, nobody), Entrypoint: []string{"/dbjobs"}, Cmd: []string{"tick"}, WorkingDir: "/",
		Env:    []string{"XDG_DATA_HOME=/data"},
		Labels: map[string]string{"org.opencontainers.image.title": "dbjobs", "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return mutate.ConfigFile(img, c)
}

// file is an entry of a layer; one without text is a folder.
type file struct {
	name  string
	mode  int64
	owner int
	text  []byte
}

func layer(files []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.text)), Typeflag: tar.TypeReg}
		if f.text == nil {
			h.Name, h.Typeflag = f.name+"/", tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// roots are the certificates that Mozilla trusts without a condition: the usual file has no place for conditions.
func roots() []byte {
	var b bytes.Buffer
	for r := range bundle.Roots() {
		if r.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate}) // a buffer takes everything
		}
	}
	return b.Bytes()
}

// archive writes the folder's files in the order of their names, without times and owners.
func archive(out io.Writer, dir string) error {
	var names []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	w := tar.NewWriter(out)
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return w.Close()
}
