//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The launcher calls itself to keep and to sweep: in these tests that is the
// test's own program.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == keepCommand || os.Args[1] == sweepCommand) {
		main()
	}
	// A program with the race detector sleeps for a second before it exits.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// No server is started here: the suite that runs under the launcher shows that
// those work.
func TestExitCodeIsTheCommands(t *testing.T) {
	for _, c := range []struct {
		name      string
		databases string
		args      []string
		want      int
	}{
		{"command succeeds", "sqlite", []string{"--", "true"}, 0},
		{"command fails", "sqlite", []string{"--", "sh", "-c", "exit 7"}, 7},
		{"command is killed", "sqlite", []string{"--", "sh", "-c", "kill -KILL $$"}, 137},
		{"command is not there", "sqlite", []string{"--", "/nowhere/to/be/found"}, exitNotRun},
		{"no command", "sqlite", nil, exitUsage},
		{"command and print", "sqlite", []string{"-print", "--", "true"}, exitUsage},
		{"unknown engine", "sqlite,oracle", []string{"--", "true"}, exitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("DBJOBS_TEST_DATABASES", c.databases)
			if got := launcher(c.args); got != c.want {
				t.Errorf("launcher(%q) = %d, want %d", c.args, got, c.want)
			}
		})
	}
}

func TestMissingServerFails(t *testing.T) {
	t.Setenv("DBJOBS_TEST_DATABASES", "postgres")
	t.Setenv("DBJOBS_TEST_POSTGRES", "")
	t.Setenv("DBJOBS_TEST_FETCH", "1")
	t.Setenv("PATH", t.TempDir()) // no apt-get
	if got := launcher([]string{"--", "/bin/sh", "-c", "exit 0"}); got != exitFailed {
		t.Errorf("without a server the launcher ended with %d, want %d", got, exitFailed)
	}
}

func TestKeeperStopsWhatItsChildStarted(t *testing.T) {
	r, err := newRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, printed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	k, err := r.keep(&exec.Cmd{Env: os.Environ(), Stdout: printed}, orders{
		Args: []string{"sh", "-c", "sleep 60 & echo started; wait"},
		Stop: syscall.SIGTERM,
	})
	if err := errors.Join(err, printed.Close()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	k.stop()
	if want := 128 + int(syscall.SIGTERM); k.code != want {
		t.Errorf("the keeper ended with %d, want %d", k.code, want)
	}
	// The output ends when the last process that could write it has ended.
	if err := out.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the keeper's end the output gave %v, want its end: the child's child lives", err)
	}
	r.close()
	if _, err := os.Stat(r.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the run is still there: %v", err)
	}
}

// The launcher's death is the closing of its files, for keepers and sweeper.
func TestFolderIsSweptAfterTheLastKeeper(t *testing.T) {
	r, err := newRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k, err := r.keep(&exec.Cmd{Env: os.Environ()}, orders{Args: []string{"sleep", "60"}, Stop: syscall.SIGTERM})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.alive.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.dir); err != nil {
		t.Errorf("the folder went before its last user: %v", err)
	}
	k.stop()
	if err := r.sweeper.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(r.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the run is still there: %v", err)
	}
}

func TestNamedServerErrorsHideThePassword(t *testing.T) {
	for _, text := range []string{
		"postgres://me:hunter2@127.0.0.1:1/x",
		"mysql://me:hunter2@127.0.0.1:1/x",
		"postgres://me:hunter2@[::1:5/%zz",
		"me:hunter2@tcp(127.0.0.1)/x",
	} {
		_, err := postgres.named(text)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), postgres.env) {
			t.Errorf("named(%q): %v: want an error with the variable and without the password", text, err)
		}
	}
}

func TestPickTakesLibrariesButNotTheMachines(t *testing.T) {
	simulation := "Reading package lists...\n" +
		"Inst libc6 (2.36-9 Debian:12/stable [amd64])\nInst libc-bin (2.36-9 x)\nInst libc-ares2 (1.18 x)\nInst libpq5 (15.18 Debian:12/stable [amd64])\n" +
		"Inst libperl5.36 (5.36 x)\nInst libdbi-perl (1 x)\nInst libllvm14 (14 x)\nInst perl (5.36 x)\n" +
		"Inst postgresql-15 (15.18 x)\nInst postgresql (15 x)\nInst mariadb-server-core (10.11 x)\nInst mysql-server-core (9.7 x)\nConf libpq5 (15.18 x)\n"
	for _, c := range []struct {
		engine *engine
		want   []string
	}{
		{postgres, []string{"libc-ares2", "libpq5", "postgresql-15"}},
		{mariadb, []string{"libc-ares2", "libpq5", "mariadb-server-core"}},
		{mysql, []string{"libc6", "libc-ares2", "libpq5", "mysql-server-core"}},
	} {
		if got := pick([]byte(simulation), c.engine.packages, c.engine.release != ""); !slices.Equal(got, c.want) {
			t.Errorf("%s: picked %q, want %q", c.engine.name, got, c.want)
		}
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)":                                "15.18",
		"mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu on x86_64 (Debian 12)": "10.11.14",
		"/usr/sbin/mysqld  Ver 8.0.46-0ubuntu0.24.04.1 for Linux on x86_64 ((Ubuntu))":        "8.0.46",
	} {
		if _, got, ok := parseVersion(text); got != want || !ok {
			t.Errorf("parseVersion(%q) = %q, %v, want %q", text, got, ok, want)
		}
	}
	if !(version{9, 6}).less(version{12, 0}) || (version{12, 0}).less(version{12, 0}) || !(version{10, 5}).less(version{10, 6}) {
		t.Error("versions are not ordered by number")
	}
}

// Whatever a test lacks after its server has ended says nothing of why: the launcher does.
func TestServerThatDiesIsNamed(t *testing.T) {
	r, err := newRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &server{engine: mariadb, owner: r, dir: t.TempDir()}
	if err := os.WriteFile(s.dir+"/server.log", []byte("got signal 11\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.kept, err = r.keep(&exec.Cmd{Env: os.Environ()}, orders{Args: []string{"sh", "-c", "read line; kill -SEGV $$"}, Stop: syscall.SIGTERM})
	if err != nil {
		t.Fatal(err)
	}
	<-s.kept.done
	if why := s.died(); !strings.Contains(why, "MariaDB ended by itself, with 139,") || !strings.Contains(why, "got signal 11") {
		t.Errorf("%q", why)
	}
	if s.kept, err = r.keep(&exec.Cmd{Env: os.Environ()}, orders{Args: []string{"sleep", "60"}, Stop: syscall.SIGTERM}); err != nil {
		t.Fatal(err)
	}
	if why := s.died(); why != "" {
		t.Errorf("it lives: %q", why)
	}
	s.kept.stop()
	r.close()
}
