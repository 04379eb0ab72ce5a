//go:build unix

package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/executor/mailtest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Behind a pooler of transactions with two sessions, each executor does its work: with each type of
// argument, in a target and in the store's own database, and with the results of earlier steps. The
// hook of each run that fails gets its event.
func TestPoolerOfTransactionsServesEveryExecutor(t *testing.T) {
	storetest.Needs(t, "postgres") // PgBouncer stands before PostgreSQL
	const jobs = 6
	d, target := storetest.Open(t, "postgres", store.Options{}), storetest.Open(t, "postgres", store.Options{})
	d.Exec(t, `CREATE TABLE effects (step text, words text, whole bigint, part numeric, yes boolean, nothing int, at timestamptz, day date, run uuid, doc jsonb, list int[], bytes bytea)`)
	d.Exec(t, "CREATE TABLE told (what text, run uuid)")
	target.Exec(t, "CREATE TABLE effects (n int, run uuid)")
	mails, posted := mailtest.Start(t), atomic.Int32{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && strings.Contains(string(body), `"n":42`) {
			posted.Add(1)
		}
		_, _ = io.WriteString(w, `{"ok": true}`)
	}))
	t.Cleanup(web.Close)

	spec := func(name, executor string, v any) store.Step {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return store.Step{Name: name, Executor: executor, Spec: text}
	}
	typed := func(name string, atomic bool) store.Step {
		st := ticktest.StepWith(atomic, "INSERT INTO effects VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)", name, "it's ${job}, ü",
			json.Number("9007199254740993"), json.Number("2.50"), true, nil, "2026-11-23T02:30:00.123456Z", "2026-02-28", "${run_id}", `{"a": [1, "b"]}`, "{1,2,3}", `\x00ff`)
		st.Name = name
		return st
	}
	steps := []store.Step{
		typed("plain", false), typed("atomic", true),
		ticktest.Step("ask", "SELECT 6 * 7 AS n"),
		spec("target", "sql", executor.SQLSpec{Target: "shop", SQL: []executor.Statement{{Text: "INSERT INTO effects VALUES ($1, $2)", Args: []any{"${steps.ask.row.n}", "${run_id}"}}}}),
		spec("http", "http", executor.HTTPSpec{URL: web.URL, JSON: map[string]any{"n": "${steps.ask.row.n}"}}),
		spec("exec", "exec", executor.ProgramSpec{Run: []string{"echo", "${run_id} ${steps.http.body.ok}"}}),
		spec("shell", "shell", executor.ProgramSpec{Run: []string{`echo "$DBJOBS_RUN_ID true"`}}),
		spec("mail", "mail", executor.MailSpec{To: []string{"ann@example.org"}, Subject: "of ${job}", Text: "${steps.exec.output}${steps.shell.output}"}),
		ticktest.Step("fail", "SELECT 1 / 0"),
	}
	tell := ticktest.StepWith(true, "INSERT INTO told VALUES ($1, $2)", "${args.event}", "${args.run_id}")
	defs := store.Definitions{Jobs: []store.Job{{Name: "tell", Steps: []store.Step{tell}}}}
	for i := range jobs {
		defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job ", i), Steps: steps, On: store.Hooks{Failed: "tell"}})
	}
	ticktest.Apply(t, d, defs)
	for i := range jobs {
		ticktest.Request(t, d, fmt.Sprint("job ", i))
	}

	elsewhere := behindPooler(t, target.URL, 1)
	s, err := store.Open(t.Context(), behindPooler(t, d.URL, 2), store.Options{Clock: d.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	tk := ticktest.New(t, s)
	tk.Executors, err = executor.Open(s, &executor.Host{
		Own: true, Known: &secret.Known{},
		Targets: map[string]executor.Target{"shop": {URL: func(context.Context) (string, error) { return elsewhere, nil }}},
		Mailer:  &executor.MailServer{Server: "127.0.0.1", Port: mails.Port("none"), TLS: "none", From: "jobs@example.org"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tk.Executors.Close)
	r, err := tk.Run(t.Context())
	if err != nil || r.Failed != jobs || r.Succeeded != jobs {
		t.Errorf("%v: %+v", err, r)
	}
	for i := range jobs {
		if run := ticktest.LastRun(t, d, fmt.Sprint("job ", i)); !strings.Contains(run.Error, "division by zero") {
			t.Errorf("job %d: %s", i, run.Error)
		}
	}
	taken := strings.Join(mails.Mails(t), "")
	for what, n := range map[string]int{
		"effects": d.Int(t, `SELECT count(*) FROM effects e JOIN dbjobs.runs r ON r.id = e.run JOIN dbjobs.jobs j ON j.id = r.job_id AND e.words = 'it''s ' || j.name || ', ü'
			WHERE whole = 9007199254740993 AND part::text = '2.50' AND yes AND nothing IS NULL AND at = '2026-11-23 02:30:00.123456+00'
			AND day = '2026-02-28' AND doc -> 'a' ->> 1 = 'b' AND list[3] = 3 AND bytes = '\x00ff'`) / 2,
		"rows in the target": target.Int(t, "SELECT count(DISTINCT run) FROM effects WHERE n = 42"),
		"requests":           int(posted.Load()),
		"mails":              strings.Count(taken, " true\n") / 2,
		"hooks":              d.Int(t, "SELECT count(DISTINCT t.run) FROM told t JOIN dbjobs.runs r ON r.id = t.run WHERE t.what = 'failed'"),
	} {
		if n != jobs {
			t.Errorf("%d %s, want %d", n, what, jobs)
		}
	}
}
