package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// A pass uses less than 64 MB, whatever the number of due jobs. The test runs the program as it is released, over jobs
// that nobody executes.
func TestMemoryOfAPass(t *testing.T) {
	t.Parallel()
	built(t)
	program, err := bootstrap()
	if err != nil {
		t.Fatal(err)
	}
	engines, jobs := []string{"sqlite"}, 5000
	if prove.Whole() {
		engines, jobs = storetest.Engines(t), 1_000_000
	}
	for _, e := range engines {
		t.Run(e, func(t *testing.T) {
			d := storetest.Open(t, e, store.Options{})
			dueOnce(t, d, jobs)
			for made := 0; made < jobs; {
				peak := peakMemory(t, program, d.URL)
				before := made
				made = d.Int(t, "SELECT count(*) FROM "+d.Table("runs"))
				if t.Logf("%d runs made, %d MB", made-before, peak>>20); peak == 0 || peak >= 64<<20 {
					t.Errorf("%d runs were made in %d MB", made-before, peak>>20)
				}
				if made == before {
					t.Fatalf("only %d of %d jobs have a run", made, jobs)
				}
			}
		})
	}
}

// So does a pass that makes up for the runs of hours, many of each job.
func TestMemoryOfACatchUp(t *testing.T) {
	t.Parallel()
	built(t)
	program, err := bootstrap()
	if err != nil {
		t.Fatal(err)
	}
	engines, jobs, each := []string{"sqlite"}, 1000, 100
	if prove.Whole() {
		engines, jobs = storetest.Engines(t), 4000
	}
	for _, e := range engines {
		t.Run(e, func(t *testing.T) {
			d := storetest.Open(t, e, store.Options{})
			dueSince(t, d, jobs, time.Now().UTC().Truncate(time.Second).Add(-3*time.Hour), "every 1m")
			d.Exec(t, fmt.Sprintf("UPDATE %s SET missed = 'all', missed_limit = %d", d.Table("jobs"), each))
			peak := peakMemory(t, program, d.URL)
			if t.Logf("%d MB", peak>>20); peak == 0 || peak >= 64<<20 {
				t.Errorf("the catch-up took %d MB", peak>>20)
			}
			if made := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")); made != jobs*each {
				t.Errorf("%d runs were made", made)
			}
		})
	}
}

// So does a pass that settles an end beside a long queue of the same job.
func TestMemoryOfABacklog(t *testing.T) {
	t.Parallel()
	built(t)
	program, err := bootstrap()
	if err != nil {
		t.Fatal(err)
	}
	engines, runs := []string{"sqlite"}, 50_000
	if prove.Whole() {
		engines, runs = storetest.Engines(t), 200_000
	}
	for _, e := range engines {
		t.Run(e, func(t *testing.T) {
			d := storetest.Open(t, e, store.Options{})
			dueOnce(t, d, 1)
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET overlap = 'allow', max_running = 1000000")
			peakMemory(t, program, d.URL)
			insertRuns(t, d, runs, "1", "'queued', NULL")
			d.Exec(t, "UPDATE "+d.Table("runs")+" SET state = 'succeeded', started_at = created_at, finished_at = created_at WHERE number = 1")
			peak := peakMemory(t, program, d.URL)
			if t.Logf("%d MB", peak>>20); peak == 0 || peak >= 64<<20 {
				t.Errorf("an end beside a backlog took %d MB", peak>>20)
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE state = 'succeeded' AND settled_at IS NULL"); n != 0 {
				t.Errorf("%d ends are not settled", n)
			}
		})
	}
}

// So does a pass after a pause of many jobs for which runs wait.
func TestMemoryOfAPause(t *testing.T) {
	t.Parallel()
	built(t)
	program, err := bootstrap()
	if err != nil {
		t.Fatal(err)
	}
	engines, jobs, each := []string{"sqlite"}, 1000, 60
	if prove.Whole() {
		engines, each = storetest.Engines(t), 200
	}
	for _, e := range engines {
		t.Run(e, func(t *testing.T) {
			d := storetest.Open(t, e, store.Options{})
			dueOnce(t, d, jobs)
			d.Exec(t, "UPDATE "+d.Table("jobs")+" SET tags = '[\"etl\"]'")
			peakMemory(t, program, d.URL)
			insertRuns(t, d, jobs*each, fmt.Sprintf("(i - 1) %% %d + 1", jobs), "'waiting', 'predecessor'")
			d.Exec(t, "INSERT INTO "+d.Table("pauses")+" (scope, subject) VALUES ('tag', 'etl')")
			peak := peakMemory(t, program, d.URL)
			if t.Logf("%d MB", peak>>20); peak == 0 || peak >= 64<<20 {
				t.Errorf("the pause took %d MB", peak>>20)
			}
			if n := d.Int(t, "SELECT COUNT(*) FROM "+d.Table("runs")+" WHERE held_by = 'pause'"); n < jobs*each {
				t.Errorf("%d runs are held", n)
			}
		})
	}
}

