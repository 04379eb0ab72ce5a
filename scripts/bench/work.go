package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// work compares a worker that takes one run at a time with a program that does so with the statements for workers.
func work(b *bench, t *table) error {
	t.title = fmt.Sprintf("%d %s", b.jobs, t.title)
	for _, engine := range b.engines {
		j, err := b.seed(engine, jobs{n: b.jobs, queue: unserved})
		if err != nil {
			return err
		}
		prepare := func() error {
			if err := j.rewind(b); err != nil {
				return err
			}
			_, err := b.dbjobs(j.database, "tick")
			return err
		}
		title := titles[engine]
		peer := title + ": plain SQL"
		t.add(&contender{name: title + ": dbjobs work --concurrency 1", peer: peer, prepare: prepare, run: func() (sample, error) {
			s, err := b.dbjobs(j.database, "work", "--concurrency", "1")
			if err == nil {
				err = j.worked(b)
			}
			return s, err
		}}, &contender{name: title + ": dbjobs work", peer: peer, prepare: prepare, run: func() (sample, error) {
			s, err := b.dbjobs(j.database, "work")
			if err == nil {
				err = j.worked(b)
			}
			return s, err
		}}, &contender{name: peer, peer: peer, prepare: prepare, run: func() (sample, error) {
			began := time.Now()
			err := j.plainWorker(b.ctx)
			s := sample{took: time.Since(began)}
			if err == nil {
				err = j.worked(b)
			}
			return s, err
		}})
	}
	return nil
}

func (j jobs) worked(b *bench) error {
	for _, query := range []string{
		"SELECT count(DISTINCT job) FROM effects", "SELECT count(*) FROM " + j.table("runs") + " WHERE state = 'succeeded'",
	} {
		if n, err := j.int(b.ctx, query); err != nil || n != j.n {
			return fmt.Errorf("%s: %d, want %d (%v)", query, n, j.n, err)
		}
	}
	return nil
}

// plainWorker is the worker of store/README.md: it takes a run, executes it and ends it, each in a transaction of
// its own, on one connection, until no run is left. It knows the statement of each job, and no leases.
func (j jobs) plainWorker(ctx context.Context) error {
	conn, err := j.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		id, fence, err := j.takeOne(ctx, conn)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		insert, end := "INSERT INTO effects (job) SELECT job_id FROM @runs WHERE id = ?",
			"UPDATE @runs SET state = 'succeeded', error = NULL, finished_at = @now, lease_until = NULL WHERE id = ? AND fence = ? AND state = 'running'"
		if _, err := conn.ExecContext(ctx, j.words(insert), id); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, j.words(end), id, fence); err != nil {
			return err
		}
	}
}

func (j jobs) takeOne(ctx context.Context, conn *sql.Conn) (id string, fence int, err error) {
	const set = "UPDATE @runs SET state = 'running', fence = fence + 1, attempt = attempt + 1, attempts = attempts + 1, " +
		"holder = 'plain', started_at = coalesce(started_at, @now), lease_until = @later WHERE "
	if j.engine == "mariadb" {
		res, err := conn.ExecContext(ctx, j.words(set+"queued_in = 'bench' ORDER BY urgency, ready_at, id LIMIT 1"))
		if err != nil {
			return "", 0, err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return "", 0, errors.Join(err, sql.ErrNoRows)
		}
		err = conn.QueryRowContext(ctx, j.words("SELECT id, fence FROM @runs WHERE holder = 'plain' AND state = 'running' AND wake_at <= @beyond ORDER BY wake_at DESC LIMIT 1")).Scan(&id, &fence)
		return id, fence, err
	}
	skip := map[string]string{"postgres": " FOR UPDATE SKIP LOCKED"}[j.engine]
	err = conn.QueryRowContext(ctx, j.words(set+"state = 'queued' AND id = (SELECT id FROM @runs WHERE state = 'queued' AND queue = 'bench' "+
		"ORDER BY priority DESC, ready_at, id LIMIT 1"+skip+") RETURNING id, fence")).Scan(&id, &fence)
	return id, fence, err
}

// words puts the engine's own words into a statement.
func (j jobs) words(statement string) string {
	clock := map[string][]string{
		"postgres": {"@now", "now()", "@later", "now() + interval '10 minutes'"},
		"mariadb":  {"@now", "utc_timestamp(6)", "@later", "utc_timestamp(6) + interval 10 minute", "@beyond", "utc_timestamp(6) + interval 11 minute"},
		"sqlite":   {"@now", "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')", "@later", "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now', '10 minutes')"},
	}[j.engine]
	statement = strings.NewReplacer(append(clock, "@runs", j.table("runs"))...).Replace(statement)
	if j.engine == "postgres" {
		for i := 1; strings.Contains(statement, "?"); i++ {
			statement = strings.Replace(statement, "?", fmt.Sprint("$", i), 1)
		}
	}
	return statement
}
