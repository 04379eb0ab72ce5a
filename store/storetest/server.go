package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a program that listens while a test runs, such as Exim or PgBouncer.
type Server struct {
	Root    string   // the folder with the unpacked packages of the program; / if it is installed
	Program string   // its path below Root
	Args    []string // of the program
	Env     []string // added to the environment, if Root is not /
	Address string   // where it listens
}

// Start starts the server and waits until it listens. The server ends with the test. It also ends with
// this process, because that closes the pipe that the server's shell reads.
func (s Server) Start(t testing.TB) {
	t.Helper()
	end, err := s.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
}

// start starts the server for as long as this process lives, unless end is called.
func (s Server) start() (end func(), err error) {
	const untilTheEnd = `exec 3<&0; "$@" & p=$!; (read -r end <&3; kill $p) >/dev/null 2>&1 & wait $p`
	argv := append([]string{filepath.Join(s.Root, s.Program)}, s.Args...)
	cmd := exec.Command("/bin/sh", "-c", untilTheEnd, "sh")
	if s.Root != "/" {
		cmd.Env = append(os.Environ(), s.Env...)
		libraries := strings.Join(s.Libraries(), ":")
		if loaders, _ := filepath.Glob(filepath.Join(s.Root, "usr/lib/*-linux-gnu*/ld-linux-*.so.*")); len(loaders) > 0 { // the pattern is well-formed
			argv = append([]string{loaders[0], "--library-path", libraries}, argv...) // it has a C library of its own
		} else {
			cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libraries)
		}
	}
	cmd.Args = append(cmd.Args, argv...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	stop, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is stopped by a signal
	}()
	end = sync.OnceFunc(func() {
		_ = stop.Close()
		<-ended
	})
	for late := time.After(30 * time.Second); ; {
		conn, err := net.Dial("tcp", s.Address)
		if err == nil {
			_ = conn.Close()
			return end, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
			continue
		case <-ended:
		case <-late:
		}
		end()
		return nil, fmt.Errorf("%s does not listen: %w\n%s", filepath.Base(s.Program), err, log.Bytes())
	}
}

// Libraries returns the folders of shared libraries below Root.
func (s Server) Libraries() []string {
	folders, _ := filepath.Glob(filepath.Join(s.Root, "usr/lib/*-linux-gnu")) // the pattern is well-formed
	return folders
}

// FreePort returns a port of this machine on which nothing listens now. It is below the ports that
// systems give to connections, and to listeners that ask for any port. A server takes a while to
// listen, and no other test must get the port before.
func FreePort(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func freePort() (port string, err error) {
	for range 100 {
		port = strconv.Itoa(10_000 + rand.IntN(20_000))
		l, failed := net.Listen("tcp", "127.0.0.1:"+port)
		if err = failed; err == nil {
			return port, l.Close()
		}
	}
	return "", err
}
