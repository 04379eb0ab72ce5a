//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

const (
	cronMinutes = 3
	cronURLFile = "/etc/dbjobs/database-url" // of scripts/triggers/crontab
	cronLine    = `* * * * * /usr/local/bin/dbjobs tick --quiet --startup-id "$(cat /proc/sys/kernel/random/boot_id)"` + "\n"
)

// All times of the first two must run, also if the runs of one minute have not ended when the next one comes.
const cronJobs = `
jobs:
  minutely: {rule: "* * * * *", missed: all, overlap: wait-all, sql: INSERT INTO effects VALUES ('minutely'), retry: {attempts: 3, backoff: 1s}}
  often: {rule: every 10s, missed: all, overlap: wait-all, sql: INSERT INTO effects VALUES ('often'), retry: {attempts: 3, backoff: 1s}}
  newest: {rule: every 15s, sql: SELECT 1}
  boot: {on_startup: true, sql: INSERT INTO effects VALUES ('boot')}
`

// cronLong takes longer than a minute, so that its pass overlaps the next ones. SQLite has no statement that waits. The
// job is due every other minute: otherwise its pass would never find that no run is left.
const cronLong = `
  long: {rule: "*/2 * * * *", sql: SELECT pg_sleep(70)}
`

// A crontabPart is the crontab of scripts/triggers for one database.
type crontabPart struct {
	name    string
	url     string // for cron's jobs
	outside string // for this test
	lines   int    // the number of lines that start at the same time each minute
	from    map[string]time.Time
}

// TestCron: a real cron, with the crontab of scripts/triggers, starts real ticks for three minutes. Each nominal time
// is decided once, also if several passes start at the same time and one takes longer than a minute. There is a mail if
// something is wrong, and otherwise none. The test takes four minutes and needs root, so `make cron` runs it, which
// provides a cron.
func TestCron(t *testing.T) {
	installed := os.Getenv("DBJOBS_TEST_CRON")
	if installed == "" {
		t.Skip("takes four minutes; run make cron")
	}
	t.Parallel()
	cell := newCronCell(t, installed)
	parts := []*crontabPart{
		{name: "sqlite", url: "sqlite:/data/one.db", lines: 1},
		{name: "sqlite-overlapping", url: "sqlite:/data/many.db", lines: 4},
		{name: "postgres", url: storetest.URL(t, "postgres"), lines: 1},
		{name: "postgres-overlapping", url: storetest.URL(t, "postgres"), lines: 4},
	}
	lines := cell.text("../../scripts/triggers/crontab")
	var crontab strings.Builder
	for _, p := range parts {
		p.outside = strings.Replace(p.url, "sqlite:/data", "sqlite:"+cell.root+"/data", 1)
		p.prepare(t, cell)
		part := strings.Replace(lines, cronURLFile, cell.secret(p.name, p.url), 1)
		crontab.WriteString(strings.Replace(part, cronLine, strings.Repeat(cronLine, p.lines), 1))
	}
	if n := strings.Count(crontab.String(), cronLine); n != 10 {
		t.Fatalf("scripts/triggers/crontab does not have the line %q: %d of it, want 10", cronLine, n)
	}
	// A line whose tick cannot reach its database.
	crontab.WriteString(strings.NewReplacer(cronURLFile, cell.secret("wrong", "postgres://jobs:geheim@127.0.0.1:9/app"), "ops@", "wrong@").Replace(lines))
	cell.run(crontab.String())

	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.check(t, cell) })
	}
	mails := cell.mails()
	if n := len(mails["ops@example.org"]); n != 0 {
		t.Errorf("%d mails though nothing was wrong; the first:\n%s", n, mails["ops@example.org"][0])
	}
	wrong := mails["wrong@example.org"]
	if len(wrong) < cronMinutes {
		t.Errorf("%d mails about a database that is out of reach, in %d minutes: %q", len(wrong), cronMinutes, mails)
	}
	for _, m := range wrong {
		if !strings.Contains(m, "127.0.0.1:9") || strings.Contains(m, "geheim") {
			t.Errorf("a mail that does not say what is wrong, or says the password:\n%s", m)
		}
	}
}

