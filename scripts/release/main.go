package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	var r release
	var version, targets string
	flag.StringVar(&r.root, "root", "../..", "the clone of dbjobs")
	flag.StringVar(&r.out, "o", "", "the folder to write into; what was in it is removed")
	flag.StringVar(&version, "version", "", "the version, such as v1.2.3 (default: what git knows of the commit)")
	flag.StringVar(&targets, "targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "systems and architectures")
	flag.StringVar(&r.compression, "deb", "xz", "how packages are compressed: xz, which all versions of dpkg read and takes ten seconds, or gzip")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.make(ctx, version, targets); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one release while it is made.
type release struct {
	root, out string
	work      string // for files that are not part of the release
	source    source
	targets   []target

	compression string // of packages
}

// name is the name of a file of the release.
func (r *release) name(what, suffix string) string {
	return filepath.Join(r.out, fmt.Sprintf("%s_%s%s", what, strings.TrimPrefix(r.source.version, "v"), suffix))
}

func (r *release) make(ctx context.Context, version, targets string) (err error) {
	if r.out == "" {
		return errors.New("-o wants a folder")
	}
	for _, dir := range []*string{&r.root, &r.out} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	if r.targets, err = parseTargets(targets); err != nil {
		return err
	}
	if r.source, err = readSource(ctx, r.root, version); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "dbjobs-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{r.programs, r.completions, r.archives, r.functions, r.image, r.packages, r.bill} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return r.sums()
}

// sums writes the checksums of all files, in the form that `sha256sum -c` reads.
func (r *release) sums() error {
	files, err := os.ReadDir(r.out) // in the order of their names
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files {
		sum, size, err := sum(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sum, f.Name())
		fmt.Printf("%9d  %s\n", size, f.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func sum(path string) ([]byte, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return h.Sum(nil), n, err
}
