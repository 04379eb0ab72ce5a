//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// A provision is what became of one engine: a URL, or an error.
type provision struct {
	engine *engine
	url    string
	what   string  // for people: "MariaDB 10.11.14 (installed)"
	server *server // nil for one that was there before
	err    error
}

// provideAll comes by a server of each engine, side by side. The provisions are
// in the order of the engines; with an error, some may still have to be stopped.
func (r *run) provideAll(ctx context.Context, engines []*engine) ([]provision, error) {
	provisions := make([]provision, len(engines))
	var wait sync.WaitGroup
	for i, e := range engines {
		wait.Go(func() { provisions[i] = r.provide(ctx, e) })
	}
	wait.Wait()
	var errs []error
	for _, p := range provisions {
		errs = append(errs, p.err)
	}
	return provisions, errors.Join(errs...)
}

func (r *run) provide(ctx context.Context, e *engine) provision {
	p := provision{engine: e}
	if text := os.Getenv(e.env); text != "" && e.version == "" {
		where, err := e.named(text)
		p.url, p.err = text, err
		p.what = fmt.Sprintf("%s at %s (named by %s)", e.title, where, e.env)
		return p
	}
	inst, origin, written, err := r.programs(ctx, e)
	if err != nil {
		p.err = err
		return p
	}
	s, err := r.start(ctx, e, inst)
	if s != nil && s.kept != nil {
		p.server = s
	}
	if err != nil {
		p.err = err
		return p
	}
	p.url, p.what = s.url(), fmt.Sprintf("%s %s (%s)", e.title, written, strings.Join(append([]string{origin}, s.extra()...), " "))
	return p
}

// programs finds or fetches the engine's. origin says which of the two it was.
func (r *run) programs(ctx context.Context, e *engine) (inst installation, origin, written string, err error) {
	here := errors.New("not looked for, as DBJOBS_TEST_FETCH or a version is set")
	if os.Getenv("DBJOBS_TEST_FETCH") == "" && e.version == "" {
		if inst, written, here = e.installed(ctx, ""); here == nil {
			return inst, "installed", written, nil
		}
	}
	root, err := r.fetch(ctx, &e.parcel, func(root string) error {
		_, _, err := e.installed(ctx, root)
		return err
	})
	if err == nil {
		root, err = r.reachable(ctx, e, root)
	}
	if err == nil {
		if inst, written, err = e.installed(ctx, root); err == nil {
			return inst, "fetched", written, nil
		}
	}
	return inst, "", "", fmt.Errorf("there is no %s to test on.\n"+
		"  named:     no, %s is not set\n  installed: %w\n  fetched:   %w\n"+
		"  To do: %s\n  Or run what needs no server: make check",
		e.title, e.env, here, err, e.advice)
}

// installed returns the first installation below root that runs and is recent
// enough, and its version. The error says what was wrong with those that are there.
func (e *engine) installed(ctx context.Context, root string) (installation, string, error) {
	var reasons []string
	for _, inst := range e.find(root) {
		if !executable(inst.server) || !executable(inst.init) {
			continue
		}
		written, err := e.check(ctx, inst)
		if err == nil {
			return inst, written, nil
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", inst.server, err))
	}
	if len(reasons) == 0 {
		return installation{}, "", errors.New("no server's programs are in PATH or the usual folders")
	}
	return installation{}, "", errors.New(strings.Join(reasons, "; "))
}

// check asks a server's program what it is.
func (e *engine) check(ctx context.Context, inst installation) (written string, err error) {
	argv := inst.argv(inst.server, "--version")
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = (&server{inst: inst, dir: "/"}).environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("does not run: %w %s", err, strings.TrimSpace(string(out)))
	}
	v, written, ok := parseVersion(string(out))
	switch {
	case !ok || !e.mark.Match(out):
		return "", fmt.Errorf("is %q, not %s", strings.TrimSpace(string(out)), e.title)
	case e.exactly != "" && written != e.exactly:
		return "", fmt.Errorf("is version %s, not %s", written, e.exactly)
	case v.less(e.minimum):
		return "", fmt.Errorf("is version %s, %s or newer is needed", written, e.minimum)
	}
	return written, nil
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
