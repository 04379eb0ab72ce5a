//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	account  = "dbjobs"
	database = "dbjobs_test"

	initLimit  = 3 * time.Minute // seconds, unless the machine is very busy
	startLimit = time.Minute
)

// A server is one that this run starts.
type server struct {
	*engine
	inst     installation
	owner    *run
	dir      string // its folder, which it alone may enter
	password string
	port     int
	kept     *kept
}

// start makes a server's files from inst and starts it.
func (r *run) start(ctx context.Context, e *engine, inst installation) (*server, error) {
	s := &server{engine: e, inst: inst, owner: r, dir: filepath.Join(r.dir, e.name), password: password()}
	if err := r.mkdir(s.dir); err != nil {
		return nil, err
	}
	if err := s.certify(r.trusted); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, initLimit)
	defer cancel()
	if err := e.init(limited, s); err != nil {
		return nil, fmt.Errorf("%s: no data folder could be made: %w", e.title, err)
	}
	// Between choosing a free port and listening on it another program may take it.
	const tries = 3
	var err error
	for range tries {
		if err = s.launch(ctx); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			break
		}
	}
	return s, err
}

// launch starts the server's process on a free port and waits until it is ready.
func (s *server) launch(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.port = port
	log, err := os.Create(filepath.Join(s.dir, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close() // the server has its own by now

	cmd := &exec.Cmd{Env: append(s.environ(), s.exitAtOnce(ctx)...), Dir: s.dir, Stdout: log, Stderr: log}
	s.kept, err = s.owner.keep(cmd, orders{
		Args: s.inst.argv(s.inst.server, append(s.args(s), s.extra()...)...), User: s.owner.user, Stop: s.stop,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", s.title, err)
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !s.ready(s) {
		select {
		case <-tick.C:
		case <-s.kept.done:
			return fmt.Errorf("%s ended at its start:\n%s", s.title, s.logTail())
		case <-limited.Done():
			s.kept.stop()
			return fmt.Errorf("%s was not ready in time (%w):\n%s", s.title, context.Cause(limited), s.logTail())
		}
	}
	return nil
}

func (s *server) logTail() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "server.log"))
	if err != nil {
		return err.Error()
	}
	return tail(text)
}

// died says that the server has ended before it was stopped, with the end of its log; "": it has not. Whatever the tests
// lacked from then on is in their own failures: this is why.
func (s *server) died() string {
	select {
	case <-s.kept.done:
		return fmt.Sprintf("%s ended by itself, with %d, while it was used:\n%s", s.title, s.kept.code, s.logTail())
	default:
		return ""
	}
}

// run runs one of the engine's programs as the server's user. What it prints is
// shown only if it fails.
func (s *server) run(ctx context.Context, input string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = s.environ(), s.dir
	cmd.Stdin = strings.NewReader(input)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.owner.user.credential()}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // some are scripts
	return s.owner.combined(cmd)
}

// environ is all that a server and its tools know of this machine: nothing
// of the caller's settings (PGPORT, MYSQL_HOME, LC_ALL, TZ) reaches them.
func (s *server) environ() []string {
	env := []string{
		"PATH=" + filepath.Dir(s.inst.server) + ":" + filepath.Dir(s.inst.init) + ":/usr/bin:/bin:/usr/sbin:/sbin",
		"HOME=" + s.dir, "TMPDIR=" + s.dir, "LC_ALL=C", "TZ=UTC",
	}
	if len(s.inst.libs) > 0 && s.inst.loader == "" {
		env = append(env, "LD_LIBRARY_PATH="+strings.Join(s.inst.libs, ":"))
	}
	return env
}

// extra are arguments with which a server is to be started besides: those in its variable with _ARGS, between spaces.
func (s *server) extra() []string { return strings.Fields(os.Getenv(s.env + "_ARGS")) }

func (s *server) data() string    { return filepath.Join(s.dir, "data") }
func (s *server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// url is what the tests are given.
func (s *server) url() string {
	u := url.URL{
		Scheme: s.schemes[0], User: url.UserPassword(account, s.password), Host: s.address(),
		Path: database, RawQuery: s.query,
	}
	return u.String()
}

// write makes a file for the server's eyes only.
func (s *server) write(name, text string) error {
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return s.owner.user.own(file)
}

// named checks the server that the environment names, as far as that goes
// without speaking its language: the suite does the rest.
func (e *engine) named(text string) (where string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" { // err would show the password
		return "", fmt.Errorf("%s is not a URL of the form %s://user:password@host:port/database", e.env, e.schemes[0])
	}
	if !slices.Contains(e.schemes, u.Scheme) {
		return "", fmt.Errorf("%s begins with %s://, but %s is reached by %s://", e.env, u.Scheme, e.title, e.schemes[0])
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), e.usualPort)
	}
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return "", fmt.Errorf("%s names a server that does not answer: %w; start it, or unset the variable to have one started", e.env, err)
	}
	_ = conn.Close() // nothing was sent
	return address, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no port is free on 127.0.0.1: %w", err)
	}
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("a TCP listener without a TCP address")
	}
	return addr.Port, nil
}

// tail is the end of a program's output, which is where it says why it failed.
func tail(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	const most = 40
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return "    " + string(bytes.Join(lines, []byte("\n    ")))
}
