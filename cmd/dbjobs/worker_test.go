package main

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// databasePage is the page that says how any program may use the tables.
const databasePage = "store/README.md"

// workerSQL has the statements with which any program can take and finish a run. They are from the page, in the form
// for the engine.
type workerSQL struct {
	take   string // if which is empty, it also does the work of which
	which  string
	extend string
	finish string
	fail   string
}

func readWorkerSQL(t *testing.T, engine string) (w workerSQL) {
	t.Helper()
	p := readPage(t, databasePage).section("SQL for workers")
	var blocks [][]string
	for _, b := range p.blocks() {
		if b.language == "sql" {
			blocks = append(blocks, b.statements())
		}
	}
	if len(blocks) != 2 || len(blocks[0]) != 4 || len(blocks[1]) != 2 {
		t.Fatalf("%s has %q", databasePage, blocks)
	}
	w = workerSQL{take: blocks[0][0], extend: blocks[0][1], finish: blocks[0][2], fail: blocks[0][3]}
	const now, later = "now()", "now() + interval '10 minutes'"
	for _, row := range p.rows("SQL for workers") {
		if !strings.Contains(strings.ToLower(row[0]), storetest.Dialect(engine)) {
			continue
		}
		words := strings.NewReplacer("dbjobs.", "dbjobs_", later, codeIn(row[2])[0], now, codeIn(row[1])[0])
		w.take, w.extend, w.finish, w.fail = words.Replace(w.take), words.Replace(w.extend), words.Replace(w.finish), words.Replace(w.fail)
	}
	switch storetest.Dialect(engine) {
	case "mariadb":
		w.take, w.which = blocks[1][0], blocks[1][1]
	case "sqlite":
		const lock = " FOR UPDATE SKIP LOCKED"
		if !strings.Contains(w.take, lock) || !strings.Contains(p.text, "On SQLite leave `"+lock[1:]+"` out.") {
			t.Fatalf("%s does not say what SQLite does without", databasePage)
		}
		w.take = strings.Replace(w.take, lock, "", 1)
	}
	return w
}

// as returns the SQL of the n-th of several workers.
func (w workerSQL) as(n int) workerSQL {
	for _, text := range []*string{&w.take, &w.which} {
		*text = strings.ReplaceAll(*text, "'reports/1'", fmt.Sprintf("'reports/%d'", n))
	}
	return w
}

// one takes a run. If there is none, the error is sql.ErrNoRows.
func (w workerSQL) one(db *sql.DB) (id string, held int, err error) {
	ask := w.take
	if w.which != "" {
		res, err := db.Exec(w.take)
		if err != nil {
			return "", 0, err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return "", 0, cmp.Or(err, sql.ErrNoRows)
		}
		ask = w.which
	}
	rest := make([]any, 4)
	for i := range rest {
		rest[i] = new(any)
	}
	err = db.QueryRow(ask).Scan(append([]any{&id, &held}, rest...)...)
	return id, held, err
}

// of puts the values of the run into a statement.
func of(statement, id string, held int) string {
	return strings.NewReplacer("$id", "'"+id+"'", "$fence", fmt.Sprint(held)).Replace(statement)
}

// TestAnyProgramCanTakeAndFinishARun runs the statements of the page as one of several workers.
func TestAnyProgramCanTakeAndFinishARun(t *testing.T) {
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			url := storetest.Open(t, engine, store.Options{}).URL
			home := t.TempDir()
			dbjobs := func(args ...string) string {
				t.Helper()
				var out strings.Builder
				if code, stderr := invoke(t.Context(), t, home, nil, &out, append(args, "--database", url)...); code != exitDone {
					t.Fatalf("%q: code %d, said %q", args, code, stderr)
				}
				return out.String()
			}
			dbjobs("job", "create", "report", "--queue", "reports", "--sql", "SELECT 1")
			dbjobs("tick")
			dbjobs("job", "run-now", "report")
			dbjobs("tick")
			db := storetest.OpenSQL(t, url)
			st := readWorkerSQL(t, engine)
			id, held, err := st.one(db)
			if err != nil {
				t.Fatalf("%s: %v", st.take, err)
			}
			do := func(text string, rows int64) {
				t.Helper()
				text = of(text, id, held)
				res, err := db.Exec(text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if got, err := res.RowsAffected(); err != nil || got != rows {
					t.Fatalf("%s: %d rows, want %d (%v)", text, got, rows, err)
				}
			}
			if _, _, err := st.as(2).one(db); !errors.Is(err, sql.ErrNoRows) {
				t.Fatalf("it may be taken again: %v", err)
			}
			dbjobs("tick") // the lease holds
			do(st.extend, 1)
			do(st.finish, 1)
			do(st.finish, 0)
			dbjobs("tick")
			if out := dbjobs("run", "list", "--state", "succeeded"); !strings.Contains(out, id) {
				t.Errorf("run list: %s", out)
			}
			if out := dbjobs("job", "show", "report"); !regexp.MustCompile(`last result: +succeeded`).MatchString(out) {
				t.Errorf("job show: %s", out)
			}

			// A failure is on record whatever its length, such as all that a program wrote.
			dbjobs("job", "run-now", "report")
			dbjobs("tick")
			if id, held, err = st.one(db); err != nil {
				t.Fatalf("%s: %v", st.take, err)
			}
			do(strings.Replace(st.fail, "$error", "'"+strings.Repeat("x", 100_000)+"'", 1), 1)
			dbjobs("tick")
			if out := dbjobs("run", "show", id); !strings.Contains(out, "failed") || strings.Count(out, "x") < 4000 || strings.Count(out, "x") > 4100 {
				t.Errorf("run show: %d bytes: %.1000s", len(out), out)
			}
		})
	}
}

