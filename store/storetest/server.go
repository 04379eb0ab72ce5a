package storetest

import (
	"bytes"
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
	Root    string   // the folder with the unpacked packages of the program; / where it is installed
	Program string   // its path below Root
	Args    []string // of the program
	Env     []string // beside the environment, where Root is not /
	Address string   // where it listens
}

// Start starts the server and waits until it listens. The server ends with the test, and with this
// process, whose end closes the pipe that its shell reads.
func (s Server) Start(t testing.TB) {
	t.Helper()
	const untilTheEnd = `exec 3<&0; "$@" & p=$!; (read -r end <&3; kill $p) >/dev/null 2>&1 & wait $p`
	cmd := exec.Command("/bin/sh", append([]string{"-c", untilTheEnd, "sh", filepath.Join(s.Root, s.Program)}, s.Args...)...)
	if s.Root != "/" {
		cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(s.Libraries(), ":")), s.Env...)
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	stop, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is stopped by a signal
	}()
	end := sync.OnceFunc(func() {
		_ = stop.Close()
		<-ended
	})
	t.Cleanup(end)
	for late := time.After(30 * time.Second); ; {
		conn, err := net.Dial("tcp", s.Address)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
			continue
		case <-ended:
		case <-late:
		}
		end()
		t.Fatalf("%s does not listen: %v\n%s", filepath.Base(s.Program), err, log.Bytes())
	}
}

// Libraries are the folders of shared libraries below Root.
func (s Server) Libraries() []string {
	folders, _ := filepath.Glob(filepath.Join(s.Root, "usr/lib/*-linux-gnu")) // the pattern is well-formed
	return folders
}

// FreePort is a port of this machine on which nothing listens now. It is below those that systems give to connections, and
// to listeners without a port of their own: a server takes a while to listen, and another test must not come first.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}
