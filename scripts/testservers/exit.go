//go:build unix

package main

import (
	"context"
	"path/filepath"
	"runtime"
)

// withoutDestructors ends a process as it would end by itself, without the destructors of its libraries.
const withoutDestructors = `
#include <stdio.h>
#include <unistd.h>
void exit(int code) { fflush(NULL); _exit(code); }
`

// exitAtOnce is the environment with which the sessions of PostgreSQL cost half as much. Each is a process, and one that ends
// calls the destructors of some forty libraries. They write to pages that it has shared with its parent until then, and the
// kernel copies each, right before it frees them all: on a virtual machine, that is two fifths of the processor time of a
// session. Also, the parent looks up the symbols of the libraries once for all of them. What PostgreSQL itself does when a
// session ends, it has done before it calls exit. Without a C compiler, sessions just cost more.
func (s *server) exitAtOnce(ctx context.Context) []string {
	if !s.forks || !s.owner.exitAtOnce || runtime.GOOS != "linux" || s.inst.loader != "" {
		return nil
	}
	const library = "exit.so"
	if err := s.run(ctx, withoutDestructors, "cc", "-O1", "-shared", "-fPIC", "-o", library, "-x", "c", "-"); err != nil {
		return nil
	}
	return []string{"LD_PRELOAD=" + filepath.Join(s.dir, library), "LD_BIND_NOW=1"}
}
