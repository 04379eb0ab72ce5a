// Image packs the program into a container image: a tarball of an OCI layout, made without a daemon and without a
// base image. Each argument is an architecture, and the folder that has the files dbjobs and LICENSES for it:
//
//	go run . -o image.tar amd64=path/to/amd64 arm64=path/to/arm64
//
// Several architectures make one image that has them all. The same programs give the same bytes. The image is the
// one that scripts/Dockerfile makes. It has the static program, which contains its time zones, the root
// certificates that Mozilla trusts, a user that is not root, and an empty /data for the embedded database. Only
// /data has to be writable.
//
// With -push HOST/PATH:TAG, the image is also sent to a registry. The login is that of Docker's configuration or,
// at the registries of Google, that of gcloud or its application default credentials.
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
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user and the group. Any number except root's would do; it is a number because Kubernetes can check
// a number.
const nobody = 65532

func main() {
	version := flag.String("version", "latest", "the image's tag")
	out := flag.String("o", "image.tar", "the file to write")
	to := flag.String("push", "", "where a registry gets the image: HOST/PATH:TAG")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: image [-version TAG] [-o FILE] [-push HOST/PATH:TAG] ARCH=FOLDER...")
		os.Exit(2)
	}
	if err := build(flag.Args(), *version, *out, *to); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func build(folders []string, version, out, to string) (err error) {
	dir, err := os.MkdirTemp("", "dbjobs-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	digest, err := lay(dir, folders, version)
	if err != nil {
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
	fmt.Printf("%s: %d bytes, %s\n", out, info.Size(), digest)
	if to == "" {
		return nil
	}
	return push(dir, to)
}

// lay writes the layout into a folder. Its index has one entry: the image of one architecture, or the index of the
// images of several.
func lay(dir string, folders []string, version string) (v1.Hash, error) {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	var images []mutate.IndexAddendum
	for _, f := range folders {
		arch, folder, ok := strings.Cut(f, "=")
		if !ok {
			return v1.Hash{}, fmt.Errorf("%s is not like amd64=FOLDER", f)
		}
		img, err := image(filepath.Join(folder, "dbjobs"), filepath.Join(folder, "LICENSES"), arch)
		if err != nil {
			return v1.Hash{}, err
		}
		images = append(images, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	tag := "dbjobs:" + strings.ReplaceAll(version, "+", "-") // a tag may not have a +
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": tag})
	if len(images) == 1 {
		img := images[0].Add.(v1.Image)
		if err := path.AppendImage(img, name, layout.WithPlatform(*images[0].Platform)); err != nil {
			return v1.Hash{}, err
		}
		return img.Digest()
	}
	index := mutate.IndexMediaType(mutate.AppendManifests(empty.Index, images...), types.OCIImageIndex)
	if err := path.AppendIndex(index, name); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// image has two layers: the files that seldom change, and the program.
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
			{name: "LICENSES", mode: 0o644, text: allowed}, // of everything that is linked into the program
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

// file is an entry of a layer. A file without text is a folder.
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

// roots returns the certificates that Mozilla trusts without a condition, because the usual file has no place for
// conditions.
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
