// Package queues holds the recipes for queues against the queues' own libraries: ticks that are to
// hand over jobs are killed, and then the library works what is in its queue.
package queues

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A queue is one that people run, as the page with recipes has it.
type queue struct {
	name    string // of the recipe's job
	table   string // of the jobs that wait
	prepare func(t *testing.T, url string)
	work    func(t *testing.T, url string)
}

var queues = []queue{
	{"river", "river_job", prepareRiver, workRiver},
	{"graphile-worker", "graphile_worker._private_jobs",
		node("graphile.mjs", "prepare"), node("graphile.mjs", "work")},
	{"pg-boss", "pgboss.job", node("pgboss.mjs", "prepare"), node("pgboss.mjs", "work")},
}

// TestEachRunBecomesOneJob: ticks are killed before the COMMIT of a step, after it, and at random.
// The queue has worked one job of each run, and no other.
func TestEachRunBecomesOneJob(t *testing.T) {
	for _, q := range queues {
		t.Run(q.name, func(t *testing.T) {
			t.Parallel()
			h := hand(t, q)
			h.apply()
			h.program("job", "backfill", q.name, "--limit", fmt.Sprint(runs()),
				"--from", "2026-01-05T00:00:00Z", "--to", "2026-01-20T00:00:00Z")
			h.killBeforeCommit()
			h.killAfterCommit()
			for h.jobs() < runs() {
				h.killAtRandom()
			}
			h.program("tick")
			q.work(t, h.url)
			h.check()
		})
	}
}

// TestQueueThatIsNotThere: without the queue's tables, and for pg-boss without the queue, the run
// fails with the reason.
func TestQueueThatIsNotThere(t *testing.T) {
	for _, q := range queues {
		t.Run(q.name, func(t *testing.T) {
			t.Parallel()
			q.prepare = func(*testing.T, string) {}
			want := `relation "river_job" does not exist`
			switch q.name {
			case "graphile-worker":
				want = `schema "graphile_worker" does not exist`
			case "pg-boss":
				q.prepare, want = node("pgboss.mjs", "start"), "violates foreign key constraint"
			}
			h := hand(t, q)
			h.apply()
			h.program("job", "run-now", q.name)
			if out := h.program("tick"); !strings.Contains(out, want) {
				t.Errorf("the error lacks %q:\n%s", want, out)
			}
			if q.name == "pg-boss" && h.jobs() > 0 {
				t.Error("there is a job that no worker would find")
			}
		})
	}
}

// program is what the tests run.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dbjobs-queues-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "dbjobs")
	code := 1
	build := exec.Command("go", "build", "-C", "../..", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", program, "./cmd/dbjobs") // as make build does
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir) // nothing of it is needed
	os.Exit(code)
}

// runs is how many are handed over.
func runs() int {
	if os.Getenv("DBJOBS_PROVE") != "" {
		return 900 // a job keeps 1000
	}
	return 100
}

// A handover is a database with dbjobs, a queue, and ticks that do not end as they wish.
type handover struct {
	t    *testing.T
	q    queue
	url  string
	conn *pgx.Conn
}

func hand(t *testing.T, q queue) *handover {
	h := &handover{t: t, q: q, url: database(t)}
	h.conn = h.connect()
	h.exec("CREATE TABLE worked (run uuid NOT NULL, at timestamptz)")
	q.prepare(t, h.url)
	h.program("migrate")
	return h
}

// database makes one for a test.
func database(t *testing.T) string {
	server := os.Getenv("DBJOBS_TEST_POSTGRES")
	if server == "" {
		t.Fatal("DBJOBS_TEST_POSTGRES is not set: make queues sets it")
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("DBJOBS_TEST_POSTGRES is no URL")
	}
	name := fmt.Sprintf("dbjobs_queues_%d_%x", os.Getpid(), rand.Uint64())
	admin := func(query string) {
		conn, err := pgx.Connect(context.Background(), server)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), query); err != nil {
			t.Error(err)
		}
	}
	admin("CREATE DATABASE " + name)
	t.Cleanup(func() { admin("DROP DATABASE " + name) })
	u.Path = "/" + name
	return u.String()
}