// TestAJobBySQL: the rows of the page make a job that the next tick plans, as it says.
func TestAJobBySQL(t *testing.T) {
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			for _, statement := range readPage(t, databasePage).section("A job by SQL").blocks()[0].statements() {
				d.Exec(t, strings.ReplaceAll(statement, "dbjobs.", d.Table("")))
			}
			home, stdout := t.TempDir(), &strings.Builder{}
			for _, args := range [][]string{{"tick"}, {"job", "show", "tidy"}} {
				if code, stderr := invoke(t.Context(), t, home, nil, stdout, append(args, "--database", d.URL)...); code != exitDone {
					t.Fatalf("%q: code %d, said %q", args, code, stderr)
				}
			}
			changeBySQL(t, d, engine, home)
			for _, want := range []string{`state: +sleeping\n`, `schedule: +every 5m Europe/Berlin\n`, `next run: +\d`, `step 1: .*DELETE FROM carts`} {
				if !regexp.MustCompile(want).MatchString(stdout.String()) {
					t.Errorf("no %s in\n%s", want, stdout)
				}
			}
		})
	}
}

// TestEightWorkersMissNothing: eight workers take runs with the statements of the page. There are also runs of other
// queues, states and years. Each run goes to one worker. While there is a run, every worker gets one, and the
// statements use the queue's index.
func TestEightWorkersMissNothing(t *testing.T) {
	const queued, others, workers = 400, 4000, 8
	for _, engine := range storetest.Engines(t) {
		t.Run(engine, func(t *testing.T) {
			d := storetest.Open(t, engine, store.Options{Clock: time.Now})
			if _, err := d.Apply(t.Context(), store.Definitions{Jobs: []store.Job{{Name: "report", Queue: "reports", Overlap: "allow", MaxRunning: queued,
				Steps: []store.Step{{Executor: "sql", Spec: []byte(`{"sql": ["SELECT 1"]}`)}}}}}, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			many(t, d, queued, others)
			st := readWorkerSQL(t, engine)
			for _, want := range map[string][][2]string{
				"postgres": {{st.take, `using runs_queued on runs`}, {st.take, `using runs_pkey on runs`}},
				"mariadb":  {{st.take, ` runs_queued `}, {st.which, ` runs_wake `}},
				"sqlite":   {{st.take, `USING (COVERING )?INDEX dbjobs_runs_queued`}},
			}[storetest.Dialect(engine)] {
				if plan := planOf(t, d, want[0]); !regexp.MustCompile(want[1]).MatchString(plan) || regexp.MustCompile(`Sort|filesort|TEMP B-TREE|Seq Scan|SCAN dbjobs_runs$`).MatchString(plan) {
					t.Errorf("%s\n%s\nwant %s, and nothing sorted", want[0], plan, want[1])
				}
			}
			d.SQL.SetMaxIdleConns(workers)
			var mu sync.Mutex
			takers, misses, again := map[string]int{}, 0, 0
			began := time.Now()
			var wait sync.WaitGroup
			for n := range workers {
				wait.Go(func() {
					w := st.as(n + 1)
					for {
						id, held, err := w.one(d.SQL)
						mu.Lock()
						left := queued - len(takers)
						if err == nil {
							takers[id]++
						} else if errors.Is(err, sql.ErrNoRows) && left > workers {
							misses++
						} else if d.Transient(err) {
							again++
						}
						mu.Unlock()
						switch {
						case errors.Is(err, sql.ErrNoRows) && left > 0 || d.Transient(err):
							continue
						case err != nil:
							if !errors.Is(err, sql.ErrNoRows) {
								t.Error(err)
							}
							return
						}
						if res, err := d.SQL.Exec(of(w.finish, id, held)); err != nil {
							t.Error(err)
						} else if rows, err := res.RowsAffected(); rows != 1 || err != nil {
							t.Errorf("the end of %s changed %d rows: %v", id, rows, err)
						}
					}
				})
			}
			wait.Wait()
			t.Logf("%d runs by %d workers in %s; sent away %d times, tried again %d times", len(takers), workers, time.Since(began).Round(time.Millisecond), misses, again)
			for id, n := range takers {
				if n != 1 {
					t.Errorf("run %s was taken %d times", id, n)
				}
			}
			done := d.Int(t, "SELECT count(*) FROM "+d.Table("runs")+" WHERE state = 'succeeded' AND fence = 1 AND settled_at IS NULL")
			if len(takers) != queued || done != queued || misses > queued/100 {
				t.Errorf("%d runs were taken, and %d ended; %d times somebody was sent away", len(takers), done, misses)
			}
		})
	}
}

// many makes runs of the first job: queued ones, and others in other queues and states.
func many(t *testing.T, d *storetest.DB, queued, others int) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Microsecond)
	at := func(after time.Duration) string { return "'" + d.Store.Engine().Instant(now.Add(after)) + "'" }
	var rows []string
	flush := func() {
		d.Exec(t, "INSERT INTO "+d.Table("runs")+" (id, job_id, occurrence, state, queue, priority, ready_at, created_at, finished_at, settled_at) VALUES "+strings.Join(rows, ", "))
		rows = rows[:0]
	}
	job := d.Int(t, "SELECT id FROM "+d.Table("jobs"))
	for i := range queued + others {
		state, queue, ended := "queued", "reports", "NULL"
		if i >= queued {
			switch i % 4 {
			case 0:
				state = "waiting"
			case 1:
				queue = "another"
			default:
				state, ended = "succeeded", at(-time.Hour)
			}
		}
		values := fmt.Sprintf("('00000000-0000-7000-8000-%012d', %d, 'now:%d', '%s', '%s', %d, %s, %s, %s, %[9]s)", i, job, i, state, queue, i%7,
			at(time.Duration(i)*time.Millisecond), at(-time.Minute), ended)
		if rows = append(rows, values); len(rows) == 400 {
			flush()
		}
	}
	if len(rows) > 0 {
		flush()
	}
	d.Exec(t, map[string]string{"postgres": "ANALYZE dbjobs.runs", "mariadb": "ANALYZE TABLE dbjobs_runs", "sqlite": "ANALYZE"}[d.Engine])
}

