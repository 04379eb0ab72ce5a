package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// forever has, for each engine, a statement that runs until it is stopped, and a query for the number of them that the
// server executes.
var forever = map[string]struct{ statement, left string }{
	"sqlite": {"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", ""},
	"postgres": {"SELECT pg_sleep(3600)",
		"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query = 'SELECT pg_sleep(3600)'"},
	"mariadb": {"DO SLEEP(3600)", "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND info = 'DO SLEEP(3600)'"},
}

// cancelsRunning matches what run cancel says of a run that is being executed.
var cancelsRunning = regexp.MustCompile(`: the process that executes it stops it within seconds; if that process is dead, the first dbjobs tick after \S+T\S+ does\n$`)

// TestCancelReachesAnotherProcess: a tick in its own process executes a run. A command in another process cancels the
// run, and aborts a job. The statements are gone from the server, and the tick ends as usual.
func TestCancelReachesAnotherProcess(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url, home, path := storetest.Open(t, engine, store.Options{}).URL, t.TempDir(), program(t)
			command := func(args ...string) *exec.Cmd {
				cmd := exec.Command(path, args...)
				cmd.Env = []string{"HOME=" + home, "DBJOBS_DATABASE_URL=" + url, "GORACE=" + os.Getenv("GORACE")}
				return cmd
			}
			dbjobs := func(args ...string) string {
				t.Helper()
				cmd := command(args...)
				var out, talk bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &talk
				if err := cmd.Run(); err != nil {
					t.Fatalf("%q: %v: %s", args, err, talk.String())
				}
				return strings.TrimSpace(out.String())
			}
			dbjobs("job", "create", "one", "--sql", forever[storetest.Dialect(engine)].statement)
			dbjobs("job", "create", "two", "--sql", forever[storetest.Dialect(engine)].statement, "--rule", "every 1000h")
			one, two := dbjobs("job", "run-now", "one"), dbjobs("job", "run-now", "two")

			tick := command("tick", "--verbose", "--fail-on-job-error")
			var talk bytes.Buffer
			tick.Stdout, tick.Stderr = &talk, &talk
			if err := tick.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- tick.Wait() }()
			t.Cleanup(func() { _ = tick.Process.Kill() })

			s, err := store.Open(t.Context(), url, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			waitUntil(t, "both runs are being executed", func() bool {
				return state(t, s, one) == store.Running && state(t, s, two) == store.Running && executing(t, s, engine) == 2
			})
			told, err := command("run", "cancel", one).CombinedOutput()
			if err != nil || !cancelsRunning.Match(told) {
				t.Errorf("run cancel: %v: %s", err, told)
			}
			dbjobs("job", "abort", "two", "--by", "ada")
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("the tick: %v: %s", err, talk.String())
				}
			case <-time.After(3 * time.Minute):
				t.Fatalf("the tick goes on: %s", talk.String())
			}
			for _, want := range []string{"2 started: 0 succeeded, 0 failed, 2 cancelled", `level=DEBUG msg="step begins" run=` + one, `msg="step has ended" run=` + one} {
				if !strings.Contains(talk.String(), want) {
					t.Errorf("%s: not in: %s", want, talk.String())
				}
			}
			waitUntil(t, "no statement is left on the server", func() bool { return executing(t, s, engine) == 0 || engine == "sqlite" })
			if a, b := state(t, s, one), state(t, s, two); a != store.Cancelled || b != store.Cancelled {
				t.Errorf("the runs are %s and %s", a, b)
			}
			j, err := s.Job(t.Context(), "two")
			if err != nil || !j.Disabled {
				t.Errorf("%v: aborted, and not disabled: %+v", err, j)
			}
		})
	}
}

func state(t *testing.T, s *store.Store, run string) string {
	t.Helper()
	r, err := s.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return r.State
}

// executing counts the statements that the server executes. SQLite has no server, so the process of the tick executes
// them.
func executing(t *testing.T, s *store.Store, engine string) (n int) {
	t.Helper()
	if forever[storetest.Dialect(engine)].left == "" {
		return 2
	}
	db, err := s.JobDB(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(forever[storetest.Dialect(engine)].left).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 600 {
		if is() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("not so after a minute: %s", what)
}
