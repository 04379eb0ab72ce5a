package main

import (
	"fmt"
	"strings"
	"time"
)

// unserved is a queue that no tick serves: a pass over its jobs decides, and executes nothing.
const unserved = "bench"

// decide compares a pass that decides what is due with SQL that writes the same rows at once.
func decide(b *bench, t *table) error {
	t.title = fmt.Sprintf("%d %s", b.many, t.title)
	for _, engine := range b.engines {
		j, err := b.seed(engine, jobs{n: b.many, queue: unserved})
		if err != nil {
			return err
		}
		title := titles[engine]
		peer := title + ": set-based SQL"
		prepare := func() error { return j.rewind(b) }
		t.add(&contender{name: title + ": dbjobs tick", peer: peer, prepare: prepare, run: func() (sample, error) {
			s, err := b.dbjobs(j.database, "tick")
			if err == nil {
				err = j.decided(b)
			}
			return s, err
		}}, &contender{name: peer, peer: peer, prepare: prepare, run: func() (sample, error) {
			began := time.Now()
			err := j.run(b.ctx, j.setBased(began)...)
			s := sample{took: time.Since(began)}
			if err == nil {
				err = j.decided(b)
			}
			return s, err
		}})
	}
	return nil
}

// decided checks that each job has one run, which is queued, and that its plan has advanced.
func (j jobs) decided(b *bench) error {
	for _, query := range []string{
		"SELECT count(DISTINCT job_id) FROM " + j.table("runs") + " WHERE state = 'queued'",
		"SELECT count(*) FROM " + j.table("runs"),
		"SELECT count(*) FROM " + j.table("plans") + " WHERE runs_made = 1 AND next_run > " + j.instant(time.Now().Add(-time.Minute)),
	} {
		if n, err := j.int(b.ctx, query); err != nil || n != j.n {
			return fmt.Errorf("%s: %d, want %d (%v)", query, n, j.n, err)
		}
	}
	return nil
}

// setBased claims the due plans, writes a run for each, and advances them. It computes the next time by plain
// arithmetic.
func (j jobs) setBased(now time.Time) []string {
	text := map[string]string{
		"postgres": `WITH due AS (
  SELECT job_id, next_run, runs_made FROM dbjobs.plans WHERE next_run <= @now ORDER BY next_run, job_id FOR UPDATE SKIP LOCKED
), made AS (
  INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end, ready_at, created_at)
  SELECT ('019b8d99-6900-7000-8000-' || lpad(to_hex(job_id), 12, '0'))::uuid, job_id, runs_made + 1,
    'at:' || to_char(next_run AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'queued', 'bench', 0,
    next_run, next_run - interval '1 hour', next_run, @now, @now
  FROM due ON CONFLICT DO NOTHING
)
UPDATE dbjobs.plans p SET version = version + 1, next_run = p.next_run + interval '1 hour', decided_through = @now,
  last_scheduled_for = p.next_run, runs_made = p.runs_made + 1
FROM due WHERE p.job_id = due.job_id`,
		"mariadb": `INSERT INTO dbjobs_runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end, ready_at, created_at)
  SELECT CONCAT('019b8d99-6900-7000-8000-', LPAD(HEX(job_id), 12, '0')), job_id, runs_made + 1,
    CONCAT('at:', DATE_FORMAT(next_run, '%Y-%m-%dT%H:%i:%s.%fZ')), 'queued', 'bench', 0,
    next_run, next_run - INTERVAL 1 HOUR, next_run, @now, @now
  FROM dbjobs_plans WHERE next_run <= @now ORDER BY next_run, job_id FOR UPDATE SKIP LOCKED;
UPDATE dbjobs_plans SET version = version + 1, last_scheduled_for = next_run, next_run = next_run + INTERVAL 1 HOUR,
  decided_through = @now, runs_made = runs_made + 1 WHERE next_run <= @now`,
		"sqlite": `INSERT INTO dbjobs_runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end, ready_at, created_at)
  SELECT '019b8d99-6900-7000-8000-' || printf('%012x', job_id), job_id, runs_made + 1, 'at:' || next_run, 'queued', 'bench', 0,
    next_run, strftime('%Y-%m-%dT%H:%M:%f000Z', next_run, '-1 hour'), next_run, @now, @now
  FROM dbjobs_plans WHERE next_run <= @now ORDER BY next_run, job_id;
UPDATE dbjobs_plans SET version = version + 1, last_scheduled_for = next_run, next_run = strftime('%Y-%m-%dT%H:%M:%f000Z', next_run, '+1 hour'),
  decided_through = @now, runs_made = runs_made + 1 WHERE next_run <= @now`,
	}[j.engine]
	return strings.Split(strings.ReplaceAll(text, "@now", j.instant(now)), ";\n")
}
