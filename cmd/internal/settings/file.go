package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/dbjobs/dbjobs/store/away"
	"github.com/dbjobs/dbjobs/store/engine"
)

// UnreadError says that a file was not read in time.
type UnreadError struct {
	Path string
	Err  error // why nobody waits any more
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("the file %s was not read in time; is it on a file server that is away?", e.Path)
}

func (e *UnreadError) Unwrap() error { return e.Err }

// File reads a file with a secret, such as a URL. Of a longer file, it reads one byte more than most. It waits no longer than ctx
// lasts, and then returns an UnreadError. The process has one read of a file at a time.
func File(ctx context.Context, path string, most int64) ([]byte, error) {
	data, err := away.Within(ctx, "the file "+path, func() ([]byte, error) { return readFile(path, most) })
	if late, ok := errors.AsType[*away.LateError](err); ok {
		return nil, &UnreadError{path, late.Err}
	}
	return data, err
}

func readFile(path string, most int64) ([]byte, error) {
	f, _, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// Open opens a file. It refuses a file that waits for a writer, or that has no end.
func Open(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err != nil { // of the open file, because another file may take its name at any time
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// patience is how long a command waits for the URL of its database, as for an answer of the database itself. A variable for tests.
var patience = engine.Patience

// Patiently limits a context to the time in which the URL of a database has to be read.
func Patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience)
}
