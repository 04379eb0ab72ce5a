//go:build unix

package crash

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/scripts/prove"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Behind a pooler that pools transactions, each statement outside of a transaction may meet another
// session of the server. Others have used what one round trip leaves in a session when the next one
// comes. The arguments of a step must arrive in its own statement. Here a statement that another
// session prepared fits as well, and only its table shows that it was the wrong one.
func TestPoolerOfTransactionsTakesArguments(t *testing.T) {
	storetest.Needs(t, "postgres") // PgBouncer stands before PostgreSQL
	const ticks, tables = 8, 8
	runs := 160
	if prove.Whole() {
		runs = 400
	}
	d := storetest.Open(t, "postgres", store.Options{})
	for i := range tables {
		d.Exec(t, fmt.Sprintf("CREATE TABLE effects_%d (n int, run uuid, scheduled_for timestamptz, told text)", i))
	}
	var defs store.Definitions
	for i := range runs {
		insert := fmt.Sprintf("INSERT INTO effects_%d VALUES ($1, $2, $3, $4)", i%tables)
		defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint(i), Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{
			ticktest.StepWith(i%5 == 0, insert, i, "${run_id}", "${scheduled_for}", fmt.Sprintf("job ${job}, table %d", i%tables))}})
	}
	ticktest.Apply(t, d, defs)
	ticktest.Run(t, d)
	d.Clock.Add(5 * time.Minute)

	children := make([]ticktest.Child, ticks)
	pooled := behindPooler(t, d.URL, 2)
	for i := range children {
		children[i] = ticktest.Child{URL: pooled, Engine: d.Engine, Now: d.Clock.Now(), Holder: fmt.Sprint("tick ", i)}
	}
	reports, errs := ticktest.Together(t, children)
	succeeded, failed := 0, 0
	for i := range reports {
		if errs[i] != nil {
			t.Errorf("tick %d: %v", i, errs[i])
		}
		succeeded, failed = succeeded+reports[i].Succeeded, failed+reports[i].Failed
	}
	right := 0
	for i := range tables {
		right += d.Int(t, fmt.Sprintf(`SELECT count(DISTINCT e.n) FROM effects_%d e JOIN dbjobs.runs r ON r.id = e.run AND r.scheduled_for = e.scheduled_for
			JOIN dbjobs.jobs j ON j.id = r.job_id AND j.name = e.n::text WHERE e.n %% %d = %[1]d AND e.told = 'job ' || e.n || ', table %[1]d'`, i, tables))
	}
	all := 0
	for i := range tables {
		all += d.Int(t, fmt.Sprintf("SELECT count(*) FROM effects_%d", i))
	}
	t.Logf("%d runs succeeded, %d failed; %d effects, %d of them right", succeeded, failed, all, right)
	if succeeded != runs || failed != 0 || all != runs || right != runs {
		t.Errorf("want %d of each, and none failed", runs)
	}
}

