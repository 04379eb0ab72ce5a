package main

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeTo writes a file, or standard output where the path is -, and counts the bytes. A reader of the file
// sees the old content or the new one at any time, never a part of it. A link stays, and the file that it leads to
// is replaced. What is no file, such as /dev/stdout or a named pipe, is written to, and never replaced.
func (c *cli) writeTo(path string, write func(io.Writer) error) (size int64, err error) {
	if path == "-" {
		n := &counted{w: c.stdout}
		err := write(n)
		return n.size, err
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		switch mode = info.Mode().Perm(); {
		case info.IsDir():
			return 0, badInput("%s is a folder; -o takes a file", path)
		case !info.Mode().IsRegular():
			return writeInto(path, write)
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return 0, err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // after the rename this file no longer exists, and Remove does nothing
	buffer := bufio.NewWriter(f)
	n := &counted{w: buffer}
	if err = write(n); err == nil {
		err = buffer.Flush()
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return n.size, err
}

// writeInto writes to a device, a pipe or a terminal.
func writeInto(path string, write func(io.Writer) error) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	buffer := bufio.NewWriter(f)
	n := &counted{w: buffer}
	err = errors.Join(write(n), buffer.Flush(), f.Close())
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
