package main

import (
	"errors"
	"io"
	"syscall"

	"github.com/dbjobs/dbjobs/cmd/internal/wholefile"
)

// writeTo writes a file, or standard output where the path is -, and returns the number of bytes. A new file can be read
// by its owner only.
func (c *cli) writeTo(path string, write func(io.Writer) error) (size int64, err error) {
	if path == "-" {
		return wholefile.Into(c.stdout, write)
	}
	size, err = wholefile.Write(path, 0o600, write)
	if errors.Is(err, syscall.EISDIR) {
		return 0, badInput("%s is a folder; -o takes a file", path)
	}
	return size, err
}