// planOf returns the engine's plan of a statement.
func planOf(t *testing.T, d *storetest.DB, statement string) string {
	t.Helper()
	statement = regexp.MustCompile(`(?m)^--.*\n`).ReplaceAllString(strings.TrimSpace(statement), "")
	rows, err := d.SQL.Query(map[string]string{"postgres": "EXPLAIN ", "mariadb": "EXPLAIN FORMAT=TRADITIONAL ", "sqlite": "EXPLAIN QUERY PLAN "}[d.Engine] + statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	var plan strings.Builder
	err = eachRow(t, rows, func(row []cell) {
		for _, c := range row {
			fmt.Fprint(&plan, c.value, " ")
		}
		plan.WriteByte('\n')
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// changeBySQL pauses, resumes, requests and removes the job of the page, with the page's statements in the form for the
// engine. A tick notices each change.
func changeBySQL(t *testing.T, d *storetest.DB, engine, home string) {
	t.Helper()
	blocks := readPage(t, databasePage).section("A job by SQL").blocks()
	bySQL := blocks[1].statements()
	words := map[string]*strings.Replacer{
		"postgres": strings.NewReplacer(),
		"mariadb": strings.NewReplacer("now()", "utc_timestamp(6)", "'now:' || gen_random_uuid()", "concat('now:', uuid())",
			"gen_random_uuid()", "uuid()"),
		"sqlite": strings.NewReplacer("now()", "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')",
			"gen_random_uuid()", blocks[2].statements()[0]),
	}[storetest.Dialect(engine)]
	if engine == "postgres" && storetest.Version(t, d.SQL) < 13_00_00 {
		words = strings.NewReplacer("gen_random_uuid()", "md5(random()::text)::uuid")
	}
	for i, want := range []string{`"state": "paused"`, `"state": "sleeping"`, `"occurrence": "now:`, `job "tidy": not found`} {
		d.Exec(t, words.Replace(strings.ReplaceAll(bySQL[i], "dbjobs.", d.Table(""))))
		said := &strings.Builder{}
		for _, args := range [][]string{{"tick"}, {"job", "show", "tidy", "--json"}, {"run", "list", "--json"}} {
			_, stderr := invoke(t.Context(), t, home, nil, said, append(args, "--database", d.URL)...)
			said.WriteString(stderr)
		}
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %s after %s\n%s", want, bySQL[i], said)
		}
	}
	var id string // of the run that the page's statement has made
	if err := d.SQL.QueryRow("SELECT id FROM " + d.Table("runs") + " WHERE occurrence LIKE 'now:%'").Scan(&id); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{id, id[:8], "tidy#" + id} {
		said := &strings.Builder{}
		if _, stderr := invoke(t.Context(), t, home, nil, said, "run", "show", name, "--json", "--database", d.URL); !strings.Contains(said.String(), `"id": "`+id+`"`) {
			t.Errorf("run show %s: %s%s", name, said, stderr)
		}
	}
}