func (h *handover) connect() *pgx.Conn {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (h *handover) exec(query string) {
	h.t.Helper()
	if _, err := h.conn.Exec(h.t.Context(), query); err != nil {
		h.t.Fatalf("%s: %v", query, err)
	}
}

func (h *handover) int(query string) (n int) {
	h.t.Helper()
	if err := h.conn.QueryRow(h.t.Context(), query).Scan(&n); err != nil {
		h.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// jobs is how many are in the queue.
func (h *handover) jobs() int { return h.int("SELECT count(*) FROM " + h.q.table) }

func (h *handover) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.t.Context(), program, args...)
	cmd.Env = []string{"HOME=" + h.t.TempDir(), "DBJOBS_DATABASE_URL=" + h.url}
	return cmd
}

func (h *handover) program(args ...string) string {
	h.t.Helper()
	out, err := h.command(args...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("dbjobs %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// apply applies the recipe as it stands on the page.
func (h *handover) apply() {
	h.t.Helper()
	page, err := os.ReadFile("../../tick/executor/README.md")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		recipe, _, _ := strings.Cut(block, "```")
		if !strings.Contains(recipe, "\n  "+h.q.name+":\n") {
			continue
		}
		cmd := h.command("apply", "-f", "-")
		cmd.Stdin = strings.NewReader(recipe)
		if out, err := cmd.CombinedOutput(); err != nil {
			h.t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	h.t.Fatalf("the page has no recipe for %s", h.q.name)
}

// until asks again until the answer is yes.
func (h *handover) until(what string, query string) {
	h.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var yes bool
		if err := h.conn.QueryRow(h.t.Context(), query).Scan(&yes); err != nil {
			h.t.Fatalf("%s: %v", query, err)
		}
		if yes {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// lock lets no other session touch a table until it is released.
func (h *handover) lock(table string) (release func()) {
	h.t.Helper()
	conn := h.connect()
	if _, err := conn.Exec(h.t.Context(), "BEGIN; LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		h.t.Fatal(err)
	}
	return func() { _ = conn.Close(context.Background()) }
}

func (h *handover) waits(table string) {
	h.t.Helper()
	h.until("a tick waits for "+table, "SELECT EXISTS (SELECT FROM pg_locks "+
		"WHERE NOT granted AND relation = '"+table+"'::regclass)")
}

// alone waits until the sessions of a killed tick have ended, and lets the next tick take what the
// killed one had.
func (h *handover) alone() {
	h.t.Helper()
	h.until("the sessions of the killed tick have ended", "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE "+
		"datname = current_database() AND application_name LIKE 'dbjobs%')")
	h.exec("UPDATE dbjobs.runs SET lease_until = now() - interval '1 hour' WHERE state = 'running'")
	h.exec("UPDATE dbjobs.runs SET ready_at = now() - interval '1 hour' WHERE state = 'waiting'")
}

// tick starts one, which kill ends as kill -9 does.
func (h *handover) tick() (kill func()) {
	h.t.Helper()
	tick := h.command("tick")
	if err := tick.Start(); err != nil {
		h.t.Fatal(err)
	}
	return func() {
		_ = tick.Process.Signal(syscall.SIGKILL)
		var exit *exec.ExitError
		if err := tick.Wait(); err != nil && !errors.As(err, &exit) {
			h.t.Error(err)
		}
	}
}

// killBeforeCommit kills a tick while its step's statement is under way.
func (h *handover) killBeforeCommit() {
	h.t.Helper()
	release := h.lock(h.q.table)
	kill := h.tick()
	h.waits(h.q.table)
	kill()
	release()
	h.alone()
	if n := h.jobs(); n != 0 {
		h.t.Errorf("%d jobs are there although nothing was committed", n)
	}
}

// killAfterCommit kills a tick that has committed its step, and cannot go on.
func (h *handover) killAfterCommit() {
	h.t.Helper()
	release := h.lock(h.q.table)
	kill := h.tick()
	h.waits(h.q.table)
	goOn := h.lock("dbjobs.plans")
	release()
	h.waits("dbjobs.plans")
	kill()
	goOn()
	h.alone()
	if n := h.jobs(); n != 1 {
		h.t.Errorf("%d jobs are there after the COMMIT of one", n)
	}
}

// killAtRandom kills a tick that has handed over some runs.
func (h *handover) killAtRandom() {
	h.t.Helper()
	some := min(h.jobs()+1+rand.N(10), runs())
	kill := h.tick()
	h.until("the tick hands over", fmt.Sprintf("SELECT count(*) >= %d FROM %s", some, h.q.table))
	kill()
	h.alone()
}

// check holds what the queue has worked against the runs on record.
func (h *handover) check() {
	h.t.Helper()
	if n := h.int("SELECT count(*) FROM dbjobs.runs WHERE state = 'succeeded'"); n < runs() {
		h.t.Errorf("%d runs have succeeded, want %d at least", n, runs())
	}
	for what, query := range map[string]string{
		"runs have not succeeded":     "SELECT count(*) FROM dbjobs.runs WHERE state <> 'succeeded'",
		"nominal times have two runs": "SELECT count(*) - count(DISTINCT scheduled_for) FROM dbjobs.runs",
		"jobs were worked twice":      "SELECT count(*) - count(DISTINCT run) FROM worked",
		"runs have no job with their nominal time": "SELECT count(*) FROM dbjobs.runs r WHERE NOT EXISTS " +
			"(SELECT FROM worked w WHERE w.run::text = r.id::text AND w.at = r.scheduled_for)",
		"jobs are of no run": "SELECT count(*) FROM worked w WHERE NOT EXISTS " +
			"(SELECT FROM dbjobs.runs r WHERE r.id::text = w.run::text)",
	} {
		if n := h.int(query); n != 0 {
			h.t.Errorf("%d %s", n, what)
		}
	}
}
