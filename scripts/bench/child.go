package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// resident measures a peer that runs as a process of its own. The child says "ready" once it is connected, begins
// when it reads a line, and says "done" when all jobs are executed and on record. Then it ends.
func (b *bench) resident(argv ...string) (s sample, err error) {
	cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return s, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	peak := watchMemory(cmd.Process.Pid)
	lines := bufio.NewScanner(out)
	if err = expect(lines, "ready"); err == nil {
		began := time.Now()
		fmt.Fprintln(in, "go")
		err = expect(lines, "done")
		s.took = time.Since(began)
	}
	in.Close()
	_, _ = io.Copy(io.Discard, out) // a child that prints more must not block
	if ended := cmd.Wait(); err == nil {
		err = ended
	}
	s.processor, s.peak = spent(cmd), peak()
	if err != nil {
		return s, fmt.Errorf("%w\n%s", err, said.String())
	}
	return s, nil
}

func expect(lines *bufio.Scanner, line string) error {
	if !lines.Scan() {
		return fmt.Errorf("ended before it said %q: %w", line, lines.Err())
	}
	if lines.Text() != line {
		return fmt.Errorf("said %q, not %q", lines.Text(), line)
	}
	return nil
}

// awaitGo is the side of the child.
func awaitGo() error {
	fmt.Println("ready")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}