// Behind such a pooler, the session that answers may belong to another client the next time. So no
// session is reset: that would be done to others.
func TestPoolerOfTransactionsKeepsItsSessions(t *testing.T) {
	storetest.Needs(t, "postgres") // PgBouncer stands before PostgreSQL
	d := storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, "CREATE TABLE seen (setting text)")
	through := executeThrough(t, behindPooler(t, d.URL, 1))
	for _, statement := range []string{"SET work_mem = '3MB'", "INSERT INTO seen SELECT current_setting('work_mem')"} {
		if err := through(t.Context(), executor.SQLSpec{SQL: executor.Texts(statement)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.Int(t, "SELECT count(*) FROM seen WHERE setting = '3MB'"); n != 1 {
		t.Error("the pooler's only session lost what was set in it")
	}
}

// If a timeout or a cancel has stopped a statement, it is over on the server, too, and the pooler serves
// all others. PgBouncer 1.18 itself ends if the connection that asks for the stop is closed early.
func TestPoolerOfTransactionsStopsStatements(t *testing.T) {
	storetest.Needs(t, "postgres") // PgBouncer stands before PostgreSQL
	d := storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, "CREATE TABLE effects (n int)")
	through := executeThrough(t, behindPooler(t, d.URL, 2))
	running := func() int {
		return d.Int(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE '%pg_sleep(600)'")
	}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var both sync.WaitGroup
		for _, atomic := range []bool{false, true} {
			both.Go(func() {
				spec := executor.SQLSpec{SQL: executor.Texts("SELECT pg_sleep(600)", "INSERT INTO effects VALUES (1)"), Atomic: atomic}
				if err := through(ctx, spec); err == nil || !strings.Contains(err.Error(), "57014") {
					t.Errorf("atomic %t: %v, want the server to say that it has stopped the statement", atomic, err)
				}
			})
		}
		for running() < 2 && !t.Failed() {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
		both.Wait()
		if n := running(); n != 0 {
			t.Fatalf("%d statements still run on the server", n)
		}
	}
	if err := through(t.Context(), executor.SQLSpec{SQL: executor.Texts("INSERT INTO effects VALUES (2)")}); err != nil {
		t.Fatal(err)
	}
	if sum := d.Int(t, "SELECT sum(n) FROM effects"); sum != 2 {
		t.Errorf("the effects add up to %d, want 2", sum)
	}
}

// A pooler may hold a statement back until its patience is over, because others have all its sessions. Then nothing of the
// step has happened, so it uses up no attempt. The same is true of the question as whom the steps log in.
func TestPoolerWithoutAFreeSession(t *testing.T) {
	t.Parallel()
	storetest.Needs(t, "postgres") // PgBouncer stands before PostgreSQL
	d := storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, "CREATE TABLE effects (n int)")
	pooled := startPooler(t, d.URL, storetest.Pooler{Size: 1, More: "query_wait_timeout = 1"})
	through := executeThrough(t, pooled)
	other, err := sql.Open("pgx", pooled)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	refused := func(spec executor.SQLSpec) {
		t.Helper()
		tx, err := other.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if err := through(t.Context(), spec); !errors.Is(err, executor.ErrNothingDone) || !strings.Contains(err.Error(), "query_wait_timeout") {
			t.Errorf("%v: %v, want that nothing was done", spec.SQL, err)
		}
	}
	refused(executor.SQLSpec{SQL: executor.Texts("INSERT INTO effects VALUES (1)")}) // the login is not known yet
	if err := through(t.Context(), executor.SQLSpec{SQL: executor.Texts("INSERT INTO effects VALUES (2)")}); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []executor.SQLSpec{
		{SQL: executor.Texts("INSERT INTO effects VALUES (3)", "INSERT INTO effects VALUES (3)")},
		{SQL: executor.Texts("INSERT INTO effects VALUES (4); INSERT INTO effects VALUES (4)")},
		{SQL: []executor.Statement{{Text: "INSERT INTO effects VALUES ($1)", Args: []any{json.Number("5")}}}},
		{SQL: executor.Texts("INSERT INTO effects VALUES (6)"), Atomic: true},
		{SQL: executor.Texts("CREATE TABLE more (n int)"), Atomic: true},
	} {
		refused(spec)
	}
	if sum := d.Int(t, "SELECT sum(n) FROM effects"); sum != 2 {
		t.Errorf("the effects add up to %d, want 2", sum)
	}
}

// executeThrough returns a function that executes steps at a URL, as the login of that URL.
func executeThrough(t *testing.T, rawURL string) func(context.Context, executor.SQLSpec) error {
	t.Helper()
	s, err := store.Open(t.Context(), rawURL, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	login, err := s.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x, err := executor.NewSQL(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return func(ctx context.Context, spec executor.SQLSpec) error {
		text, err := json.Marshal(spec)
		if err == nil {
			_, err = x.Execute(ctx, executor.Request{Task: &store.Task{Job: store.Job{Owner: login}}, Spec: text})
		}
		return err
	}
}

// behindPooler starts a PgBouncer in front of the server, with size sessions for all clients together.
// It returns the URL through it.
func behindPooler(t *testing.T, direct string, size int) string {
	t.Helper()
	return startPooler(t, direct, storetest.Pooler{Size: size})
}

// startPooler starts a PgBouncer with these settings in front of the server.
func startPooler(t *testing.T, direct string, p storetest.Pooler) string {
	t.Helper()
	root := os.Getenv("DBJOBS_TEST_PGBOUNCER")
	if root == "" {
		t.Fatal("DBJOBS_TEST_PGBOUNCER is not set: `make test` finds or fetches PgBouncer and sets it")
	}
	p.Root, p.Server = root, direct
	return p.Start(t)(direct)
}

// A pooler that lets no client in says so in codes of its own. The database is out of reach all the same.
func TestPoolerThatLetsNobodyIn(t *testing.T) {
	storetest.Needs(t, "postgres") // PgBouncer stands before PostgreSQL
	pooled := behindPooler(t, storetest.URL(t, "postgres"), 1)
	for what, change := range map[string]func(*url.URL){
		"a wrong password": func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "wrong") },
		"an unknown user":  func(u *url.URL) { u.User = url.UserPassword("nobody", "wrong") },
		"no such database": func(u *url.URL) { u.Path = "/no_such_database" },
	} {
		u, err := url.Parse(pooled)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		s, err := store.Open(t.Context(), u.String(), store.Options{})
		if err == nil {
			_, err = s.Now(t.Context())
			s.Close()
		}
		if !errors.Is(err, store.ErrUnreachable) || strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
