package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// source is what a release is made from. All differences between two releases come from it.
type source struct {
	version  string // as Go writes it: v1.2.3, or a pseudo-version for a commit without a tag
	revision string // of the commit; empty if there is no repository
	time     time.Time
}

// readSource asks git. A folder without a repository, such as an unpacked archive of the source, needs the
// version. It also needs SOURCE_DATE_EPOCH for the time, as
// https://reproducible-builds.org/specs/source-date-epoch/ defines it.
func readSource(ctx context.Context, root, version string) (source, error) {
	s := source{version: version}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	// A repository in a folder above is not the repository of this folder.
	if top, err := git(ctx, root, "rev-parse", "--show-prefix"); err == nil && top == "" {
		if s.revision, err = git(ctx, root, "rev-parse", "HEAD"); err != nil {
			return s, err
		}
		if epoch == "" {
			if epoch, err = git(ctx, root, "log", "-1", "--format=%ct"); err != nil {
				return s, err
			}
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return s, errors.New("there is no repository here, so SOURCE_DATE_EPOCH has to be the time of the release in seconds since 1970")
	}
	s.time = time.Unix(seconds, 0).UTC()
	if s.version == "" {
		if s.revision == "" {
			return s, errors.New("there is no repository here, so -version has to say which version this is")
		}
		if s.version, err = versionOf(ctx, root, s); err != nil {
			return s, err
		}
	}
	if !semver.IsValid(s.version) || semver.Canonical(s.version) != strings.TrimSuffix(s.version, semver.Build(s.version)) {
		return s, fmt.Errorf("%q is not a version like v1.2.3", s.version)
	}
	return s, nil
}

// versionOf returns the tag of the commit, or else the pseudo-version that Go has for it. Like Go, it adds +dirty
// at the end if files differ from the commit: such a release can be made, but not reproduced.
func versionOf(ctx context.Context, root string, s source) (string, error) {
	dirty := ""
	if changed, err := git(ctx, root, "status", "--porcelain"); err != nil {
		return "", err
	} else if changed != "" {
		dirty = "+dirty"
	}
	if tag, err := git(ctx, root, "describe", "--tags", "--exact-match", "--match", "v[0-9]*", "HEAD"); err == nil {
		return tag + dirty, nil
	}
	before, err := git(ctx, root, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD")
	if err != nil {
		before = ""
	}
	major := "v0"
	if before != "" {
		major = semver.Major(before)
	}
	return module.PseudoVersion(major, before, s.time, s.revision[:12]) + dirty, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	return output(command(ctx, dir, nil, "git", args...))
}

func command(ctx context.Context, dir string, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	return cmd
}

// output returns what a command prints. If the command fails, the error contains its messages.
func output(cmd *exec.Cmd) (string, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
