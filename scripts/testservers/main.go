//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Exit codes of the launcher's own; otherwise it exits with the command's.
const (
	exitFailed   = 1   // a server is missing or did not start
	exitUsage    = 2   // bad arguments or environment
	exitNoServer = 3   // of -fetch: there are no programs of a server
	exitNotRun   = 127 // the command is not there, as a shell says it
)

const usage = `usage: testservers [-note TEXT] [-exit-at-once] [-tools NAME,...] [-versions ENGINE=VERSION,...] -- COMMAND [ARG...]   run COMMAND with the servers
       testservers -print [-tools NAME,...] [-versions ENGINE=VERSION,...]                                             print their URLs, keep them until Ctrl-C
       testservers -fetch [-versions ENGINE=VERSION,...]                                                               see that their programs are here, start none
`

func main() {
	if len(os.Args) == 3 && os.Args[1] == keepCommand {
		os.Exit(runKeeper(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == sweepCommand {
		os.Exit(runSweeper(os.Args[2]))
	}
	os.Exit(launcher(os.Args[1:]))
}

func launcher(args []string) int {
	flags := flag.NewFlagSet("testservers", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	show := flags.Bool("print", false, "")
	note := flags.String("note", "", "")
	named := flags.String("tools", "", "")
	versions := flags.String("versions", "", "")
	only := flags.Bool("fetch", false, "")
	exitAtOnce := flags.Bool("exit-at-once", false, "")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitUsage
	}
	if *show && *only || (*show || *only) == (flags.NArg() > 0) {
		flags.Usage()
		return exitUsage
	}
	picked, err := chosen(os.Getenv("DBJOBS_TEST_DATABASES"))
	if err == nil {
		picked, err = atVersions(picked, *versions)
	}
	wanted, unknown := chosenTools(*named)
	if err = errors.Join(err, unknown); err != nil {
		fmt.Fprintln(os.Stderr, "testservers:", err)
		return exitUsage
	}
	ctx, end := untilEnded()
	defer end()
	r, err := newRun(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testservers:", err)
		return exitFailed
	}
	defer r.close()
	r.exitAtOnce = *exitAtOnce
	if *only {
		return r.atHand(ctx, picked)
	}
	return r.run(ctx, picked, wanted, flags.Args(), *note)
}

// A run is one use of the launcher.
type run struct {
	self    string   // this program's file
	user    *user    // whom servers run as
	dir     string   // all that the run writes, but for the cache
	alive   *os.File // the sweeper waits until the last holder has closed it
	sweeper *exec.Cmd
	apt     *apt
	trusted *authority

	exitAtOnce bool // see server.exitAtOnce
}

func newRun(ctx context.Context) (*run, error) {
	r := &run{user: ordinary()}
	var err error
	if r.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if r.dir, err = tempFolder(r.user); err != nil {
		return nil, err
	}
	if err := r.startSweeper(); err != nil {
		return nil, errors.Join(err, os.Remove(r.dir))
	}
	r.apt = newApt(ctx, r, "")
	if r.trusted, err = newAuthority(r.dir); err != nil {
		return nil, errors.Join(err, r.alive.Close())
	}
	return r, nil
}

// close returns when the run's folder is gone. Everything must have been stopped.
func (r *run) close() {
	_ = r.alive.Close() // nothing was written
	if err := r.sweeper.Wait(); err != nil {
		r.say("the sweeper of %s: %v", r.dir, err)
	}
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "testservers: "+format+"\n", args...)
}

// run starts the servers, runs the command or waits, and stops the servers.
func (r *run) run(ctx context.Context, picked []*engine, wanted []*tool, command []string, note string) int {
	began := time.Now()
	environment, err := r.provideTools(ctx, wanted)
	if err != nil {
		r.say("%v", err)
		return exitFailed
	}
	provisions, err := r.provideAll(ctx, picked)
	defer stopAll(provisions)
	if err != nil {
		if reason := new(ended); errors.As(context.Cause(ctx), reason) {
			r.say("%v", reason)
			return reason.code()
		}
		r.say("%v", err)
		return exitFailed
	}
	whats := []string{"SQLite (in process)"}
	for _, p := range provisions {
		whats = append(whats, p.what)
	}
	summary := "engines: " + strings.Join(whats, ", ")
	r.say("%s; ready in %.1f s", summary, time.Since(began).Seconds())
	if len(command) == 0 {
		return r.offer(ctx, provisions, environment)
	}
	code := r.command(ctx, provisions, environment, command)
	for _, p := range provisions {
		if p.server == nil {
			continue
		}
		if why := p.server.died(); why != "" {
			r.say("%s", why)
		}
	}
	if note != "" {
		r.say("%s", note)
	}
	r.say("%s", summary)
	return code
}

// atHand comes by the engines' programs, and starts none.
func (r *run) atHand(ctx context.Context, picked []*engine) int {
	for _, e := range picked {
		if os.Getenv(e.env) != "" && e.version == "" {
			continue
		}
		_, origin, written, err := r.programs(ctx, e)
		if err != nil {
			r.say("%v", err)
			return exitNoServer
		}
		r.say("%s %s is at hand (%s)", e.title, written, origin)
	}
	return 0
}

// offer prints the servers' URLs and the tools' folders for a shell, and keeps the servers until Ctrl-C.
func (r *run) offer(ctx context.Context, provisions []provision, environment []string) int {
	for _, p := range provisions {
		environment = append(environment, p.engine.env+"="+p.url)
	}
	for _, variable := range append(environment, authorityVariable+"="+r.trusted.file) {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Printf("export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	r.say("the servers stay until Ctrl-C")
	<-ctx.Done()
	return 0
}

// command runs argv with the servers' URLs and the tools' folders in its environment.
func (r *run) command(ctx context.Context, provisions []provision, environment, argv []string) int {
	cmd := &exec.Cmd{Env: append(os.Environ(), environment...), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	for _, p := range provisions {
		cmd.Env = append(cmd.Env, p.engine.env+"="+p.url)
	}
	cmd.Env = append(cmd.Env, authorityVariable+"="+r.trusted.file)
	k, err := r.keep(cmd, orders{Args: argv, Stop: syscall.SIGTERM})
	if err != nil {
		r.say("%v", err)
		return exitNotRun
	}
	select {
	case <-k.done:
		return k.code
	case <-ctx.Done():
	}
	k.stop()
	reason := new(ended)
	errors.As(context.Cause(ctx), reason) // nothing else ends ctx here
	r.say("%s was stopped: %v", argv[0], reason)
	return reason.code()
}

func stopAll(provisions []provision) {
	for _, p := range provisions {
		if p.server != nil {
			p.server.kept.stop()
		}
	}
}

// ended is why a run is to end before its command does.
type ended struct {
	signal syscall.Signal // 0: the parent process is gone
}

func (e ended) Error() string {
	if e.signal == 0 {
		return "the process that started the test servers has ended"
	}
	return e.signal.String()
}

func (e ended) code() int {
	if e.signal == 0 {
		return 128 + int(syscall.SIGHUP)
	}
	return 128 + int(e.signal)
}

// untilEnded returns a context that ends, with an ended as its cause, at a
// signal or when the parent process is gone: `go run` and make do not hand on
// every signal that ends them.
func untilEnded() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	parent := os.Getppid()
	go func() {
		poll := time.NewTicker(time.Second)
		defer poll.Stop()
		for {
			select {
			case s := <-signals:
				sig, _ := s.(syscall.Signal) // all signals are, on Unix
				cancel(ended{sig})
			case <-poll.C:
				if os.Getppid() != parent {
					cancel(ended{})
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
