package main

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
)

// TestCommandInDoubt: the server goes, or the user interrupts, while the COMMIT of a command is under way. The command says that
// its change may be done. Otherwise its user would request the same run twice.
func TestCommandInDoubt(t *testing.T) {
	onServers(t, func(t *testing.T, c *cloud) {
		p, env := c.behindProxy(t)
		c.dbjobs("job", "create", "job", "--sql", "SELECT 1")
		for _, x := range []struct {
			name  string
			stop  func(interrupt func())
			code  int
			doubt bool
		}{
			{"the server goes", func(func()) { p.drop() }, exitDatabase, true},
			{"an interrupt", func(interrupt func()) { p.silence(); interrupt() }, exitInterrupted, true},
			{"no more than an interrupt before", nil, exitInterrupted, false},
		} {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var stopped atomic.Bool
			p.sent = func(b []byte) {
				switch b = bytes.TrimRight(bytes.ToLower(b), "\x00"); {
				case x.stop != nil && bytes.HasSuffix(b, []byte("commit")) && !stopped.Swap(true):
					x.stop(interrupt)
				case x.stop == nil && bytes.Contains(b, []byte("insert into")):
					interrupt()
				}
			}
			var talk told
			code := run(ctx, []string{"job", "run-now", "job"}, strings.NewReader(""), &talk, &talk, env, nil)
			if doubt := strings.Contains(talk.String(), "it may be done, or not"); code != x.code || doubt != x.doubt {
				t.Errorf("%s: %d: %s", x.name, code, &talk)
			}
		}
	})
}
