//go:build unix

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A user is whom the servers run as. Its nil value is the one who runs this.
type user struct{ UID, GID int }

// ordinary is nobody where root runs this, since database servers refuse root.
func ordinary() *user {
	if os.Geteuid() != 0 {
		return nil
	}
	return &user{UID: 65534, GID: 65534}
}

func (u *user) credential() *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)} // and no other group
}

func (u *user) own(file string) error {
	if u == nil {
		return nil
	}
	return os.Chown(file, u.UID, u.GID)
}

// mkdir makes a folder that only the servers' user may enter.
func (r *run) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return r.user.own(dir)
}

// tempFolder makes the folder of this run: in TMPDIR if the servers' user can
// get there and a socket's path (104 bytes on some systems) fits, else in /tmp.
// Without TMPDIR it is in memory, where there is enough of it: tests make many
// databases and tables, whose files cost a sixth of the servers' time on a disk.
func tempFolder(u *user) (string, error) {
	const longest = 60
	bases := []string{os.TempDir(), "/tmp"}
	if shm, ok := memory(); ok && os.Getenv("TMPDIR") == "" {
		bases = append([]string{shm}, bases...)
	}
	for _, base := range bases {
		if len(base) > longest || u != nil && !enterable(base) {
			continue
		}
		dir, err := os.MkdirTemp(base, "dbjobs-test-")
		if err != nil {
			return "", err
		}
		return dir, u.own(dir)
	}
	return "", errors.New("neither TMPDIR nor /tmp is a folder that every user can enter: set TMPDIR to one with a short path")
}

// enterable reports whether every user can reach the folder dir.
func enterable(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// cacheFolder is where fetched packages stay: in the user's cache, or in the
// repository's when there is no home.
func cacheFolder() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		if base, err = filepath.Abs(".cache"); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(base, "dbjobs-test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("no folder for fetched packages: %w; set XDG_CACHE_HOME to one that can be written", err)
	}
	return dir, nil
}

// libraryFolders are those of unpacked packages; the machine's own need no mention.
func libraryFolders(root string) []string {
	if root == "" {
		return nil
	}
	var dirs []string
	for _, pattern := range []string{"/usr/lib/*-linux-gnu*", "/lib/*-linux-gnu*"} {
		found, _ := filepath.Glob(root + pattern) // the patterns are well-formed
		dirs = append(dirs, found...)
	}
	return dirs
}

// onPath finds a program on PATH, through symbolic links; "" if it is not there.
func onPath(name string) string {
	file, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	if file, err = filepath.Abs(file); err != nil {
		return ""
	}
	return file
}

// password makes one that no other run has. It needs no quoting anywhere.
func password() string { return rand.Text() }