func (p *crontabPart) command(t *testing.T, cell *cronCell, args ...string) []byte {
	t.Helper()
	c := exec.Command(cell.program, args...)
	c.Env = []string{"DBJOBS_DATABASE_URL=" + p.outside}
	out, err := c.Output()
	if err != nil {
		t.Fatalf("dbjobs %q: %v\n%s", args, err, out)
	}
	return out
}

func (p *crontabPart) prepare(t *testing.T, cell *cronCell) {
	p.command(t, cell, "migrate")
	db := storetest.OpenSQL(t, p.outside)
	if _, err := db.Exec("CREATE TABLE effects (job text)"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	jobs := cronJobs
	if p.name == "postgres-overlapping" {
		jobs += cronLong
	}
	if err := os.WriteFile(file, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	p.command(t, cell, "apply", "-f", file)
	p.command(t, cell, "tick", "--quiet") // from here on, there are decisions to make
	p.from = map[string]time.Time{}
	for _, job := range []string{"minutely", "often", "newest"} {
		p.from[job] = p.job(t, cell, job).DecidedThrough
	}
	cell.own("data")
}

type cronJob struct {
	DecidedThrough time.Time `json:"decided_through"`
	Gaps           []struct {
		From, Through time.Time
		Reason        string
	}
}

func (p *crontabPart) job(t *testing.T, cell *cronCell, name string) (j cronJob) {
	t.Helper()
	if err := json.Unmarshal(p.command(t, cell, "job", "show", name, "--json"), &j); err != nil {
		t.Fatal(err)
	}
	return j
}

// check compares the decisions with the clock: all nominal times of these rules are known without the rule.
func (p *crontabPart) check(t *testing.T, cell *cronCell) {
	for name, every := range map[string]time.Duration{"minutely": time.Minute, "often": 10 * time.Second, "newest": 15 * time.Second} {
		j := p.job(t, cell, name)
		if d := j.DecidedThrough.Sub(p.from[name]); d < (cronMinutes-1)*time.Minute {
			t.Errorf("%s: decided for %s only: cron started too few ticks", name, d)
		}
		runs := slices.DeleteFunc(p.runs(t, cell, name), func(r store.Run) bool {
			return !r.ScheduledFor.After(p.from[name]) // of the tick before cron's
		})
		times := 0
		for at := p.from[name].Truncate(every).Add(every); !at.After(j.DecidedThrough); at = at.Add(every) {
			times++
			n := 0
			for _, r := range runs {
				if r.ScheduledFor.Equal(at) {
					n++
				}
			}
			for _, g := range j.Gaps {
				if at.After(g.From) && !at.After(g.Through) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s: %s was decided %d times, want once", name, at.Format(time.RFC3339), n)
			}
		}
		if name != "newest" && (len(runs) != times || len(j.Gaps) != 0) {
			t.Errorf("%s: %d runs for %d nominal times, of which all are to run, and the gaps %v", name, len(runs), times, j.Gaps)
		}
		for _, r := range runs {
			if r.State != store.Succeeded {
				t.Errorf("%s of %s: %s %s", name, r.ScheduledFor, r.State, r.Error)
			}
		}
		t.Logf("%s: %d nominal times, %d runs, %d gaps, decided through %s", name, times, len(runs), len(j.Gaps), j.DecidedThrough.Format(time.TimeOnly))
	}
	if n := len(p.runs(t, cell, "boot")); n != 1 {
		t.Errorf("the job of a start ran %d times, want once", n)
	}
	if p.name == "postgres-overlapping" {
		p.overlapped(t, cell)
	}
}

// overlapped: while the long job ran, other passes than its own went on.
func (p *crontabPart) overlapped(t *testing.T, cell *cronCell) {
	beside := 0
	for _, long := range p.runs(t, cell, "long") {
		for _, r := range p.runs(t, cell, "minutely") {
			if r.Holder != long.Holder && r.StartedAt.After(long.StartedAt) && r.StartedAt.Before(long.FinishedAt) {
				beside++
			}
		}
	}
	if beside == 0 {
		t.Error("no pass went on beside the one with the long job")
	}
}

func (p *crontabPart) runs(t *testing.T, cell *cronCell, job string) (runs []store.Run) {
	t.Helper()
	if err := json.Unmarshal(p.command(t, cell, "run", "list", "--job", job, "--limit", "1000", "--json"), &runs); err != nil {
		t.Fatal(err)
	}
	return runs
}