// insertRuns makes requested runs in a queue that nobody serves, with the numbers from 2 on.
func insertRuns(t *testing.T, d *storetest.DB, n int, job, state string) {
	t.Helper()
	id := map[string]string{"sqlite": "printf('00000000-0000-7000-8000-%012d', i)", "mariadb": "CONCAT('00000000-0000-7000-8000-', LPAD(i, 12, '0'))",
		"postgres": "CAST('00000000-0000-7000-8000-' || LPAD(CAST(i AS text), 12, '0') AS uuid)"}[d.Engine]
	name := map[string]string{"sqlite": "'now:' || i", "mariadb": "CONCAT('now:', i)", "postgres": "'now:' || i"}[d.Engine]
	d.Exec(t, strings.ReplaceAll(fmt.Sprintf(`INSERT INTO %s (id, job_id, number, occurrence, state, held_by, queue, ready_at, created_at)
		SELECT %s, %s, i + 1, %s, %s, 'nobody', AT, AT FROM %s`, d.Table("runs"), id, job, name, state, storetest.Numbers(n)),
		"AT", "(SELECT MIN(created_at) FROM "+d.Table("jobs")+" j)"))
	d.Exec(t, "UPDATE "+d.Table("plans")+" SET runs_made = "+fmt.Sprint(n+1))
}

// dueOnce makes jobs that are each due once, an hour ago, in a queue that nobody serves.
func dueOnce(t *testing.T, d *storetest.DB, jobs int) {
	t.Helper()
	hour := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	dueSince(t, d, jobs, hour.Add(-time.Minute), "at "+hour.Format(time.RFC3339))
}

// dueSince makes jobs that have been due since an instant, by one schedule with this rule, in a queue that nobody serves.
func dueSince(t *testing.T, d *storetest.DB, jobs int, since time.Time, rule string) {
	t.Helper()
	made := "'" + since.Format(map[string]string{
		"sqlite": "2006-01-02T15:04:05.000000Z", "mariadb": "2006-01-02 15:04:05.000000", "postgres": "2006-01-02 15:04:05.000000+00"}[d.Engine]) + "'"
	text := func(i string) string {
		return map[string]string{"sqlite": i + "||''", "mariadb": "CONCAT(" + i + ")", "postgres": i + "::text"}[d.Engine]
	}
	for _, insert := range []string{
		"schedules (id, name, rule, created_at, changed_at) VALUES (1, 'often', '" + rule + "', " + made + ", " + made + ")",
		"jobs (id, name, queue, created_at, changed_at) SELECT i, " + text("i") + ", 'nobody', " + made + ", " + made + " FROM NUMBERS",
		"job_schedules (job_id, schedule_id, created_at) SELECT i, 1, " + made + " FROM NUMBERS",
	} {
		d.Exec(t, strings.ReplaceAll("INSERT INTO "+d.Table("")+insert, "NUMBERS", storetest.Numbers(jobs)))
	}
}

// peakMemory runs a tick, and returns the largest resident memory that it had, in bytes. The resource usage of the
// process is a different number: it begins with the memory of this process when it started the program.
func peakMemory(t *testing.T, program, url string) (peak int64) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, "tick", "--database", url)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = []string{"PATH=/usr/bin:/bin"}, t.TempDir(), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	status := filepath.Join("/proc", fmt.Sprint(cmd.Process.Pid), "status")
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			return peak
		case <-poll.C:
			text, _ := os.ReadFile(status) // of a process that has ended: nothing
			_, after, _ := bytes.Cut(text, []byte("VmHWM:"))
			var kB int64
			if _, err := fmt.Sscan(string(after), &kB); err == nil {
				peak = max(peak, kB<<10)
			}
		}
	}
}
