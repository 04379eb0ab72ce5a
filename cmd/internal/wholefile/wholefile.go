// Package wholefile replaces files as a whole.
package wholefile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dbjobs/dbjobs/store/fileowner"
)

// Write writes a file, and returns its size in bytes. A reader of the file sees the old content or the new one at any
// time, never a part of it. A file that is there keeps its permissions, and its owner and group, as far as this user may
// give them away; a new one gets mode. A link stays, and the file that it leads to is replaced. What is no file, such as
// /dev/stdout or a named pipe, is written to, and never replaced. For a folder, the error wraps syscall.EISDIR.
func Write(path string, mode fs.FileMode, write func(io.Writer) error) (size int64, err error) {
	old, err := os.Stat(path)
	if err == nil {
		switch mode = old.Mode().Perm(); {
		case old.IsDir():
			return 0, &fs.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
		case !old.Mode().IsRegular():
			return device(path, write)
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return 0, err
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		path = missing(path)
	} else {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // after the rename this file no longer exists, and Remove does nothing
	size, err = Into(f, write)
	if old != nil {
		fileowner.Like(f, old)
	}
	if err == nil {
		err = f.Chmod(mode) // after the owner, because only then the mode is for that group
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return size, err
}

// missing follows a link to what is not there.
func missing(path string) string {
	for range 40 { // as many as Linux follows
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if dir, _ := filepath.Split(path); !filepath.IsAbs(to) {
			to = dir + to // not cleaned: what is above a linked folder is above its target
		}
		path = to
	}
	dir, name := filepath.Split(path)
	if real, err := filepath.EvalSymlinks(dir); dir != "" && err == nil {
		return filepath.Join(real, name)
	}
	return path
}

// device writes to a device, a pipe or a terminal.
func device(path string, write func(io.Writer) error) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	size, err = Into(f, write)
	return size, errors.Join(err, f.Close())
}

// Into writes to w through a buffer, and returns the number of bytes.
func Into(w io.Writer, write func(io.Writer) error) (int64, error) {
	n := &counted{w: w}
	buffer := bufio.NewWriter(n)
	if err := write(buffer); err != nil {
		return n.size, err
	}
	err := buffer.Flush()
	return n.size, err
}

// counted counts the bytes that are written.
type counted struct {
	w    io.Writer
	size int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.size += int64(n)
	return n, err
}
