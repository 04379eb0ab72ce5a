//go:build unix

package crash

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A process is stopped in the middle of a step, past its lease, and goes on later. So does a machine
// that was suspended, or a function whose sandbox was frozen. On a server, its run was delivered again
// in the meantime. Its late end is refused, and the ledger shows both deliveries. On SQLite the kernel
// knows that the process lives, and the run stays with it.
func TestFrozenProcess(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		slow := map[string]string{
			"sqlite":   "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000000) SELECT count(*) FROM c",
			"postgres": "UPDATE gate SET n = 0", // waits until the test opens the gate
			"mariadb":  "UPDATE gate SET n = 0",
		}[d.Engine]
		d.Exec(t, "CREATE TABLE effects (n int)")
		d.Exec(t, "CREATE TABLE gate (n int)")
		d.Exec(t, "INSERT INTO gate VALUES (1)")
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "job", Steps: []store.Step{ticktest.Step("slow", slow, "INSERT INTO effects VALUES (1)"), ticktest.Step("last", "INSERT INTO effects VALUES (10)")}}}})
		ticktest.Request(t, d, "job")

		barrier, open, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer barrier.Close()
		p := ticktest.Launch(t, ticktest.Child{URL: d.URL, Engine: d.Engine, Now: d.Clock.Now(), Holder: "the frozen one"}, barrier)
		p.Connected(t)
		goOn := func() error { return nil }
		if d.Engine != "sqlite" { // there, a gate would lock the whole file
			gate, err := d.SQL.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = gate.Rollback() }() // after Commit it does nothing
			if _, err := gate.Exec("UPDATE gate SET n = 2"); err != nil {
				t.Fatal(err)
			}
			goOn = gate.Commit
		}
		if err := open.Close(); err != nil {
			t.Fatal(err)
		}
		running := "SELECT count(*) FROM " + d.Table("runs") + " WHERE state = 'running'"
		for d.Int(t, running) == 0 {
			time.Sleep(time.Millisecond)
		}
		freeze(t, p.Process.Pid)
		if n := d.Int(t, running); n != 1 {
			t.Fatal("it had ended before it was frozen")
		}
		if err := goOn(); err != nil {
			t.Fatal(err)
		}
		d.Clock.Add(time.Minute)
		if r := ticktest.Run(t, d); r.Started != 0 {
			t.Fatalf("overtaken before its lease has ended: %+v", r)
		}
		d.Clock.Add(10 * time.Minute)
		mine := ticktest.Run(t, d)
		if err := p.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		late, err := p.Report()
		if err != nil {
			t.Fatal(err)
		}
		runs, err := d.Runs(t.Context(), store.RunFilter{Job: "job"})
		if err != nil || len(runs) != 1 || runs[0].State != store.Succeeded {
			t.Fatalf("%v: %+v", err, runs)
		}
		detail, err := d.Run(t.Context(), runs[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		tries := ""
		for _, a := range detail.Tries {
			tries += a.Holder[:min(len(a.Holder), 14)] + " " + a.StepName + " " + a.State + "\n"
		}
		if d.Engine == "sqlite" {
			if mine.Started != 0 || late.Succeeded != 1 || detail.Fence != 1 || tries != "the frozen one slow succeeded\nthe frozen one last succeeded\n" {
				t.Fatalf("meanwhile %+v; the frozen one %+v; fence %d\n%s", mine, late.Report, detail.Fence, tries)
			}
			return
		}
		if mine.Succeeded != 1 || late.Outdated != 1 || late.Succeeded+late.Failed != 0 {
			t.Errorf("meanwhile %+v; the frozen one %+v", mine, late.Report)
		}
		if detail.Fence != 2 || detail.Losses != 0 || tries != "the frozen one slow lost\nTestFrozenProc slow succeeded\nTestFrozenProc last succeeded\n" {
			t.Errorf("fence %d, lost %d times\n%s", detail.Fence, detail.Losses, tries)
		}
		if n := d.Int(t, "SELECT sum(n) FROM effects WHERE n > 1"); n != 10 {
			t.Errorf("the step after the refused end took effect for %d", n)
		}
	})
}

// freeze stops a child of this process, and returns when it stands still. A thread that the signal has not yet reached goes on.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
	for errors.Is(err, syscall.EINTR) {
		_, err = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
	}
	if err != nil || !status.Stopped() {
		t.Fatalf("wait until the process stands still: %v, status %d", err, status)
	}
}
