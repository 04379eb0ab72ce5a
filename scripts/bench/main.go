package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A bench is one use of this program.
type bench struct {
	ctx     context.Context
	program string // dbjobs, built as a release
	dir     string // the folder of all files except those of the servers
	cache   string // fetched peers stay here
	rounds  int
	jobs    int // due at one instant
	many    int // for deciding and applying
	ready   int // for several ticks at once
	engines []string
	began   time.Time
	closers []func()

	graphile string // the folder of graphile-worker; empty: it was not used
}

// A question is what a table answers. fill adds the contenders to it.
type question struct {
	name  string
	about string
	fill  func(*bench, *table) error
}

// In the order in which the tables are made.
var questions = []question{
	{"noop", "a tick with nothing due among 1,000 jobs, whole process", noop},
	{"due", "jobs due at one instant, one INSERT each", due},
	{"work", "queued runs of one INSERT each, taken one by one", work},
	{"decide", "due jobs decided, none executed", decide},
	{"ticks", "ready runs of one INSERT each, by several ticks", ticks},
	{"apply", "apply", apply},
	{"cost", "a tick with small jobs due, on PostgreSQL: what terraform/COST.md reckons with", cost},
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == riverChild {
		exit(runRiver(os.Args[2:]))
	}
	var b bench
	var only string
	flag.StringVar(&only, "only", "", "the tables to make, such as noop,due; all by default")
	flag.StringVar(&b.program, "program", "", "the dbjobs to measure; by default it is built from this tree")
	flag.StringVar(&b.cache, "cache", "", "folder for fetched peers; by default one that goes at the end")
	flag.IntVar(&b.rounds, "rounds", 5, "how often each contender runs")
	flag.IntVar(&b.jobs, "jobs", 2000, "jobs due at one instant")
	flag.IntVar(&b.many, "many", 20_000, "jobs to decide, and to apply")
	flag.IntVar(&b.ready, "ready", 2000, "ready runs for several ticks at once")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: bench [flags]; the servers are those that the variables of scripts/testservers name\n\ntables:")
		for _, q := range questions {
			fmt.Fprintf(os.Stderr, "  %-7s %s\n", q.name, q.about)
		}
		fmt.Fprintln(os.Stderr, "\nflags:")
		flag.PrintDefaults()
	}
	flag.Parse()
	var wanted []string
	for name := range strings.SplitSeq(only, ",") {
		known := slices.ContainsFunc(questions, func(q question) bool { return q.name == name })
		if name != "" && !known {
			fmt.Fprintf(os.Stderr, "bench: there is no table %q\n", name)
			flag.Usage()
			os.Exit(2)
		}
		if name != "" {
			wanted = append(wanted, name)
		}
	}
	b.engines = slices.DeleteFunc([]string{"postgres", "mariadb", "sqlite"}, func(engine string) bool {
		of := os.Getenv("DBJOBS_TEST_DATABASES")
		return of != "" && !slices.Contains(strings.Split(of, ","), engine)
	})
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	b.ctx, b.began = ctx, time.Now()
	err := b.all(wanted)
	end()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// all makes the wanted tables, and leaves nothing behind.
func (b *bench) all(wanted []string) (err error) {
	if b.dir, err = os.MkdirTemp("", "dbjobs-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.cache == "" {
		b.cache = b.dir
	}
	if b.program == "" {
		b.program = filepath.Join(b.dir, "dbjobs")
		build := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", b.program, "./cmd/dbjobs")
		build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("dbjobs is not built: %w\n%s", err, out)
		}
	}
	fmt.Printf("%s, %s, median of %d rounds\n", b.began.UTC().Format("2006-01-02"), machine(), b.rounds)
	for _, q := range questions {
		if len(wanted) > 0 && !slices.Contains(wanted, q.name) {
			continue
		}
		t := &table{title: q.about, unit: time.Second}
		err := q.fill(b, t)
		if err == nil {
			err = t.measure(b)
		}
		b.close()
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		t.print(os.Stdout)
	}
	fmt.Printf("\n%s\n", strings.Join(b.versions(), ", "))
	return nil
}

// later runs fn at the end of the table, after the functions that were given after it.
func (b *bench) later(fn func()) { b.closers = append(b.closers, fn) }

func (b *bench) close() {
	for _, fn := range slices.Backward(b.closers) {
		fn()
	}
	b.closers = nil
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: %4.0fs "+format+"\n", append([]any{time.Since(b.began).Seconds()}, args...)...)
}

// machine says which machine this is, and its load.
func machine() string {
	what := fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				what += ", " + strings.TrimSpace(value)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		what += ", load " + strings.Fields(string(text))[0] + " at the start"
	}
	return what
}
