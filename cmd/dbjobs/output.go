package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"

	"github.com/dbjobs/dbjobs/cmd/internal/wholefile"
)

// unknown says what could not be found out about a change that is done. The change counts, and the command has succeeded: after
// an error, its user or a script would make the change again.
func (c *cli) unknown(what string, err error) {
	if err != nil {
		c.tell(slog.LevelWarn, "%s could not be found out: %v", what, err)
	}
}

// unseen is the error of a command that was told to print as JSON what it has changed, and cannot: its reader waits for that.
func unseen(err error) error {
	return fmt.Errorf("%w, but it cannot be shown: %w", errChanged, err)
}

var errChanged = errors.New("the change is done")

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
