package main

import (
	"context"
	"io"
	"os"
)

// interruptible is a reader whose Read returns when its context ends, even if r blocks for ever.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(b []byte) (int, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data := make([]byte, len(b)) // not b: it belongs to the caller again once Read has returned
		n, err := i.r.Read(data)
		done <- result{data[:n], err}
	}()
	select {
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	case r := <-done:
		return copy(b, r.data), r.err
	}
}

// opener returns what opens a file as openInput does.
func opener(ctx context.Context) func(path string) (io.ReadCloser, error) {
	return func(path string) (io.ReadCloser, error) { return openInput(ctx, path) }
}

// openInput opens a file to be read. It returns when its context ends, and so do the reads, even if the file is a pipe into which
// nobody writes.
func openInput(ctx context.Context, path string) (io.ReadCloser, error) {
	type result struct {
		file *os.File
		err  error
	}
	done := make(chan result, 1)
	go func() {
		file, err := os.Open(path)
		done <- result{file, err}
	}()
	select {
	case <-ctx.Done(): // the process ends, and the file with it
		return nil, ctx.Err()
	case r := <-done:
		if r.err != nil {
			return nil, r.err
		}
		return struct {
			io.Reader
			io.Closer
		}{interruptible{ctx, r.file}, r.file}, nil
	}
}
