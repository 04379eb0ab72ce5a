//go:build unix

package executor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// A target may name a file that cannot be read now, as on a file server that is away. The attempt ends with its time, the other
// targets can be used, and the executor can be closed.
func TestATargetWhoseFileHangs(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "jobs.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	hangs, well := filepath.Join(dir, "hangs"), filepath.Join(dir, "well.db")
	if err := errors.Join(syscall.Mkfifo(hangs, 0o600), os.WriteFile(well, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h := &Host{Own: true, Targets: map[string]Target{
		"hangs": {URL: func(context.Context) (string, error) {
			return "postgres://u@127.0.0.1:1/x?sslmode=verify-ca&sslrootcert=" + hangs, nil
		}},
		"well": {URL: func(context.Context) (string, error) { return "sqlite:" + well, nil }},
	}}
	x, err := newSQL(s, h)
	if err != nil {
		t.Fatal(err)
	}
	over := errors.New("its time is over")
	ctx, end := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() {
		_, err := x.Execute(ctx, attempt(`{"sql": ["SELECT 1"], "target": "hangs"}`))
		ended <- err
	}()
	w, err := os.OpenFile(hangs, os.O_WRONLY, 0) // the attempt reads the file now, and waits
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if _, err := x.Execute(t.Context(), attempt(`{"sql": ["SELECT 1"], "target": "well"}`)); err != nil {
		t.Error(err)
	}
	end(over)
	if err := <-ended; !errors.Is(err, over) {
		t.Errorf("%v, want that %v", err, over)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}
