package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// dbjobs runs the program, and measures the time of the whole process.
func (b *bench) dbjobs(d *database, args ...string) (sample, error) {
	cmd := exec.CommandContext(b.ctx, b.program, append(args, "--database", d.url)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	peak := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	took := time.Since(began)
	if err != nil {
		return sample{}, fmt.Errorf("dbjobs %s: %w\n%s", args[0], err, out.Bytes())
	}
	return sample{took: took, processor: spent(cmd), peak: peak()}, nil
}

// spent returns the processor time of a process that has ended.
func spent(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// watchMemory measures the largest memory of a process until the process has ended. The answer of wait4 is of no
// use: it includes the memory that this program had when it forked. On other systems than Linux it finds nothing.
func watchMemory(pid int) (peak func() int64) {
	found := make(chan int64)
	stop := make(chan struct{})
	go func() {
		var most int64
		poll := time.NewTicker(5 * time.Millisecond)
		defer poll.Stop()
		for {
			select {
			case <-stop:
				found <- most
				return
			case <-poll.C:
			}
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // of a process that has ended: empty
			if m := highWater.FindSubmatch(text); m != nil {
				kB, _ := strconv.ParseInt(string(m[1]), 10, 64) // digits
				most = max(most, kB*1024)
			}
		}
	}()
	return func() int64 { close(stop); return <-found }
}

// jobs has the jobs of a database, each of which writes one row into the table effects.
type jobs struct {
	*database
	n     int
	queue string // empty: that of ticks
	more  string // keys of each job, as YAML between braces
}

// manifest writes a file for apply.
func (b *bench) manifest(j jobs) (file string, err error) {
	var text bytes.Buffer
	fmt.Fprintf(&text, "manifest: bench\njobs:%s\n", map[bool]string{true: " {}"}[j.n == 0])
	for i := range j.n {
		fmt.Fprintf(&text, "  job-%06d: {rule: 0 * * * *, sql: INSERT INTO effects (job) VALUES (%d)%s}\n", i, i, j.more)
	}
	file = filepath.Join(b.dir, "jobs.yaml")
	return file, os.WriteFile(file, text.Bytes(), 0o600)
}

// seed makes the database with the jobs, and plans them. Their next nominal time is the next full hour.
func (b *bench) seed(engine string, j jobs) (jobs, error) {
	var err error
	if j.database, err = b.fresh(engine); err != nil {
		return j, err
	}
	if j.queue != "" {
		j.more += ", queue: " + j.queue
	}
	file, err := b.manifest(j)
	if err != nil {
		return j, err
	}
	b.say("%s: %d jobs are applied", titles[engine], j.n)
	if _, err := b.dbjobs(j.database, "migrate"); err != nil {
		return j, err
	}
	if err := j.run(b.ctx, "CREATE TABLE effects (job bigint NOT NULL)"); err != nil {
		return j, err
	}
	for _, args := range [][]string{{"apply", "-f", file}, {"tick"}} {
		if _, err := b.dbjobs(j.database, args...); err != nil {
			return j, err
		}
	}
	return j, nil
}

// rewind makes all jobs due since the last full hour, as if they had never run.
func (j jobs) rewind(b *bench) error {
	hour := time.Now().Truncate(time.Hour)
	tables := []string{"effects", j.table("runs"), j.table("attempts"), j.table("gaps")}
	var sts []string
	for _, t := range tables {
		sts = append(sts, map[bool]string{true: "DELETE FROM ", false: "TRUNCATE TABLE "}[j.engine == "sqlite"]+t)
	}
	sts = append(sts, fmt.Sprintf("UPDATE %s SET next_run = %s, decided_through = %s, last_scheduled_for = NULL, last_run_id = NULL, last_state = NULL,"+
		" last_finished_at = NULL, last_success_at = NULL, cycles = 0, runs_made = 0",
		j.table("plans"), j.instant(hour), j.instant(hour.Add(-time.Hour))))
	switch j.engine {
	case "postgres":
		for _, t := range append(tables, "dbjobs.plans") {
			sts = append(sts, "VACUUM (FULL, ANALYZE) "+t)
		}
	case "mariadb":
		sts = append(sts, "ANALYZE TABLE "+j.table("plans")+", "+j.table("runs"))
	case "sqlite":
		sts = append(sts, "PRAGMA wal_checkpoint(TRUNCATE)", "ANALYZE")
	}
	return j.run(b.ctx, sts...)
}

// executed checks that each job has run once, and that everything is on record.
func (j jobs) executed(b *bench) error {
	for _, query := range []string{
		"SELECT count(DISTINCT job) FROM effects", "SELECT count(*) FROM effects",
		"SELECT count(DISTINCT job_id) FROM " + j.table("runs") + " WHERE state = 'succeeded' AND settled_at IS NOT NULL",
		"SELECT count(*) FROM " + j.table("attempts") + " WHERE state = 'succeeded'",
	} {
		if n, err := j.int(b.ctx, query); err != nil || n != j.n {
			return fmt.Errorf("%s: %d, want %d (%v)", query, n, j.n, err)
		}
	}
	return nil
}

// whole returns a contender that runs the program once over the jobs, all of which are due.
func (j jobs) whole(b *bench, name, peer string, args ...string) *contender {
	return &contender{
		name: name, peer: peer,
		prepare: func() error { return j.rewind(b) },
		run: func() (sample, error) {
			s, err := b.dbjobs(j.database, args...)
			if err == nil {
				err = j.executed(b)
			}
			return s, err
		},
	}
}
