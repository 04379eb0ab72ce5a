//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// What a process has written is out when it ends, its exit code is its own, and only its destructors are left out.
func TestExitAtOnce(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil && os.Getenv("CI") == "" || runtime.GOOS != "linux" {
		t.Skip("without a C compiler, sessions just cost more")
	}
	r, err := newRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	s := &server{engine: postgres, owner: r, dir: filepath.Join(r.dir, "postgres")}
	if err := r.mkdir(s.dir); err != nil {
		t.Fatal(err)
	}
	if env := s.exitAtOnce(t.Context()); env != nil {
		t.Errorf("without the option: %q", env)
	}
	r.exitAtOnce = true
	env := s.exitAtOnce(t.Context())
	if len(env) == 0 {
		t.Fatal("no library was made")
	}
	const program = `
#include <stdio.h>
#include <stdlib.h>
__attribute__((destructor)) static void end(void) { printf(" and a destructor"); }
int main(void) { printf("written"); exit(7); }
`
	if err := s.run(t.Context(), program, "cc", "-o", "program", "-x", "c", "-"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env  []string
		want string
	}{{nil, "written and a destructor"}, {env, "written"}} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(s.dir, "program"))
		cmd.Env = append(os.Environ(), c.env...)
		out, err := cmd.Output()
		if exit := new(exec.ExitError); string(out) != c.want || !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Errorf("with %q: %q, %v, want %q and exit code 7", c.env, out, err, c.want)
		}
	}
}
