//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// TestLambdaKilled: Lambda kills a process that is not ready at the deadline, here because the process got no CPU time.
// Another instance takes the run when its lease is over.
func TestLambdaKilled(t *testing.T) {
	c := onPostgres(t)
	c.ticker()
	c.slow()
	const state = "SELECT coalesce(max(r.state), '') FROM dbjobs.runs r JOIN dbjobs.jobs j ON j.id = r.job_id WHERE j.name = 'slow'"
	f, late := c.function(), make(chan time.Time)
	go func() {
		for s := ""; s != store.Running; time.Sleep(10 * time.Millisecond) {
			if err := c.sql.QueryRow(state).Scan(&s); err != nil {
				return // the invocation is then answered, which fails the test
			}
		}
		_ = f.cmd.Process.Signal(syscall.SIGSTOP) // the same
		close(late)
	}()
	if a := f.deliver("killed", "{}", ample, late); !a.killed {
		t.Fatalf("answered %+v:\n%s", a, f.log)
	}
	if s := c.text(state); s != store.Running {
		t.Fatalf("after the kill the run is %s", s)
	}
	c.exec("UPDATE dbjobs.runs SET lease_until = lease_until - interval '1 hour' WHERE state = 'running'")
	g := c.function()
	g.report(g.invoke("{}", ample))
	g.report(g.invoke("{}", ample))
	if s := c.text(state); s != store.Succeeded {
		t.Errorf("the run is %s:\n%s", s, g.log)
	}
	until(t, "a second is over", func() bool {
		g.report(g.invoke("{}", ample))
		return c.text("SELECT count(*) FROM effects") != "0"
	})
	c.nothingLost()
}
