package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const byHandName = "PostgreSQL: SQL by hand, the same records"

// byHand measures what the records cost, and the jobs themselves. One statement decides the runs. Each job is
// executed in a transaction of its own, in one of a few new sessions, which is reset to new after each job. The
// ends are recorded some hundred at a time. This code knows no rules, fences or leases, and after a crash it would
// not know what has been executed.
func byHand(b *bench, t *table, j jobs) {
	t.add(&contender{name: byHandName, prepare: func() error { return j.rewind(b) }, run: func() (sample, error) {
		began := time.Now()
		err := j.run(b.ctx, j.setBased(began)...)
		if err == nil {
			err = j.insertEach(b)
		}
		for ended := 0; ended < j.n && err == nil; ended += 200 {
			err = j.run(b.ctx, strings.ReplaceAll(endByHand, "@now", j.instant(time.Now())))
		}
		s := sample{took: time.Since(began)}
		if err == nil {
			err = j.executed(b)
		}
		return s, err
	}})
}

const endByHand = `WITH r AS (
  UPDATE dbjobs.runs SET state = 'succeeded', holder = 'by hand', fence = 1, attempt = 1, attempts = 1, started_at = @now, finished_at = @now,
    settled_at = @now, expires_at = timestamptz @now + interval '90 days'
  WHERE id = ANY(ARRAY(SELECT id FROM dbjobs.runs WHERE state = 'queued' AND queue = 'bench' ORDER BY priority DESC, ready_at, id LIMIT 200)) RETURNING id, job_id
), a AS (
  INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, state, started_at, finished_at, rows_affected)
  SELECT id, 1, 1, 'step 1', 1, 1, 'by hand', 'succeeded', @now, @now, 1 FROM r
)
UPDATE dbjobs.plans p SET last_run_id = r.id, last_state = 'succeeded', last_finished_at = @now, last_success_at = @now, cycles = p.cycles + 1,
  version = p.version + 1 FROM r WHERE p.job_id = r.job_id`

// insertEach executes the jobs, in as many new sessions as the program would open.
func (j jobs) insertEach(b *bench) error {
	const sessions = 8
	errs := make([]error, sessions)
	var all sync.WaitGroup
	for s := range sessions {
		own, err := b.open(j.engine, j.url) // it connects with its first statement
		if err != nil {
			return err
		}
		own.SetMaxOpenConns(1)
		all.Go(func() {
			for i := s; i < j.n && errs[s] == nil; i += sessions {
				errs[s] = own.run(b.ctx, fmt.Sprintf("INSERT INTO effects (job) VALUES (%d)", i), "DISCARD ALL")
			}
			_ = own.Close() // the server's session ends with it
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
