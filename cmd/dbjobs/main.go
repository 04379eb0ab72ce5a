// Command dbjobs runs scheduled jobs whose definitions, schedules and history live in a database.
//
// It is the only command of the module. It holds flags, settings, output and exit codes, and nothing else. A
// process does one thing and exits. A Lambda function and dbjobs serve are the exception: they do one thing for
// each invocation. The process closes all that it opened, also when a signal stops it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/logs"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/secret"
)

// gcPercent is the default of GOGC for a command that runs passes. A tick lives for seconds, so collecting less often
// makes a pass over many due jobs 25 % faster. Other commands have the default of Go: they hold in memory all that they
// show, and with less collecting, they would take twice as much. The variable GOGC takes precedence.
const gcPercent = 400

// passMemory is the default of GOMEMLIMIT for a command that runs passes. With it, the process takes less than
// 64 MB, however many jobs are due, and however many runs are in a queue: near this limit, the collector runs
// before gcPercent asks for it. A pass needs far less at a time. Other commands have no limit.
const passMemory = 32 << 20

func main() {
	keepPrivate()
	log.SetOutput(io.Discard) // net/http prints there what a server sends beside its answer, which may be a secret that it got
	if isPass(os.Args[1:]) {
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(gcPercent)
		}
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(passMemory)
		}
	}
	if tz := os.Getenv("TZ"); tz != "" {
		time.Local, noZone = zoneOf(tz, time.Local)
	}
	os.Exit(run(listen(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv, os.Environ()))
}

// listen returns a context that ends when a signal asks the program to end. The first SIGINT or SIGTERM asks, the second
// one kills. A terminal that closes sends SIGHUP, often several times, so each of these only asks; under nohup, none does.
//
// A pass goes on if the reader of its output is gone: see outlivePipe. It ends the runs that it executes.
func listen() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if !signal.Ignored(syscall.SIGHUP) {
		ctx, _ = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	if isPass(os.Args[1:]) {
		outlivePipe()
	}
	return ctx
}

// outlivePipe lets the program go on if the reader of its output is gone, and report at its end that the output was not
// written. This is for what has something to do after it has printed; other commands end with SIGPIPE, as a pipe expects it.
// A channel, and not signal.Ignore, because programs would inherit that the signal is ignored.
func outlivePipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// isPass reports whether a command line runs one pass or several. The command line of a Lambda function is
// empty. Only the first word names a command: others are names and values, and may read like one.
func isPass(args []string) bool {
	root := &cobra.Command{}
	newCLI(nil, io.Discard, io.Discard, func(string) (string, bool) { return "", false }).anywhere(root)
	named := words(root, args)
	return len(args) == 0 || len(named) > 0 && slices.Contains([]string{"tick", "work", "serve"}, named[0])
}

// run is the whole program. It returns the exit code. If the program is the bootstrap of a Lambda function, it
// serves invocations until the platform ends the process. environ has NAME=VALUE of all variables: for
// secrets of any name, for the programs that set alarms, and to find mistyped names. All other values come from env.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env settings.Lookup, environ []string) int {
	if api, _ := env(runtimeAPIVariable); api != "" && len(args) == 0 {
		return lambdaMain(ctx, stderr, env, environ)
	}
	c := newCLI(stdin, stdout, stderr, env)
	c.environ = environ
	err := c.execute(ctx, args)
	code := c.exitCode(ctx, err)
	c.unjudged(code, err)
	c.complain(code, err)
	return code
}

func newCLI(stdin io.Reader, stdout, stderr io.Writer, env settings.Lookup) *cli {
	return &cli{stdin: stdin, stdout: report.To(stdout, env), answers: stdout, stderr: stderr, env: env,
		secrets: &secret.Known{}, given: &secret.Known{}, began: time.Now(), logFormat: logs.Default(logs.Lookup(env))}
}

// execute runs one command line.
func (c *cli) execute(ctx context.Context, args []string) error {
	c.completing = len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
	c.notice(args)
	c.words = args
	root := c.root()
	root.SetArgs(args)
	var lost error // set when help is asked for a command that does not exist
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if rest := cmd.Flags().Args(); cmd.HasSubCommands() && len(rest) > 0 {
			lost = unknownCommand(cmd, rest)
			return
		}
		help(cmd, args)
	})
	cmd, err := root.ExecuteContextC(ctx)
	c.ran, err = cmd, errors.Join(err, lost)
	switch flushed := c.stdout.Flush(); {
	case flushed != nil && (err == nil || !c.found || exitCode(ctx, err) == exitJobFailed): // output that was not written is a failure
		if c.told || !c.found {
			err = nil
		}
		err, c.told = errors.Join(err, fmt.Errorf("writing the output: %w", flushed)), false
	case err != nil && !c.found:
		err = c.misused(root, args, err)
	}
	return err
}

// cli is one invocation.
type cli struct {
	stdin   io.Reader
	stdout  *report.Output // data
	answers io.Writer      // stdout without a buffer, for dialogues in which each line must appear at once
	stderr  io.Writer      // messages
	env     settings.Lookup
	environ []string // NAME=VALUE of all variables
	began   time.Time

	databases  []string // --database
	chosen     *choice  // the database that this invocation is for, where there are several; nil: there is one
	logFormat  string   // --log-format
	asJSON     bool     // --json
	dryRun     bool     // --dry-run of a command that changes a definition in place
	utc        bool     // --utc
	who        store.Author
	db         settings.Database
	opened     time.Time      // when the connection to it was made
	settings   *host.Settings // the settings of the host; nil until a caller needs them
	secrets    *secret.Known  // secrets among the arguments and variables, wherever they stand
	given      *secret.Known  // secrets that this process gave to steps, whichever database these are in
	found      bool           // a command was found and its flags are valid: errors are the command's own
	ran        *cobra.Command // the command that was asked for
	words      []string       // the arguments that may still name a command that was not made yet
	completing bool           // the shell asks for completions of a command line
	rung       bool           // the alarm for what the command has changed is set
	told       bool           // the error that ends the command is already in a log line

	examined   bool        // mistyped names of variables are reported already
	warm       *warm       // set where the process serves several commands
	sealed     bool        // a caller from outside gave the command: it reads no file and no variable for that caller
	invocation []slog.Attr // the platform's names for this invocation
	// whole is the budget of a request that does not wait for its turn; 0: this is no request. What a request has waited is no part
	// of its budget, but its alarm, too, has rung that much earlier.
	whole time.Duration
}

// do makes fn the body of the command. An error from here on is a failure of the command. An error before is a
// mistake in the command line.
func (c *cli) do(fn func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := c.fromEnvironment(cmd); err != nil {
			return err
		}
		if c.utc {
			report.In(time.UTC)
		}
		if err := logs.Check(c.logFormat); err != nil {
			c.logFormat = logs.Text
			return badInput("--log-format: %v", err)
		}
		report.ForPrograms(c.asJSON || c.logFormat != logs.Text)
		c.found = true
		if rings(cmd) || cmd.Name() == "migrate" { // the alarm comes after the output, and so do the owners
			outlivePipe()
		}
		if err := c.misplaced(cmd, args); err != nil {
			return err
		}
		if err := emptied(cmd); err != nil {
			return err
		}
		c.mistyped()
		return fn(cmd, args)
	}
}

var errInterrupted = errors.New("interrupted")
